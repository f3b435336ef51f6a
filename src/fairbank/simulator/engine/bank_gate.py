"""Scheduler whose starts the bank must approve: the policy orders, the bank pays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial

from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import Hole, RunningJob
from fairbank.simulator.engine.clock import (
    JobQueue,
    OnProcessors,
    ProcessorPass,
    SimulationScheduler,
)
from fairbank.simulator.engine.grants import Unpaid
from fairbank.simulator.engine.simulated_bank import SimulatedBank
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.traces.workload import TraceJob


class UnpaidLastQueue:
    """Queue with the jobs that run unpaid behind all others, in the order of their numbers."""

    def __init__(self, payers: JobQueue) -> None:
        self._payers = payers
        self._unpaid: dict[int, TraceJob] = {}

    def add(self, job: TraceJob) -> None:
        self._payers.add(job)

    def remove(self, job: TraceJob) -> None:
        if self._unpaid.pop(job.number, None) is None:
            self._payers.remove(job)

    def move_to_end(self, job: TraceJob) -> None:
        """Let a job that no allocation pays for wait behind all others from now on."""
        self._payers.remove(job)
        self._unpaid = dict(sorted({**self._unpaid, job.number: job}.items()))

    @property
    def min_processors(self) -> int:
        return min(
            [self._payers.min_processors, *(job.processors for job in self._unpaid.values())]
        )

    def __len__(self) -> int:
        return len(self._payers) + len(self._unpaid)

    def jobs(self) -> Iterator[TraceJob]:
        yield from self._payers.jobs()
        yield from self._unpaid.values()

    def order(self, now: int) -> _UnpaidLastOrder:
        return _UnpaidLastOrder(self._payers, list(self._unpaid.values()), now)


_UNPAID_OFFSET = 1 << 60
"""Added to the positions of unpaid jobs. The number of a job is never as high."""


class _UnpaidLastOrder:
    """Both parts of the queue as one order."""

    def __init__(self, payers: JobQueue, last: list[TraceJob], now: int) -> None:
        self._payers, self._unpaid, self._jobs = payers.order(now), JobList(last), last

    def __iter__(self) -> Iterator[tuple[int, TraceJob]]:
        yield from self._payers
        for position, job in self._unpaid:
            yield position + _UNPAID_OFFSET, job

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, TraceJob] | None:
        first = self._payers.first_that_fits(after, holes) if after < _UNPAID_OFFSET else None
        if first is None and self._jobs:
            behind = self._unpaid.first_that_fits(max(after - _UNPAID_OFFSET, -1), holes)
            first = behind and (behind[0] + _UNPAID_OFFSET, behind[1])
        return first


class BankGate(SimulationScheduler):
    """Scheduler that requests a hold before each start, and charges at each end.

    A job without credit is refused when it would start, and never runs. With Unpaid.LAST it waits
    behind all jobs that pay, and runs unpaid when no other job wants the processors. Other jobs get
    its place at once: the pass is repeated.
    """

    is_stateful = True

    def __init__(self, inner: SimulationScheduler, bank: SimulatedBank, unpaid: Unpaid) -> None:
        self._inner, self._bank, self._unpaid = inner, bank, unpaid
        self.queue = inner.queue
        if unpaid is Unpaid.LAST and not isinstance(inner.queue, PriorityQueue):
            self.queue = UnpaidLastQueue(inner.queue)
        if isinstance(inner, SlurmScheduler):
            inner.usage_state.credit = bank.remaining_credit
        self._unpaid_jobs: set[int] = set()
        self._refused_processors = 0
        self._repeat = False

    def order(self, snapshot: OnProcessors, now: int) -> Iterable[tuple[int, TraceJob]]:
        """Return the order of the policy, with unpaid jobs behind it."""
        if isinstance(self.queue, UnpaidLastQueue):
            return self.queue.order(now)
        return self._inner.order(snapshot, now)

    def passes(self, now: int, *, has_event: bool) -> Iterator[ProcessorPass]:
        for pass_ in self._inner.passes(now, has_event=has_event):
            self._repeat = True
            while self._repeat:
                yield partial(self._approved_pass, pass_)

    def _approved_pass(
        self, pass_: ProcessorPass, snapshot: OnProcessors, now: int
    ) -> SchedulePlan[TraceJob, int]:
        plan = pass_(snapshot, now)
        starts = [
            start for start in plan.starts if self.approve_start(start.job, now, is_waiting=True)
        ]
        self._repeat = len(starts) < len(plan.starts)
        return plan._replace(starts=starts) if self._repeat else plan

    def approve_start(self, job: TraceJob, now: int, *, is_waiting: bool = False) -> bool:
        """Return True if a job may start. With credit it gets a hold.

        Args:
            job: the job that would start.
            now: time in seconds of the trace.
            is_waiting: True if the job is in the queue: a refused one leaves it or moves back.
        """
        if job.number in self._unpaid_jobs:
            self._bank.count_unpaid(job)
            return True
        if self._bank.hold(job, now):
            return True
        if self._unpaid is Unpaid.REFUSE:
            self._bank.count_refused(job)
            if is_waiting:
                self.queue.remove(job)
                self._refused_processors += job.processors
            return False
        self._unpaid_jobs.add(job.number)
        if is_waiting:
            if isinstance(self.queue, PriorityQueue | UnpaidLastQueue):
                self.queue.move_to_end(job)
            return False
        self._bank.count_unpaid(job)
        return True

    def take_refused_processors(self) -> int:
        refused, self._refused_processors = self._refused_processors, 0
        return refused

    def next_wake(self, now: int) -> int:
        return self._inner.next_wake(now)

    def count_skipped(self, until: int) -> None:
        self._inner.count_skipped(until)

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None:
        number = running.job.number
        if number in self._unpaid_jobs:
            self._unpaid_jobs.remove(number)
        else:
            self._bank.charge(running.job, now)
        if self._inner.is_stateful:
            self._inner.record_end(running, now)

    def copy(self) -> BankGate:
        """Return a copy with an empty queue and a ledger of its own."""
        other = BankGate(self._inner.copy(), deepcopy(self._bank), self._unpaid)
        other._unpaid_jobs = set(self._unpaid_jobs)
        return other
