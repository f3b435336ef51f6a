"""A scheduler whose starts the bank must agree to. Who is next is still the policy's affair; whether it can be paid is the bank's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from fairbank.scheduling.machines.machine import RunningJob, StartsNow
from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import QueueOrder
from fairbank.simulator.engine.grants import Unpaid
from fairbank.simulator.engine.scheduler import JobQueue, OnProcessors, Pass, SimulationScheduler
from fairbank.simulator.engine.simulated_bank import SimulatedBank
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.traces.workload import TraceJob


class PayersFirst:
    """A queue, and behind all in it those who run for nothing, in the order of their numbers."""

    reasons: Mapping[int, str] = {}

    def __init__(self, payers: JobQueue) -> None:
        self._payers = payers
        self._last: dict[int, TraceJob] = {}

    def add(self, job: TraceJob) -> None:
        self._payers.add(job)

    def remove(self, job: TraceJob) -> None:
        if self._last.pop(job.number, None) is None:
            self._payers.remove(job)

    def put_last(self, job: TraceJob) -> None:
        """Nobody pays for it: from now on it waits behind all others."""
        self._payers.remove(job)
        self._last = dict(sorted({**self._last, job.number: job}.items()))

    @property
    def narrowest(self) -> int:
        return min([self._payers.narrowest, *(job.processors for job in self._last.values())])

    def __len__(self) -> int:
        return len(self._payers) + len(self._last)

    def jobs(self) -> Iterator[TraceJob]:
        yield from self._payers.jobs()
        yield from self._last.values()

    def line(self, now: int) -> _InTwo:
        return _InTwo(self._payers, list(self._last.values()), now)


_BEHIND = 1 << 60
"""Added to the turns of those who run for nothing: no number of a job is as high."""


class _InTwo:
    """Both parts as one line."""

    reasons: Mapping[int, str] = {}

    def __init__(self, payers: JobQueue, last: list[TraceJob], now: int) -> None:
        self._payers, self._last, self._jobs = payers.line(now), JobList(last), last

    def __iter__(self) -> Iterator[tuple[int, TraceJob]]:
        yield from self._payers
        for turn, job in self._last:
            yield turn + _BEHIND, job

    def lines(self) -> Iterable[Iterator[tuple[int, TraceJob]]]:
        found: dict[int, list[tuple[int, TraceJob]]] = {}
        for turn, job in self:
            found.setdefault(job.partition, []).append((turn, job))
        return map(iter, found.values())

    def first(self, after: int, ahead: StartsNow[TraceJob, Any]) -> tuple[int, TraceJob] | None:
        found = self._payers.first(after, ahead) if after < _BEHIND else None
        if found is None and self._jobs:
            behind = self._last.first(max(after - _BEHIND, -1), ahead)
            found = behind and (behind[0] + _BEHIND, behind[1])
        return found


class BankGate:
    """Asks the bank for a hold before each start, and charges at each end.

    A job that cannot be paid when its turn has come is refused, and never runs; or with Unpaid.LAST it waits on behind all who pay, and
    runs for nothing when nobody else wants the processors. Its place is given to others at once: the pass is made again.
    """

    attends = True

    def __init__(self, inner: SimulationScheduler, till: SimulatedBank, unpaid: Unpaid) -> None:
        self._inner, self._till, self._unpaid = inner, till, unpaid
        inside = inner.queue
        self.queue: JobQueue = (
            inside
            if unpaid is Unpaid.REFUSE or isinstance(inside, PriorityQueue)
            else PayersFirst(inside)
        )
        if isinstance(inner, SlurmScheduler):
            inner.standing.credit = till.left
        self._for_nothing: set[int] = set()
        self._turned_away = 0
        self._again = False

    def line(self, snapshot: OnProcessors, now: int) -> QueueOrder[TraceJob]:
        """As the policy has it, and behind it those who run for nothing."""
        return (
            self.queue.line(now)
            if isinstance(self.queue, PayersFirst)
            else self._inner.line(snapshot, now)
        )

    def passes(self, now: int, *, event: bool) -> Iterator[Pass]:
        for each in self._inner.passes(now, event=event):
            self._again = True
            while self._again:
                yield self._agreed(each)

    def _agreed(self, pass_: Pass) -> Pass:
        def judged(snapshot: OnProcessors, now: int) -> SchedulePlan[TraceJob, int]:
            plan = pass_(snapshot, now)
            starts = [start for start in plan.starts if self.admits(start.job, now, waits=True)]
            self._again = len(starts) < len(plan.starts)
            return plan._replace(starts=starts) if self._again else plan

        return judged

    def admits(self, job: TraceJob, now: int, *, waits: bool = False) -> bool:
        """Whether a job may start now. One that `waits` and may not leaves the queue, or goes to its end."""
        if job.number in self._for_nothing:
            self._till.unpaid(job)
            return True
        if self._till.hold(job, now):
            return True
        if self._unpaid is Unpaid.REFUSE:
            self._till.refused(job)
            if waits:
                self.queue.remove(job)
                self._turned_away += job.processors
            return False
        self._for_nothing.add(job.number)
        if waits:
            self._put_last(job)
            return False
        self._till.unpaid(job)
        return True

    def _put_last(self, job: TraceJob) -> None:
        queue = self.queue
        if isinstance(queue, PriorityQueue | PayersFirst):
            queue.put_last(job)

    def turned_away(self) -> int:
        """How many processors those wanted who left the queue since this was last asked, without a start."""
        found, self._turned_away = self._turned_away, 0
        return found

    def wake(self, now: int) -> int:
        return self._inner.wake(now)

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None:
        number = running.job.number
        if number in self._for_nothing:
            self._for_nothing.remove(number)
        else:
            self._till.charge(running.job, now)
        if self._inner.attends:
            self._inner.ended(running, now)

    def copy(self) -> BankGate:
        """The same with nobody in the queue, and books of its own."""
        other = BankGate(self._inner.copy(), deepcopy(self._till), self._unpaid)
        other._for_nothing = set(self._for_nothing)
        return other
