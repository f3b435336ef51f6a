"""Where the processors' time of a batch of 100 on PostgreSQL goes: step by step, in the bank and in the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from benchmarks.books import ACTOR, Books
from benchmarks.ledger import charge_of, hold_of
from benchmarks.loops import STARTS
from benchmarks.measure import Figure, Say, Table
from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.requests import Charge, Hold, SubmittedRequest
from fairbank.bank.rules import apply
from fairbank.cluster.job import Run
from fairbank.core.time import Instant

BATCH = 100
STEPS = ("what it needs", "lock and read", "judge", "write", "commit")
WHERE = {"the bank": STEPS, "PostgreSQL": ("lock and read", "commit")}
"""Which steps are told: in the others the database is asked nothing, and what its processes spend meanwhile is none of ours."""
ABOUT = (
    "The same batches without HTTP, in one thread: holds and then their charges, 100 in a transaction, over 1,000 allocations. "
    "Processor time, user and system together, divided by the operations; of the database that of the processes that serve our "
    "connections. The last statement that writes goes with the commit. What the server spends beyond this, above, is to read reports, "
    "to price them and to answer."
)

Spent = dict[str, float]
"""Seconds, by where they were spent and in which step."""


def stages(
    books: Books, of_database: Callable[[], float], scale: tuple[int, int], say: Say
) -> Table:
    """So many rounds of so many pairs of batches; `of_database` is what the database has spent so far, in seconds."""
    rounds, batches = scale
    jobs = count(1)
    seen: list[Spent] = []
    for number in range(rounds):
        say(f"a batch step by step, round {number + 1} of {rounds}")
        spent: Spent = {}
        for _ in range(batches):
            runs = [Run("steps", next(jobs), STARTS) for _ in range(BATCH)]
            for request in (lambda run: hold_of(run, books.projects), charge_of):
                _asked(books, [request(run) for run in runs], _Laps(spent, of_database))
        seen.append({where: seconds / (2 * batches * BATCH) for where, seconds in spent.items()})
    return Table("Where the time of a batch of 100 goes", ABOUT, tuple(_figures(seen)), ())


class _Laps:
    """What was spent since the last step, in this thread and in the database, is added to the step that ends now."""

    def __init__(self, spent: Spent, of_database: Callable[[], float]) -> None:
        self._spent, self._of_database = spent, of_database
        self._before = self._now()

    def end(self, step: str) -> None:
        now = self._now()
        for where, before, after in zip(WHERE, self._before, now, strict=True):
            key = f"{step}: {where}"
            self._spent[key] = self._spent.get(key, 0) + after - before
        self._before = self._now()

    def _now(self) -> tuple[float, float]:
        return time.thread_time(), self._of_database()


def _asked(books: Books, requests: Sequence[Hold | Charge], laps: _Laps) -> None:
    """What `Bank.ask` does with a batch that nobody is in the way of."""
    batch = [SubmittedRequest(request, Instant(STARTS), ACTOR) for request in requests]
    with books.bank.store.transaction() as transaction:
        needs = lock_set_of(batch)
        laps.end("what it needs")
        work = transaction.load(needs)
        laps.end("lock and read")
        for each in batch:
            apply(work, each, books.bank.policy)
        laps.end("judge")
        transaction.write(work)
        laps.end("write")
    laps.end("commit")


def _figures(seen: Sequence[Spent]) -> Iterator[Figure]:
    for where, steps in WHERE.items():
        for step in steps:
            yield Figure(
                f"{where}: {step}",
                "µs",
                tuple(each[f"{step}: {where}"] * 1_000_000 for each in seen),
            )
