"""Rehearsals: the same passes that decide live go on from a snapshot, from event to event, as if jobs ran as long as somebody says."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from fairbank.scheduling.machines.machine import FOR_EVER, J, Machine, P, RunningJob
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import Snapshot

M = TypeVar("M", bound=Machine[Any, Any])
Pass = Callable[[Snapshot[J, P, M], int], SchedulePlan[J, P]]


class PassSchedule(Protocol[J, P, M]):
    """Who says which passes are due, as in the simulator."""

    def passes(self, now: int, *, event: bool) -> Iterable[Pass[J, P, M]]: ...

    def wake(self, now: int) -> int: ...

    def ended(self, running: RunningJob[J, P], now: int) -> None: ...


class EventScheduler:
    """One pass whenever somebody comes or ends, and at these instants, which are in order."""

    def __init__(self, pass_: Pass[Any, Any, Any], instants: Sequence[int] = ()) -> None:
        self._passes = (pass_,)
        self._instants = instants

    def passes(self, now: int, *, event: bool) -> Iterable[Pass[Any, Any, Any]]:
        return self._passes

    def wake(self, now: int) -> int:
        place = bisect_right(self._instants, now)
        return self._instants[place] if place < len(self._instants) else FOR_EVER

    def ended(self, running: RunningJob[Any, Any], now: int) -> None: ...


class SimulatedStart(NamedTuple):
    """How a rehearsal came out: when the job started (None: not as far as it went), and how many passes it took."""

    at: int | None
    passes: int


RunTimeModel = Callable[[J, int, int], int]
"""How many seconds a job runs in all, given its limit and how much of that is past."""


def whole_limit(job: object, limit: int, elapsed: int) -> int:
    """All of its time limit; whoever is past it ends within the next second."""
    return max(limit, elapsed + 1)


def simulate_forward(
    snapshot: Snapshot[J, P, M],
    scheduler: PassSchedule[J, P, M],
    now: int,
    number: int,
    *,
    lasts: RunTimeModel[J] = whole_limit,
    coming: Iterable[tuple[int, J]] = (),
    event: bool = False,
    most: int = FOR_EVER,
) -> SimulatedStart:
    """When the job of this number starts. The snapshot and the scheduler, whose queue it has, are used up.

    coming   who comes later, and when, in order
    event    something happened just now, of which the scheduler does not know yet
    most     so many passes are made at the most
    """
    stage, made = _Stage(snapshot, scheduler, now, lasts, coming), 0
    while True:
        for pass_ in scheduler.passes(now, event=event):
            if made == most:
                return SimulatedStart(None, made)
            made += 1
            for job, placement in pass_(snapshot, now).starts:
                if job.number == number:
                    return SimulatedStart(now, made)
                stage.start(job, placement, now)
        now, event = stage.next(now)
        if now == FOR_EVER:
            return SimulatedStart(None, made)
        stage.move(now)


class _Stage(Generic[J, P, M]):
    """What goes on between passes: who leaves when, and who comes."""

    def __init__(
        self,
        snapshot: Snapshot[J, P, M],
        scheduler: PassSchedule[J, P, M],
        now: int,
        lasts: RunTimeModel[J],
        coming: Iterable[tuple[int, J]],
    ) -> None:
        self._snapshot, self._scheduler, self._lasts = snapshot, scheduler, lasts
        self._leaving = [
            (
                max(
                    each.started + lasts(each.job, each.ends - each.started, now - each.started),
                    now + 1,
                ),
                each.number,
                each,
            )
            for each in snapshot.running
        ]
        heapify(self._leaving)
        self._arrivals = iter(coming)
        self._newcomer = next(self._arrivals, None)

    def start(self, job: J, placement: P, now: int) -> None:
        """It runs from now on, and those go whose place it takes."""
        if gone := set(getattr(placement, "instead", ())):
            self._remove(gone, now)
        running = self._snapshot.start(job, placement, now)
        heappush(
            self._leaving, (now + self._lasts(job, running.ends - now, 0), job.number, running)
        )

    def next(self, now: int) -> tuple[int, bool]:
        """When the next passes are due, and whether somebody ends or comes then."""
        at = self._leaving[0][0] if self._leaving else FOR_EVER
        if self._newcomer is not None:
            at = min(at, self._newcomer[0])
        wake = self._scheduler.wake(now)
        return min(at, wake), at <= wake

    def move(self, now: int) -> None:
        """Whoever is over goes, and whoever is due is there."""
        while self._leaving and self._leaving[0][0] == now:
            _, _, running = heappop(self._leaving)
            self._snapshot.end(running)
            self._scheduler.ended(running, now)
        while self._newcomer is not None and self._newcomer[0] <= now:
            self._snapshot.queue.add(self._newcomer[1])
            self._newcomer = next(self._arrivals, None)

    def _remove(self, gone: set[int], now: int) -> None:
        """Nobody waits for their return."""
        for _, number, running in self._leaving:
            if number in gone:
                self._snapshot.end(running)
                self._scheduler.ended(running, now)
        self._leaving = [each for each in self._leaving if each[1] not in gone]
        heapify(self._leaving)
