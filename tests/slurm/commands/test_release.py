"""Automatic release of jobs held for lack of credit: the choice of jobs, their number, and the
retry limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import Unavailable
from fairbank.rest.client import Client, parse_address
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.held_jobs import (
    FORGOTTEN_SECONDS,
    QUOTES_MAX,
    RELEASES_MAX,
    HoldQuote,
    Releaser,
    ReleaseSchedule,
    affordable_jobs,
)
from fairbank.slurm.parsers.squeue import HELD_FORMAT, HeldJob, read_held_jobs
from fairbank.slurm.parsers.values import ParsedRows
from tests.agent.conftest import SU, Site
from tests.support.server import run_bank

HOUR = 3_600
JOB = HeldJob(
    name="7", account="chem", partition="cpu", qos=None, limit_seconds=HOUR, tres="cpu=1", uid=5_004
)
WIDTHS = tuple(int(column.partition(":")[2]) for column in HELD_FORMAT.split(","))


def line(
    name: str,
    *,
    reason: str = "Allocation_exhausted",
    comment: str = "Fairbank: ch",
    limit: str = "1:00:00",
    tres: str = "cpu=1",
) -> str:
    cells = (name, "chem", "cpu", "normal", limit, reason, comment, "5004", tres)
    return "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)) + "\n"


def jobs_named(names: Sequence[str]) -> list[HeldJob]:
    return [msgspec.structs.replace(JOB, name=name) for name in names]


# ------------------------------------------------------------------ reading held jobs


def test_only_jobs_held_for_credit_are_read() -> None:
    held = read_held_jobs(
        line("7")
        + line(
            "8_3", reason="No_allocation", limit="1-00:00:00", tres="cpu=2,mem=4G,node=1,billing=2"
        )
        + line("9", reason="JobHeldAdmin")
        + line("10", reason="JobHeldUser")
        + line("11", comment="by me")
        + line("12", comment="")
        + line("13", reason="User_cap_reached")
        + line("14", reason="Fairbank_does_not_answer")
        + line("15+0")
        + line("16_[1-9]")
        + line("17", limit="UNLIMITED")
        + line("18", limit="soon")
    )
    first, second = held.rows
    assert first == msgspec.structs.replace(JOB, qos="normal")
    assert (second.name, second.limit_seconds, second.tres) == (
        "8_3",
        24 * HOUR,
        "cpu=2,mem=4G,node=1",
    )
    assert [(line.line, line.field) for line in held.unreadable] == [(12, "TimeLimit")]


# ------------------------------------------------------------------ number and schedule


def test_released_jobs_fit_the_credit_together() -> None:
    jobs = jobs_named("abcde")
    offers = [
        HoldQuote(20, 1, 30, fits=True),
        HoldQuote(20, 1, 30, fits=True),
        HoldQuote(10, 1, 30, fits=True),
        HoldQuote(20, 2, 30, fits=True),
        HoldQuote(1, None, 0, fits=False),
    ]
    assert [job.name for job in affordable_jobs(list(zip(jobs, offers, strict=True)))] == [
        "a",
        "c",
        "d",
    ]


def test_jobs_are_quoted_in_turn_and_not_too_often() -> None:
    schedule, jobs = (
        ReleaseSchedule(600),
        jobs_named([str(number) for number in range(QUOTES_MAX + 1)]),
    )
    assert len(schedule.due(jobs, 1_000)) == QUOTES_MAX
    assert [job.name for job in schedule.due(jobs, 1_060)] == [str(QUOTES_MAX)]
    assert schedule.due(jobs, 1_599) == []
    assert schedule.due(jobs, 1_600)[0].name == "0"


def test_release_attempts_are_limited() -> None:
    schedule, now, releases = ReleaseSchedule(600), 0.0, 0
    for _ in range(100):
        now += 600
        for job in schedule.due([JOB], now):
            schedule.count_release(job)
            releases += 1
    assert releases == RELEASES_MAX


def test_attempts_of_a_held_job_are_remembered() -> None:
    """A month in the queue gives a job no more releases. Only a job that left the queue for a week
    counts as new.
    """
    schedule, released = ReleaseSchedule(600), 0
    for now in range(0, 30 * 24 * HOUR, 600):
        for job in schedule.due([JOB], now):
            schedule.count_release(job)
            released += 1
    assert released == RELEASES_MAX
    assert schedule.due([], 30 * 24 * HOUR + FORGOTTEN_SECONDS) == []
    assert schedule.due([JOB], 30 * 24 * HOUR + FORGOTTEN_SECONDS) == [JOB]


# ------------------------------------------------------------------ bank and queue


class SimulatedQueue(SlurmCommands):
    """Simulated Slurm queue."""

    cluster = "local"

    def __init__(self, *jobs: HeldJob) -> None:
        self.waiting_jobs = list(jobs)
        self.released: list[str] = []
        self.squeue_error: Unavailable | None = None
        self.unreadable: tuple[UnreadableLine, ...] = ()
        self.unreleasable: set[str] = set()

    def held_jobs(self) -> ParsedRows[HeldJob]:
        if self.squeue_error:
            raise self.squeue_error
        return ParsedRows(tuple(self.waiting_jobs), self.unreadable)

    def release(self, name: str) -> None:
        if name in self.unreleasable:
            raise Unavailable(f"scontrol ended with 1: job {name}", remedy="look")
        self.released.append(name)
        self.waiting_jobs = [job for job in self.waiting_jobs if job.name != name]


class SimulatedBank(Client):
    """Simulated bank that accepts every request until `answers` requests are answered."""

    def __init__(self, answers: int = 10**6) -> None:
        self.answers = answers

    def post(self, path: str, body: Any, key: str | None = None) -> dict[str, Any]:
        if not self.answers:
            raise Unavailable("no answer", remedy="start it")
        self.answers -= 1
        return {"data": {"amount": 1, "allocation": 1, "available": 1_000, "fits": True}}


def test_failed_release_does_not_stop_others() -> None:
    queue = SimulatedQueue(*jobs_named("123"))
    queue.unreleasable = {"1"}
    releaser = Releaser(SimulatedBank(), queue, 600)
    for round_ in range(RELEASES_MAX + 1):  # failed releases do not count as attempts
        releaser.run_round(round_ * 600)
        assert queue.released == ["2", "3"]
        assert releaser.status() == {
            "released": 2,
            "error": "scontrol ended with 1: job 1",
            "remedy": "look",
        }
    queue.unreleasable = set()
    releaser.run_round(HOUR)
    assert queue.released == ["2", "3", "1"]
    assert releaser.status()["error"] is None


def test_held_job_that_cannot_be_read_is_an_error_and_stops_no_other() -> None:
    queue = SimulatedQueue(*jobs_named("1"))
    queue.unreadable = (UnreadableLine("squeue", 2, "TimeLimit", "'?' is not a time"),)
    releaser = Releaser(SimulatedBank(), queue, 600)
    releaser.run_round(0)
    assert queue.released == ["1"]
    assert releaser.status()["error"] == "cannot read squeue, line 2, TimeLimit: '?' is not a time"


def test_aborted_round_continues_in_the_next() -> None:
    """If Slurm refuses several releases in a row, or the bank becomes unavailable, jobs that were
    not reached lose no attempt.
    """
    queue = SimulatedQueue(*jobs_named("12345"))
    queue.unreleasable = {"1", "2", "3"}
    releaser = Releaser(SimulatedBank(), queue, 600)
    releaser.run_round(0)
    assert queue.released == []
    releaser.run_round(60)
    assert queue.released == ["4", "5"]

    queue, bank = SimulatedQueue(*jobs_named("123")), SimulatedBank(1)
    releaser = Releaser(bank, queue, 600)
    releaser.run_round(0)
    assert (queue.released, releaser.status()["error"]) == (["1"], "no answer")
    bank.answers = 10
    releaser.run_round(60)
    assert queue.released == ["1", "3"]  # the second was quoted before
    releaser.run_round(600)
    assert queue.released == ["1", "3", "2"]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with run_bank() as server:
        yield Site(server)


@pytest.mark.slow
def test_deposit_releases_affordable_jobs(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    number = site.project("chem", 1 * SU)
    queue = SimulatedQueue(
        *jobs_named(["1", "2", "3"]), msgspec.structs.replace(JOB, name="4", account="nobody")
    )
    expensive = msgspec.structs.replace(JOB, name="5", limit_seconds=100 * HOUR)
    queue.waiting_jobs.insert(0, expensive)
    releaser = Releaser(Client(parse_address(site.address)), queue, 600)
    releaser.run_round(0)
    assert queue.released == ["1"]
    site.withdraw(number, 1 * SU)  # the first job has used it
    releaser.run_round(300)
    assert queue.released == ["1"]
    site.deposit(number, 2 * SU)
    releaser.run_round(300)
    assert queue.released == ["1"]  # no job is due
    releaser.run_round(600)
    assert queue.released == ["1", "2", "3"]
    assert releaser.status() == {"released": 3, "error": None, "remedy": None}

    queue.squeue_error = Unavailable("squeue ended with 1", remedy="see that slurmctld answers")
    for _ in range(2):
        releaser.run_round(1_200)
    assert releaser.status()["error"] == "squeue ended with 1"
    assert sum("squeue ended with 1" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.slow
def test_job_beyond_the_cap_of_its_user_is_not_released(site: Site) -> None:
    number = site.project("bio", 5 * SU)
    site.cap(number, JOB.uid, 0)
    mine = msgspec.structs.replace(JOB, account="bio")
    queue = SimulatedQueue(mine, msgspec.structs.replace(mine, name="8", uid=JOB.uid + 1))
    Releaser(Client(parse_address(site.address)), queue, 600).run_round(0)
    assert queue.released == ["8"]
