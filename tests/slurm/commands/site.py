"""Running bank and recorded Slurm output, and the commands that use both."""

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
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.parsers.sacct import JOBS
from tests.cli.conftest import CommandResult
from tests.slurm.prices import priced
from tests.slurm.reconcile.jobs import a_job, sacct_row
from tests.support.json_schemas import check_output
from tests.support.recorded_slurm import RecordedSlurm, line
from tests.support.server import FairbankServer

ME, MY_UID = pwd.getpwuid(os.geteuid()).pw_name, os.geteuid()
HOUR = 3_600


class CommandSite:
    """Running bank and recorded Slurm output, and the commands that use both."""

    def __init__(
        self, bank: FairbankServer, slurm: RecordedSlurm, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.bank, self.slurm, self._capsys = bank, slurm, capsys
        self.now = int(time.time())
        self.client = Client(parse_address(self.unix))

    @property
    def unix(self) -> str:
        """Address of the bank."""
        return f"unix:{self.bank.socket}"

    def output(self, *words: str, code: int = 0) -> str:
        """Return the stdout of a command; its exit code must be `code`."""
        return self.run(*words, code=code).out

    def run(self, *words: str, code: int) -> CommandResult:
        """Run a command, check its exit code, and return its stdout and stderr."""
        self._capsys.readouterr()
        status = main.run(words)
        captured = self._capsys.readouterr()
        assert status == code, captured.out + captured.err
        check_output(words, captured.out)
        return CommandResult(status, captured.out, captured.err)

    def reconcile(self, *words: str, code: int = 0) -> list[dict[str, object]]:
        """Return the rows of `fairbank reconcile`."""
        rows: list[dict[str, object]] = json.loads(
            self.output("reconcile", "--json", *words, code=code)
        )["data"]
        return rows

    def set_accounting(self, *jobs: AccountingJob) -> None:
        """Set the jobs that accounting reports."""
        self.slurm.set_output("sacct", "".join(map(sacct_row, jobs)))
        self.slurm.set_output("sacct-jobs", "".join(map(sacct_row, jobs)))

    def set_accounting_cells(self, job: AccountingJob, **cells: str) -> None:
        """Set one job that accounting reports, with other texts in some of its cells."""
        row = dict(zip(JOBS.columns, sacct_row(job).rstrip("\n").split("\x1f"), strict=True))
        self.slurm.set_output("sacct", line(*(row | cells).values()))
        self.slurm.set_output("sacct-jobs", line(*(row | cells).values()))

    def job(self, number: int, **facts: object) -> AccountingJob:
        """Return a job of the current user that began two hours ago and took ten minutes."""
        facts = {"submitted": self.now - 2 * HOUR, "owner": MY_UID, "user": ME, **facts}
        return a_job(number, **facts)  # type: ignore[arg-type]

    def report(self, job: AccountingJob, **facts: object) -> None:
        """Send a report of the job to the bank, as the agent does: a hold unless `facts` say
        otherwise.
        """
        body = {
            "do": "hold", "cluster": "lab", "job_id": job.job_id, "submitted": job.submitted,
            "owner_uid": MY_UID, "account": job.account,
            "partition": job.partition, "start": job.start, "time_limit": job.limit_seconds,
            "tres": job.tres, **facts,
        }  # fmt: skip
        self.client.post("/job", body)

    def available(self) -> int:
        rows = json.loads(self.output("balance", "-A", "chem", "--json"))["data"]
        return int(rows[0]["available"])


@contextmanager
def command_site(
    folder: Path,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prices: str,
    policy: str = "",
) -> Iterator[CommandSite]:
    """Start a bank that knows no projects, and a recorded Slurm with partitions, the account chem
    with the current user, and bio below it.
    """
    slurm = RecordedSlurm.of_the_lab(folder / "slurm")
    slurm.set_output(
        "sacctmgr-show-associations",
        f"root|||1||\nchem||root|50||\nbio||chem|50||\nchem|{ME}||10||\n",
    )
    slurm.set_output("sacctmgr-show-account", f"root|\nchem|{ME}\nbio|\n")
    slurm.set_output(
        "scontrol-show-config",
        f"ClusterName = lab\nPriorityFlags = MAX_TRES\nSlurmUser = {ME}({MY_UID})\n",
    )
    slurm.set_output("sacct", "")
    slurm.set_output("squeue", "")
    slurm.set_output("sshare", "root||0|\nchem||600|cpu=1,billing=30\nbio||0|\n")
    environment.setenv("PATH", slurm.environment["PATH"])
    with priced(prices, policy) as bank:
        for name, value in bank.environment.items():
            environment.setenv(name, value)
        yield CommandSite(bank, slurm, capsys)
