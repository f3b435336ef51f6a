"""Upkeep: overdue holds expire and allocations end, even if another row cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.requests import CreateProject, Hold, Open, Request, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.cluster.job import Run
from fairbank.core.time import Instant, ManualClock
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import BATCH_MAX, Ledger
from fairbank.service.ops.upkeep import SweepResult, Upkeep
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.migration import migrate
from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.store import SqliteStore

BEGIN, END, LATER = Instant(1_000), Instant(2_000), Instant(9_000)


class Books:
    """Ledger in a file, which a test may damage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        migrate(f"sqlite:///{path}")
        self.store = SqliteStore(path)
        self.counter = WriterThreads(Ledger(self.store, Policy()))
        self.upkeep = Upkeep(self.store, self.counter, ManualClock(LATER), 0)

    def ask(self, *requests: Request) -> None:
        outcomes = self.counter.apply([SubmittedRequest(each, BEGIN, 0) for each in requests])
        assert all(isinstance(each, Done) for each in outcomes)

    def grant(self, number: int) -> None:
        """Make a project with an allocation of the same number."""
        self.ask(CreateProject(gname=f"g{number}", gid=number, account=f"g{number}"))
        self.ask(
            Open(
                project=number,
                resource="cpu",
                category="startup",
                start=BEGIN,
                end=END,
                deposit=SuMinutes(10_000),
            )
        )

    def hold(self, project: int, *jobs: int) -> None:
        self.ask(*(_hold(project, each) for each in jobs))

    def damage(self, allocation: int) -> None:
        """Make the row of a project unreadable."""
        with driver.connect(str(self._path)) as connection:
            connection.execute("UPDATE allocation SET shared = 7 WHERE id = ?", (allocation,))
        connection.close()

    def close(self) -> None:
        self.counter.close()
        self.store.close()


def _hold(project: int, job: int) -> Hold:
    run = Run("darwin", job, 900)
    return Hold(
        run=run,
        chain=(project,),
        resource="cpu",
        owner=7,
        amount=SuMinutes(1),
        start=BEGIN,
        until=Instant(1_500 + project),
    )


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    books = Books(tmp_path / "books.sqlite")
    yield books
    books.close()


def test_everything_overdue_is_given_back_and_ended(books: Books) -> None:
    books.grant(1)
    for begin in (0, BATCH_MAX):  # more than one transaction takes
        books.hold(1, *range(begin + 1, begin + BATCH_MAX + 1))
    assert books.upkeep.sweep() == SweepResult(2 * BATCH_MAX, 1)
    assert books.upkeep.sweep() == SweepResult(0, 0)


def test_a_row_that_cannot_be_read_keeps_nothing_else_waiting(
    books: Books, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        books.grant(number)
        books.hold(number, 10 * number, 10 * number + 1)
    books.damage(1)
    with caplog.at_level(logging.ERROR):
        assert books.upkeep.sweep() == SweepResult(4, 2)
    assert [
        each.message.partition(
            " is left as it is: the row of allocation 1 cannot be read: 7 is neither true nor false"
        )[0]
        for each in caplog.records
    ] == [
        "upkeep: the hold of run darwin/10@900.0",
        "upkeep: the hold of run darwin/11@900.0",
        "upkeep: the end of allocation 1",
    ]
    assert books.upkeep.sweep() == SweepResult(0, 0)


def test_not_even_where_a_whole_batch_cannot_be_read(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairbank.service.ops.upkeep.BATCH_MAX", 2)
    for number in (1, 2):
        books.grant(number)
        books.hold(number, *range(10 * number, 10 * number + 3))
    books.damage(1)
    assert books.upkeep.sweep() == SweepResult(3, 1)
