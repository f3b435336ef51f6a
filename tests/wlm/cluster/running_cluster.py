"""Cluster of the tests: `fairbank cluster` and the commands with Slurm's names, as processes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairbank.wlm.stepd.processes import process_table
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK

DAEMONS = ("bank", "agent", "node", "controller", "commands")


class RunningCluster:
    """Cluster in `home/q`. Commands have the environment that `fairbank env` prints.

    `before` are words before each command, which run it. The umask is that of users who have a
    group of their own.
    """

    def __init__(self, home: Path, before: Sequence[str] = ()) -> None:
        self.home, self.directory, self._before = home, home / "q", before
        self.environment = {
            "PATH": f"{self.directory}/bin:{os.environ['PATH']}",
            "HOME": str(home),
            "TZ": "UTC",
            "FAIRBANK_CLUSTER": str(self.directory),
            "FAIRBANK_CONFIG": f"{self.directory}/bank/fairbank.toml",
            "FAIRBANK_AGENT_CONFIG": f"{self.directory}/bank/agent.toml",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `fairbank WORDS`."""
        return self._run(FAIRBANK, *words)

    def slurm(self, *words: str) -> str:
        """Run a command under Slurm's name, which must succeed, and return its output."""
        result = self.try_slurm(*words)
        assert result.returncode == 0, result
        return result.stdout

    def try_slurm(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command under Slurm's name."""
        return self._run(f"{self.directory}/bin/{words[0]}", *words[1:])

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._before, *words],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
            umask=0o002,
        )

    def states(self) -> dict[str, dict[str, Any]]:
        """Return the state of each daemon, as the supervisor wrote it."""
        file = self.directory / "supervisor.json"
        try:
            return {row["name"]: row for row in json.loads(file.read_bytes())["daemons"]}
        except FileNotFoundError:
            return {}

    def supervisor(self) -> int:
        return int(json.loads((self.directory / "supervisor.json").read_bytes())["pid"])

    def processes(self) -> set[int]:
        """Return the processes of daemons and jobs, all of which have the cluster's variable."""
        entry = f"FAIRBANK_CLUSTER={self.directory}\0".encode()
        server = self.states().get("commands", {}).get("pid")
        running = set()
        for pid, process in process_table().items():
            if process.parent == server and not self._has_client(pid):
                continue  # the fork for the next command
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:  # it has ended, or belongs to another user
                continue
            if entry in environment and not process.is_zombie:
                running.add(pid)
        return running

    def forks(self) -> list[int]:
        """Return the forks that run commands; one without a client waits for the next."""
        server = self.states().get("commands", {}).get("pid")
        children = [one.pid for one in process_table().values() if one.parent == server]
        return [pid for pid in children if self._has_client(pid)]

    def _has_client(self, pid: int) -> bool:
        try:
            numbers = [int(file.name) for file in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:  # it has ended
            return False
        return max(numbers, default=0) >= 256  # that of its connection

    def traces(self) -> list[Path]:
        """Return the sockets and links in the directory."""
        return [p for p in self.directory.rglob("*") if p.is_socket() or p.is_symlink()]

    def close(self) -> None:
        """End everything."""
        self.run("cluster", "down", "--now")
        for pid in self.processes():
            os.kill(pid, 9)
        wait_until(lambda: not self.processes(), "the processes of the cluster to end")
