"""Forward simulation: the passes that decide on a cluster go on from a snapshot, with assumed run
times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappush
from typing import Any, NamedTuple, Protocol

from fairbank.scheduling.event_loop import EventLoop, M
from fairbank.scheduling.machines.machine import FOR_EVER, J, P, RunningJob
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import Snapshot

Pass = Callable[[Snapshot[J, P, M], int], SchedulePlan[J, P]]


class PassSchedule(Protocol[J, P, M]):
    """Scheduler that says which passes are due, as in the simulator."""

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass[J, P, M]]: ...

    def next_wake(self, now: int) -> int: ...

    def record_end(self, running: RunningJob[J, P], now: int) -> None: ...


class EventScheduler:
    """Scheduler with one pass at each event and at each of `instants`, which are in order."""

    def __init__(self, pass_: Pass[Any, Any, Any], instants: Sequence[int] = ()) -> None:
        self._passes = (pass_,)
        self._instants = instants

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass[Any, Any, Any]]:
        return self._passes

    def next_wake(self, now: int) -> int:
        place = bisect_right(self._instants, now)
        return self._instants[place] if place < len(self._instants) else FOR_EVER

    def record_end(self, running: RunningJob[Any, Any], now: int) -> None: ...


class SimulatedStart(NamedTuple):
    """Result of a forward simulation: start of the job (None: it did not start), and number of
    passes.
    """

    at: int | None
    passes: int


RunTimeModel = Callable[[J, int, int], int]
"""Function that returns the whole run time of a job in seconds, given its limit and the elapsed
part of it.
"""


def whole_limit(job: object, limit: int, elapsed: int) -> int:
    """Return the whole time limit; a job over its limit ends within the next second."""
    return max(limit, elapsed + 1)


def simulate_forward(
    snapshot: Snapshot[J, P, M],
    scheduler: PassSchedule[J, P, M],
    now: int,
    number: int,
    *,
    run_time: RunTimeModel[J] = whole_limit,
    arrivals: Iterable[J] = (),
    has_event: bool = False,
    max_passes: int = FOR_EVER,
) -> SimulatedStart:
    """Return when the job with this number starts.

    Args:
        snapshot: the machine, its running jobs and its queue. The simulation uses it up.
        scheduler: decides which passes are due. The simulation uses it up, too.
        now: time of the snapshot in seconds. The passes of that time are made first.
        number: number of the job.
        lasts: run time of each job.
        coming: jobs that arrive after `now`, in the order of their submit times.
        event: something happened at `now` that the scheduler does not know of.
        most: number of passes after which the simulation ends without a start.
    """
    loop = EventLoop(snapshot, scheduler.record_end)
    for running in snapshot.running:
        elapsed = now - running.started
        end = running.started + run_time(running.job, running.ends - running.started, elapsed)
        loop.ends.append((max(end, now + 1), running))
    heapify(loop.ends)
    events, passes = loop.events(arrivals), 0
    while True:
        for pass_ in scheduler.passes(now, has_event=has_event):
            if passes == max_passes:
                return SimulatedStart(None, passes)
            passes += 1
            for job, placement in pass_(snapshot, now).starts:
                if job.number == number:
                    return SimulatedStart(now, passes)
                if preempted := getattr(placement, "preempted", ()):
                    _remove(loop, scheduler, set(preempted), now)
                running = snapshot.start(job, placement, now)
                heappush(loop.ends, (now + run_time(job, running.ends - now, 0), running))
        loop.wake = scheduler.next_wake(now)
        now, arrived = next(events, (FOR_EVER, []))
        if now == FOR_EVER:
            return SimulatedStart(None, passes)
        has_event = loop.has_event
        for job in arrived:
            snapshot.queue.add(job)


def _remove(
    loop: EventLoop[J, P, M], scheduler: PassSchedule[J, P, M], numbers: set[int], now: int
) -> None:
    """End the jobs that are preempted. The simulation does not requeue them."""
    for _, running in loop.ends:
        if running.number in numbers:
            loop.snapshot.end(running)
            scheduler.record_end(running, now)
    loop.ends[:] = [end for end in loop.ends if end[1].number not in numbers]
    heapify(loop.ends)
