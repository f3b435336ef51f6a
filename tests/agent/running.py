"""A real agent as a process of its own: `fairbank agent` with settings of the test, stopped, killed, started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairbank.rest.client import Client, parse_address
from fairbank.values.trouble import Trouble
from tests.support.account import Account
from tests.support.keeper import Kept, Order
from tests.support.server import FAIRBANK, PASSED_ON
from tests.support.waiting import wait_until


class RunningAgent:
    """`bank_lines` stand in the table of the bank, `tables` are more of the settings, `slurm_user` what stands there in TOML."""

    def __init__(
        self,
        bank: str,
        *,
        tables: str = "",
        bank_lines: str = "",
        outbox: Path | None = None,
        timeout: float = 5.0,
        socket: Path | None = None,
        slurm_user: str = f"{os.geteuid()}",
    ) -> None:
        self.folder = Account.ourselves().own_folder("fb-agent-")
        self.socket, self.control = socket or self.folder / "prep.sock", self.folder / "agent.sock"
        self.outbox = outbox or self.folder / "outbox.sqlite"
        self.log, self.config = self.folder / "log", self.folder / "agent.toml"
        self.config.write_text(
            f'log = "short"\n'
            f'[plugin]\nsocket = "{self.socket}"\nslurm_user = {slurm_user}\n'
            f'[bank]\nserver = "{bank}"\ntimeout = {timeout}\n{bank_lines}\n'
            f'[outbox]\npath = "{self.outbox}"\n'
            f'[control]\nsocket = "{self.control}"\n'
            f"{tables}\n"
        )
        self._process: Kept | None = None

    @property
    def environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {**passed, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TZ": "UTC", "FAIRBANK_AGENT_CONFIG": str(self.config)}

    def start(self) -> RunningAgent:
        us = Account.ourselves()
        self._process = Kept(
            Order(
                command=[FAIRBANK, "agent"],
                environment=self.environment,
                folder=str(self.folder),
                log=str(self.log),
                uid=us.uid,
                gid=us.gid,
                groups=us.groups,
                stop_signal=signal.SIGTERM,
            )
        )
        wait_until(lambda: self.answers() or not self.running, "the agent to listen")
        assert self.running, self.said()
        return self

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def answers(self) -> bool:
        try:
            self.status()
        except Trouble:
            return False
        return True

    def status(self) -> dict[str, Any]:
        return Client(parse_address(f"unix:{self.control}"), timeout_seconds=5).get("/status")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([FAIRBANK, *words], env=self.environment, capture_output=True, text=True, check=False, timeout=60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_until_empty(self, seconds: float = 30) -> None:
        """Until the bank has answered all that waits."""
        wait_until(lambda: self.status()["outbox"]["letters"] == 0, "an empty outbox", seconds=seconds)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def agent_at(bank: str, **how: Any) -> Iterator[RunningAgent]:
    """A running agent, as long as the block lasts; `how` as for RunningAgent."""
    agent = RunningAgent(bank, **how)
    try:
        yield agent.start()
    finally:
        agent.close()
