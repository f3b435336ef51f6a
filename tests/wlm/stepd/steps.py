"""Steps of tests: a launcher, and what a node daemon does with it, without an event loop."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairbank.wlm.node.orphans import find_orphans
from fairbank.wlm.stepd.launcher import MODULE
from fairbank.wlm.stepd.processes import process_table
from fairbank.wlm.stepd.step import (
    LOG,
    Step,
    StepEnd,
    read_end,
    read_start,
    socket_path,
    write_step,
)
from tests.support.conditions import wait_until

KILL_WAIT = 0.2
ENVIRONMENT = {b"PATH": os.fsencode(os.environ["PATH"]), b"LC_ALL": b"C"}


class StartedLauncher:
    """Launcher that a test has started. `spoil` changes what it inherits, and it gets all
    descriptors then.
    """

    def __init__(self, spoil: Callable[[], None] | None = None) -> None:
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(30)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", MODULE],
            stdin=theirs.fileno(),
            preexec_fn=spoil,  # noqa: PLW1509 - this process has no threads
            close_fds=spoil is None,
        )
        theirs.close()

    def start(self, directory: Path) -> str:
        """Ask for a step, and return the answer."""
        self._connection.send(os.fsencode(directory))
        return self._connection.recv(4_096).decode()

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        self._connection.close()
        self.process.wait()


class StartedStep:
    """Step of a script, in a directory of its own."""

    def __init__(
        self,
        launcher: StartedLauncher,
        folder: Path,
        script: str | bytes,
        environment: Mapping[bytes, bytes] | None = None,
        **options: Any,
    ) -> None:
        self.directory = directory = folder
        directory.mkdir(mode=0o700)
        path = directory / "script"
        path.write_bytes(script if isinstance(script, bytes) else f"#!/bin/sh\n{script}".encode())
        path.chmod(0o700)
        self.output = directory / "out"
        standard: dict[str, Any] = {
            "arguments": [str(path)],
            "directory": str(directory),
            "input": os.devnull,
            "output": str(self.output),
            "kill_wait": KILL_WAIT,
        }
        write_step(
            str(directory), Step(**(standard | options)), {**ENVIRONMENT, **(environment or {})}
        )
        self.answer = launcher.start(directory)

    @property
    def daemon(self) -> int:
        return int(self.answer)

    @property
    def log(self) -> str:
        return (self.directory / LOG).read_text()

    def connect(self) -> socket.socket:
        return connect(self.directory)

    def request(self, message: object) -> dict[str, Any]:
        """Send a request to the step daemon, and return its answer."""
        with self.connect() as connection:
            connection.sendall(json.dumps(message).encode() + b"\n")
            with connection.makefile() as answers:
                answer: dict[str, Any] = json.loads(answers.readline())
        return answer

    def end(self, reason: str = "", seconds: float = 0) -> None:
        assert self.request({"kind": "end", "seconds": seconds, "reason": reason}) == {}

    def wait(self) -> StepEnd:
        """Return how the step ended."""
        wait_until(lambda: read_end(str(self.directory)), "the end of the step")
        end = read_end(str(self.directory))
        assert end is not None
        return end

    def wait_for_lines(self, count: int) -> list[str]:
        """Return the output as soon as it has that many lines."""
        wait_until(lambda: self.lines(count), f"{count} lines of output")
        return self.lines(count)

    def lines(self, count: int = 0) -> list[str]:
        lines = self.output.read_text().splitlines() if self.output.exists() else []
        return lines if len(lines) >= count else []

    def processes(self) -> set[int]:
        """Return the living processes of the step, however they were started."""
        start = read_start(str(self.directory))
        return {process.pid for process in find_orphans(self.directory, start, process_table())}

    def kill_all(self) -> None:
        """End the step for the end of a test, even if it went wrong."""
        start = read_start(str(self.directory))
        for pid in (*self.processes(), *([start.daemon] if start else [])):
            if read_end(str(self.directory)) is None:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass


def connect(directory: Path) -> socket.socket:
    """Return a connection to the step daemon of a directory."""
    connection = socket.socket(socket.AF_UNIX)
    with socket_path(str(directory)) as path:
        connection.connect(path)  # waits while the backlog is full, unlike with a timeout
    connection.settimeout(30)
    return connection


def private_kib(pid: int) -> int:
    """Return the memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
