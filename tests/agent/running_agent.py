"""Agent in a process, with settings of the test; it can be stopped, killed and started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairbank.core.errors import FairbankError
from fairbank.rest.client import Client, parse_address
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.daemon import Daemon
from tests.support.json_schemas import check_output
from tests.support.server import FAIRBANK, PASSED_ON


class RunningAgent(Daemon):
    """Running agent. `bank_lines` are lines of the table [bank], `tables` are further settings,
    `slurm_user` is a TOML value.
    """

    name = "the agent"

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
        super().__init__(Account.ourselves(), "fb-agent-")
        self.socket, self.control = socket or self.folder / "prep.sock", self.folder / "agent.sock"
        self.outbox, self.config = (
            outbox or self.folder / "outbox.sqlite",
            self.folder / "agent.toml",
        )
        self.config.write_text(
            f'log = "short"\n'
            f'[plugin]\nsocket = "{self.socket}"\nslurm_user = {slurm_user}\n'
            f'[bank]\nserver = "{bank}"\ntimeout = {timeout}\n{bank_lines}\n'
            f'[outbox]\npath = "{self.outbox}"\n'
            f'[control]\nsocket = "{self.control}"\n'
            f"{tables}\n"
        )

    @property
    def environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {
            **passed,
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "FAIRBANK_AGENT_CONFIG": str(self.config),
        }

    def status(self) -> dict[str, Any]:
        return Client(parse_address(f"unix:{self.control}"), timeout_seconds=5).get("/status")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command. The form of a status is checked in each state of the agent."""
        done = subprocess.run(
            [FAIRBANK, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        check_output(words, done.stdout)
        if words == ("agent", "status"):
            self.command(*words, "--json")
        return done

    def log_text(self) -> str:
        """Return the text of its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_until_empty(self, seconds: float = 30) -> None:
        """Wait until the bank has answered all reports."""
        wait_until(
            lambda: self.status()["outbox"]["reports"] == 0, "an empty outbox", seconds=seconds
        )

    def _command(self) -> list[str]:
        return [FAIRBANK, "agent"]

    def answers(self) -> bool:
        try:
            self.status()
        except FairbankError:
            return False
        return True

    _answers = answers


@contextmanager
def agent_at(bank: str, **options: Any) -> Iterator[RunningAgent]:
    """Yield a running agent of this bank; `options` as for RunningAgent."""
    agent = RunningAgent(bank, **options)
    try:
        agent.start()
        yield agent
    finally:
        agent.close()
