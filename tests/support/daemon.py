"""Base of the servers that tests start: start, kill, restart, stop, and delete their directory."""

from __future__ import annotations

import shutil
import signal
from abc import ABC, abstractmethod

from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.supervisor import ProcessSpec, SupervisedProcess


class Daemon(ABC):
    """Server in its own directory, which `close` removes. `name` is its name in messages."""

    name: str
    stop_signal = signal.SIGTERM
    orphans_seconds = 0.0

    def __init__(self, account: Account, prefix: str, *, mode: int = 0o700) -> None:
        self._account = account
        self.folder = account.own_folder(prefix, mode=mode)
        self.log = self.folder / "log"
        self._process: SupervisedProcess | None = None

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the environment of the server and of commands that connect to it."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command to run."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return True once the server accepts connections."""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """Return the process id, for tests that stop and continue the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start if it does not run, and return when it answers: after a kill, when it has
        recovered.
        """
        if self.running:
            return
        self._process = SupervisedProcess(self._process_spec())
        wait_until(
            lambda: self._answers() or not self.running, f"{self.name} to answer", seconds=60
        )
        if not self.running:
            self._process.stop()
            raise RuntimeError(f"{self.name} ended at once:\n{self.tail()}")

    def stop(self) -> None:
        """Stop the server in order: it ends sessions and writes everything."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Kill the server and all its children at once with SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tail(self, characters: int = 3_000) -> str:
        """Return the end of the server's output."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def _process_spec(self) -> ProcessSpec:
        return ProcessSpec(
            command=self._command(),
            environment=self.environment,
            folder=str(self.folder),
            log=str(self.log),
            uid=self._account.uid,
            gid=self._account.gid,
            groups=self._account.groups,
            stop_signal=self.stop_signal,
            orphans_seconds=self.orphans_seconds,
        )
