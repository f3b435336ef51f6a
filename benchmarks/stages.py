"""CPU time of a batch of 100 on PostgreSQL: step by step, in the bank and in the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from benchmarks.bank import ACTOR, BenchmarkBank
from benchmarks.ledger import charge_of, hold_of
from benchmarks.manual_loops import STARTS
from benchmarks.measure import Figure, Say, Table
from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.requests import Charge, Hold, SubmittedRequest
from fairbank.bank.rules import apply
from fairbank.cluster.job import Run
from fairbank.core.time import Instant

BATCH = 100
STEPS = ("what it needs", "lock and read", "judge", "write", "commit")
WHERE = {"the bank": STEPS, "PostgreSQL": ("lock and read", "commit")}
"""Steps that are shown. In the others the bank sends nothing to the database, so its time there is
not the bank's.
"""
ABOUT = (
    "The same batches without HTTP, in one thread: holds and then their charges, 100 per "
    "transaction, over 1,000 allocations. CPU time, user and system together, divided by the "
    "operations; for the database, of the processes that serve our connections. The last statement "
    "that writes is sent with the commit. The server's other work, above, is to read reports, to "
    "price them and to answer."
)

StepSeconds = dict[str, float]
"""CPU seconds by place and step."""


def stages(
    bank: BenchmarkBank, of_database: Callable[[], float], scale: tuple[int, int], say: Say
) -> Table:
    """Measure rounds of pairs of batches. `of_database` returns the CPU seconds of the database so
    far.
    """
    rounds, batches = scale
    jobs = count(1)
    seen: list[StepSeconds] = []
    for number in range(rounds):
        say(f"a batch step by step, round {number + 1} of {rounds}")
        spent: StepSeconds = {}
        for _ in range(batches):
            runs = [Run("steps", next(jobs), STARTS) for _ in range(BATCH)]
            for request in (hold_of, charge_of):
                _apply_batch(
                    bank,
                    [request(run, bank.projects) for run in runs],
                    _StepTimer(spent, of_database),
                )
        seen.append({where: seconds / (2 * batches * BATCH) for where, seconds in spent.items()})
    return Table("CPU time of a batch of 100", ABOUT, tuple(_figures(seen)), ())


class _StepTimer:
    """CPU time since the last step, of this thread and of the database, added to the step that
    ends.
    """

    def __init__(self, spent: StepSeconds, of_database: Callable[[], float]) -> None:
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


def _apply_batch(bank: BenchmarkBank, requests: Sequence[Hold | Charge], laps: _StepTimer) -> None:
    """Do what `Bank.ask` does with a batch when no other client holds a lock."""
    batch = [SubmittedRequest(request, Instant(STARTS), ACTOR) for request in requests]
    with bank.bank.store.transaction() as transaction:
        needs = lock_set_of(batch)
        laps.end("what it needs")
        work = transaction.load(needs)
        laps.end("lock and read")
        for request in batch:
            apply(work, request, bank.bank.policy)
        laps.end("judge")
        transaction.write(work)
        laps.end("write")
    laps.end("commit")


def _figures(seen: Sequence[StepSeconds]) -> Iterator[Figure]:
    for where, steps in WHERE.items():
        for step in steps:
            yield Figure(
                f"{where}: {step}",
                "µs",
                tuple(seconds[f"{step}: {where}"] * 1_000_000 for seconds in seen),
            )
