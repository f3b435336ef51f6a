"""A bank that runs and a Slurm that says what was recorded, and the commands between them."""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairbank.cli import main
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.parsers.values import AccountingJob
from tests.cli.conftest import CommandResult
from tests.slurm.prices import priced
from tests.slurm.reconcile.jobs import a_job, row_of
from tests.support.recorded_slurm import Recorded
from tests.support.server import FairbankServer

ME, MY_UID = pwd.getpwuid(os.geteuid()).pw_name, os.geteuid()
HOUR = 3_600


class Centre:
    """A bank and a Slurm, and the commands between them."""

    def __init__(
        self, bank: FairbankServer, slurm: Recorded, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.bank, self.slurm, self._capsys = bank, slurm, capsys
        self.now = int(time.time())
        self.client = Client(parse_address(f"unix:{bank.socket}"))

    def tell(self, *words: str, code: int = 0) -> str:
        """Return the stdout of a command; its exit code must be `code`."""
        return self.said(*words, code=code).out

    def said(self, *words: str, code: int) -> CommandResult:
        """The same with its talk."""
        self._capsys.readouterr()
        ended = main.run(words)
        told = self._capsys.readouterr()
        assert ended == code, told.out + told.err
        return CommandResult(ended, told.out, told.err)

    def reconciled(self, *words: str, code: int = 0) -> list[dict[str, object]]:
        """The rows of `fairbank reconcile`."""
        rows: list[dict[str, object]] = json.loads(
            self.tell("reconcile", "--json", *words, code=code)
        )["data"]
        return rows

    def ran(self, *jobs: AccountingJob) -> None:
        """From now on accounting has these."""
        self.slurm.say("sacct", "".join(map(row_of, jobs)))
        self.slurm.say("sacct-jobs", "".join(map(row_of, jobs)))

    def job(self, number: int, **facts: object) -> AccountingJob:
        """A job of ours that began two hours ago and took ten minutes."""
        facts = {"submitted": self.now - 2 * HOUR, "owner": MY_UID, "user": ME, **facts}
        return a_job(number, **facts)  # type: ignore[arg-type]

    def report(self, job: AccountingJob, **facts: object) -> None:
        """A hold, as the agent would ask for it."""
        body = {
            "do": "hold", "cluster": "lab", "job_id": job.job_id, "submitted": job.submitted,
            "owner_uid": MY_UID, "account": job.account,
            "partition": job.partition, "start": job.start, "time_limit": job.limit_seconds,
            "tres": job.tres, **facts,
        }  # fmt: skip
        self.client.post("/job", body)

    def available(self) -> int:
        rows = json.loads(self.tell("balance", "-A", "chem", "--json"))["data"]
        return int(rows[0]["available"])


@contextmanager
def a_centre(
    folder: Path,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prices: str,
    policy: str = "",
) -> Iterator[Centre]:
    """Slurm's account chem with us in it, bio below it, and its partitions; a bank that has heard
    of neither.
    """
    slurm = Recorded.of_the_lab(folder / "slurm")
    slurm.say(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n",
    )
    slurm.say("sacctmgr-show-account", f"root|\nchem|{ME}\nbio|\n")
    slurm.say(
        "scontrol-show-config",
        f"ClusterName = lab\nPriorityFlags = MAX_TRES\nSlurmUser = {ME}({MY_UID})\n",
    )
    slurm.say("sacct", "")
    slurm.say("squeue", "")
    slurm.say("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||0|\n")
    environment.setenv("PATH", slurm.environment["PATH"])
    with priced(prices, policy) as bank:
        for name, value in bank.environment.items():
            environment.setenv(name, value)
        yield Centre(bank, slurm, capsys)
