"""Upkeep: overdue holds expire and allocations end, even if another row cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.requests import CreateProject, Hold, Open, Request, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.bank.run import ReportedRun
from fairbank.cluster.job import Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import BATCH_MAX, Ledger
from fairbank.service.ops.upkeep import SweepResult, Upkeep
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.migration import migrate
from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.store import SqliteStore
from tests.support.clock import ManualClock

BEGIN, END, LATER = Instant(1_000), Instant(2_000), Instant(9_000)


class LedgerFile:
    """Ledger in a file, which a test may damage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        migrate(f"sqlite:///{path}")
        self.store = SqliteStore(path)
        self.write_queue = WriterThreads(Ledger(self.store, Policy()))
        self.upkeep = Upkeep(self.store, self.write_queue, ManualClock(LATER), 0)

    def apply(self, *requests: Request) -> None:
        outcomes = self.write_queue.apply(
            [SubmittedRequest(request, BEGIN, 0) for request in requests]
        )
        assert all(isinstance(outcome, Done) for outcome in outcomes)

    def grant(self, number: int) -> None:
        """Make a project with an allocation of the same number."""
        self.apply(CreateProject(gname=f"g{number}", gid=number, account=f"g{number}"))
        self.apply(
            Open(
                terms=AllocationTerms(
                    project=number, resource="cpu", category="startup", start=BEGIN, end=END
                ),
                deposit=SuMinutes(10_000),
            )
        )

    def hold(self, project: int, *jobs: int) -> None:
        self.apply(*(_hold(project, job) for job in jobs))

    def damage(self, allocation: int) -> None:
        """Make the row of a project unreadable."""
        with driver.connect(str(self._path)) as connection:
            connection.execute("UPDATE allocation SET shared = 7 WHERE id = ?", (allocation,))
        connection.close()

    def close(self) -> None:
        self.write_queue.close()
        self.store.close()


def _hold(project: int, job: int) -> Hold:
    run = Run("darwin", job, 900)
    return Hold(
        reported=ReportedRun(run, project, "", BEGIN, Instant(1_500 + project)),
        chain=(project,),
        resource="cpu",
        owner=7,
        amount=SuMinutes(1),
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[LedgerFile]:
    ledger = LedgerFile(tmp_path / "fairbank.sqlite")
    yield ledger
    ledger.close()


def test_overdue_holds_lapse_and_allocations_end(ledger: LedgerFile) -> None:
    ledger.grant(1)
    for begin in (0, BATCH_MAX):  # more than fits one transaction
        ledger.hold(1, *range(begin + 1, begin + BATCH_MAX + 1))
    assert ledger.upkeep.sweep() == SweepResult(2 * BATCH_MAX, 1)
    assert ledger.upkeep.sweep() == SweepResult(0, 0)


def test_sums_of_usage_are_brought_up_to_date(ledger: LedgerFile) -> None:
    ledger.grant(1)
    ledger.hold(1, 1, 2, 3)
    ledger.upkeep.add_up_usage()
    assert ledger.store.fold_usage() == 0
    ledger.hold(1, 4)
    assert ledger.store.fold_usage() == 1


def test_unreadable_row_does_not_block_others(
    ledger: LedgerFile, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        ledger.grant(number)
        ledger.hold(number, 10 * number, 10 * number + 1)
    ledger.damage(1)
    with caplog.at_level(logging.ERROR):
        assert ledger.upkeep.sweep() == SweepResult(4, 2)
    assert [
        record.message.partition(
            " is left as it is: the row of allocation 1 cannot be read: 7 is neither true nor false"
        )[0]
        for record in caplog.records
    ] == [
        "upkeep: the hold of run darwin/10@900.0",
        "upkeep: the hold of run darwin/11@900.0",
        "upkeep: the end of allocation 1",
    ]
    assert ledger.upkeep.sweep() == SweepResult(0, 0)


def test_unreadable_batch_does_not_block_others(
    ledger: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairbank.service.ops.upkeep.BATCH_MAX", 2)
    for number in (1, 2):
        ledger.grant(number)
        ledger.hold(number, *range(10 * number, 10 * number + 3))
    ledger.damage(1)
    assert ledger.upkeep.sweep() == SweepResult(3, 1)
