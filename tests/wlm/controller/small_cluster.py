"""Controller and node daemon as processes, in a directory of a cluster."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairbank.wlm.stepd.processes import process_table
from tests.support.conditions import wait_until

SETTINGS = """
[cluster]
cluster_name = "lab"
return_to_service = 2

[jobs]
kill_wait = 1
auth_info = "cred_expire=0"

[[nodes]]
node_name = "n[1-2]"
cpus = 2
real_memory = 1000

[[partitions]]
partition_name = "main"
nodes = "ALL"
default = true
default_time = "10:00"
"""


class SmallCluster:
    """Cluster with two nodes, in a directory. Jobs write to files in `work`."""

    def __init__(self, directory: Path, settings: str = SETTINGS) -> None:
        self.directory, self.settings = directory, directory / "wlm.toml"
        self.work = directory
        (directory / "nodes").mkdir(mode=0o700)
        self.settings.write_text(settings)
        hosted = [
            {
                "name": name,
                "spool": str(directory / "nodes" / name),
                "socket": str(directory / "nodes" / f"{name}.sock"),
                "cpus": 2,
                "memory": 1_000,
            }
            for name in ("n1", "n2")
        ]
        self._node_file = directory / "node.json"
        node = {"nodes": hosted, "kill_wait": 0.2, "over_memory_kill": True}
        self._node_file.write_text(json.dumps(node))
        self._node: subprocess.Popen[bytes] | None = None
        self._controller: subprocess.Popen[bytes] | None = None
        self._last, self._answers = 0, dict[int, Any]()

    # ------------------------------------------------------------------ processes

    def start(self) -> None:
        self.start_node()
        self.start_controller()

    def start_node(self) -> None:
        self._node = self._start("fairbank.wlm.node", self._node_file, "node.log")
        _expect_ready(self._node)

    def start_controller(self, nodes: Sequence[str] = ("n1", "n2")) -> None:
        """Start the controller, and wait for nodes, if there are any."""
        program = "tests.wlm.controller.driven_controller"
        self._controller = self._start(program, self.directory, "controller.log")
        _expect_ready(self._controller)
        wait_until(lambda: self.ask("connected") == [*nodes], "the nodes")

    def _start(self, module: str, argument: Path, log: str) -> subprocess.Popen[bytes]:
        with (self.directory / log).open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", module, str(argument)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )

    @property
    def controller(self) -> subprocess.Popen[bytes]:
        assert self._controller is not None
        return self._controller

    @property
    def node(self) -> subprocess.Popen[bytes]:
        assert self._node is not None
        return self._node

    def kill_controller(self, number: int = signal.SIGKILL) -> None:
        _kill(self._controller, number)

    def kill_node(self) -> None:
        _kill(self._node, signal.SIGKILL)

    def launcher(self) -> int:
        """Return the process id of the launcher: the first child of the node daemon.

        If it was killed, the node daemon starts another one.
        """
        node, children = self.node.pid, list[int]()

        def find() -> bool:
            table = process_table().values()
            children[:] = [process.pid for process in table if process.parent == node]
            return bool(children)

        wait_until(find, "a launcher")
        return min(children)

    def close(self) -> None:
        """End the jobs and the daemons."""
        if self._node is not None and self._node.poll() is None:
            if self._controller is None or self._controller.poll() is not None:
                self.start_controller()
            for job, (state, _) in self.jobs().items():
                if state in ("PENDING", "RUNNING", "PENDING CONFIGURING"):
                    self.ask("cancel", job=job)
            wait_until(lambda: not self.busy_jobs(), "the end of the jobs")
        _kill(self._controller, signal.SIGTERM)
        _kill(self._node, signal.SIGTERM)

    def log(self) -> str:
        return (self.directory / "controller.log").read_text()

    def limit_files(self, size: int) -> None:
        """Let no file of the controller grow beyond a size; -1: no limit."""
        resource.prlimit(self.controller.pid, resource.RLIMIT_FSIZE, (size, -1))

    # ------------------------------------------------------------------ requests

    def ask(self, what: str, **fields: Any) -> Any:
        """Make a request, and return its answer."""
        return self.answer(self.begin(what, **fields))

    def begin(self, what: str, **fields: Any) -> int:
        """Send a request, and return its number."""
        self._last += 1
        request = {"number": self._last, "do": what, **fields}
        assert self.controller.stdin is not None
        self.controller.stdin.write(json.dumps(request).encode() + b"\n")
        self.controller.stdin.flush()
        return self._last

    def answer(self, number: int) -> Any:
        """Return the answer to a request."""
        assert self.controller.stdout is not None
        while number not in self._answers:
            line = self.controller.stdout.readline()
            assert line, self.log()[-2_000:]
            answered, answer = json.loads(line)
            self._answers[answered] = answer
        return self._answers.pop(number)

    def submit(self, script: str, **fields: Any) -> int:
        """Submit a job, and return its number."""
        defaults = {"directory": str(self.work), "open_mode": "append"}
        answer = self.ask("submit", script=script, **(defaults | fields))
        assert isinstance(answer, list), answer
        return int(answer[0])

    def jobs(self) -> dict[str, list[str]]:
        """Return state and reason by job id."""
        jobs: dict[str, list[str]] = self.ask("jobs")
        return jobs

    def busy_jobs(self) -> list[str]:
        """Return the jobs that have not ended, or not been cleaned up."""
        final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
        return [job for job, (state, _) in self.jobs().items() if state not in final]

    def nodes(self) -> dict[str, list[str]]:
        """Return condition and reason by node."""
        nodes: dict[str, list[str]] = self.ask("nodes")
        return nodes

    def wait_for_state(self, job: int | str, state: str) -> None:
        wait_until(lambda: self.jobs()[str(job)][0] == state, f"job {job} is {state}")

    def lines(self, name: str = "out", minimum: int = 0) -> list[str]:
        """Return the lines of a file of a job as soon as there are enough."""
        path = self.work / name

        def content() -> list[str]:
            return path.read_text().splitlines() if path.exists() else []

        wait_until(lambda: len(content()) >= minimum, f"{minimum} lines in {name}")
        return content()


def _expect_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def _kill(process: subprocess.Popen[bytes] | None, number: int) -> None:
    if process is None:
        return
    if process.poll() is None:
        process.send_signal(number)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
