"""Event loop of all simulations: the time jumps from one end, arrival or due pass to the next.

The replay of a trace (`simulator.engine.clock`) and `simulate_forward`, in which the passes that
decide on a cluster go on from a snapshot, differ in run times and in what they do between two
events.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Generic, NamedTuple, Protocol

from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.snapshot import FOR_EVER, J, P, RunningJob, Snapshot


class EventLoop(Generic[J, P]):
    """Events to come on a machine under a scheduler.

    Invariant: `ends` is a heap with the real end of each job of `snapshot.running`, and no other.
    The caller pushes the end of each job that it starts, and keeps the list object while `events`
    runs.
    """

    def __init__(
        self,
        snapshot: Snapshot[J, P, Any, Any],
        on_end: Callable[[RunningJob[J, P], int], None] | None = None,
    ) -> None:
        self.snapshot, self.on_end = snapshot, on_end
        self.ends: list[tuple[int, RunningJob[J, P]]] = []
        self.wake = FOR_EVER
        """Time of the next pass if nothing happens. The caller sets it after its passes."""
        self.has_event = False
        """True if a job ends or arrives at the time that `events` yielded last."""
        self.pause_at = FOR_EVER
        self.on_pause: Callable[[int], None] | None = None
        """Called once with `pause_at`, between all that happens up to then and the next event."""

    def events(self, arrivals: Iterable[J]) -> Iterator[tuple[int, list[J]]]:
        """Yield each time at which a pass may be due, with the jobs that arrive then.

        The jobs that end at that time have ended already, so that a job which arrives in that
        second finds their processors free; the caller queues those that arrive, and then runs its
        passes. Equal ends are ordered by the fields of `RunningJob`. Each job runs for at least a
        second. Arrivals come in the order of their submit times and are read one ahead, not all at
        once.
        """
        ends, end, on_end = self.ends, self.snapshot.end, self.on_end
        coming = iter(arrivals)
        job = next(coming, None)
        arrival = FOR_EVER if job is None else job.submitted
        while True:
            now = arrival
            if ends and ends[0][0] < now:
                now = ends[0][0]
            self.has_event = now <= self.wake
            if not self.has_event:
                now = self.wake
            while self.pause_at < now:
                self._pause()
            if now == FOR_EVER:
                return
            while ends and ends[0][0] == now:
                _, running = heappop(ends)
                end(running)
                if on_end is not None:
                    on_end(running, now)
            arrived: list[J] = []
            while job is not None and arrival == now:
                arrived.append(job)
                job = next(coming, None)
                arrival = FOR_EVER if job is None else job.submitted
            yield now, arrived

    def _pause(self) -> None:
        time, self.pause_at = self.pause_at, FOR_EVER
        if self.on_pause is not None:
            self.on_pause(time)


Pass = Callable[[Any, int], SchedulePlan[J, P]]
"""Function from a snapshot and the time to a plan."""


class PassSchedule(Protocol[J, P]):
    """Scheduler that says which passes are due, as in the simulator."""

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass[J, P]]: ...

    def next_wake(self, now: int) -> int: ...

    def record_end(self, running: RunningJob[J, P], now: int) -> None: ...


class EventScheduler:
    """Scheduler with one pass at each event and at each of `instants`, which are in order."""

    def __init__(self, pass_: Pass[Any, Any], instants: Sequence[int] = ()) -> None:
        self._passes, self._instants = (pass_,), instants

    def passes(self, now: int, *, has_event: bool) -> Iterable[Pass[Any, Any]]:
        return self._passes

    def next_wake(self, now: int) -> int:
        place = bisect_right(self._instants, now)
        return self._instants[place] if place < len(self._instants) else FOR_EVER

    def record_end(self, running: RunningJob[Any, Any], now: int) -> None: ...


class StartEvent(NamedTuple, Generic[J]):
    """Job that starts in a simulation, at a time, and the number of passes made. Without a job the
    simulation is over.
    """

    job: J | None
    at: int
    passes: int


class SimulatedStart(NamedTuple):
    """Start of the job (None: it did not start), and number of passes."""

    at: int | None
    passes: int


RunTimeModel = Callable[[J, int, int], int]
"""Function from a job, its limit and its elapsed time to its whole run time, all in seconds."""


def whole_limit(job: object, limit: int, elapsed: int) -> int:
    """Return the whole time limit; a job over its limit ends within the next second.

    Args:
        job: any job; all are treated alike.
        limit: time limit in seconds.
        elapsed: seconds that the job ran already, 0 if it is not started.
    """
    return max(limit, elapsed + 1)


def simulate_forward(
    snapshot: Snapshot[J, P, Any, Any],
    scheduler: PassSchedule[J, P],
    now: int,
    number: int,
    *,
    run_time: RunTimeModel[J] = whole_limit,
    arrivals: Iterable[J] = (),
    has_event: bool = False,
    max_passes: int = FOR_EVER,
) -> SimulatedStart:
    """Return when the job with this number starts (other arguments: `simulated_starts`).

    Args:
        snapshot: the machine, its running jobs and its queue.
        scheduler: decides which passes are due.
        now: time of the snapshot in seconds.
        run_time: run time of each job.
        arrivals: jobs that arrive after `now`.
        has_event: something happened at `now`.
        max_passes: number of passes after which the simulation ends.
    """
    for job, at, passes in simulated_starts(
        snapshot,
        scheduler,
        now,
        run_time=run_time,
        arrivals=arrivals,
        has_event=has_event,
        max_passes=max_passes,
    ):
        if job is None or job.number == number:
            return SimulatedStart(None if job is None else at, passes)
    raise AssertionError("a simulation ends with an event without a job")


def simulated_starts(
    snapshot: Snapshot[J, P, Any, Any],
    scheduler: PassSchedule[J, P],
    now: int,
    *,
    run_time: RunTimeModel[J] = whole_limit,
    arrivals: Iterable[J] = (),
    has_event: bool = False,
    max_passes: int = FOR_EVER,
) -> Iterator[StartEvent[J]]:
    """Yield the starts in their order, and at last an event without a job.

    Args:
        snapshot: the machine, its running jobs and its queue. The simulation uses it up.
        scheduler: decides which passes are due. The simulation uses it up, too.
        now: time of the snapshot in seconds. The passes of that time are made first.
        run_time: run time of each job.
        arrivals: jobs that arrive after `now`, in the order of their submit times.
        has_event: something happened at `now` that the scheduler does not know of.
        max_passes: number of passes after which the simulation ends.
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
                yield StartEvent(None, now, passes)
                return
            passes += 1
            for job, placement in pass_(snapshot, now).starts:
                yield StartEvent(job, now, passes)
                if preempted := getattr(placement, "preempted", ()):
                    _remove(loop, scheduler, set(preempted), now)
                running = snapshot.start(job, placement, now)
                heappush(loop.ends, (now + run_time(job, running.ends - now, 0), running))
        loop.wake = scheduler.next_wake(now)
        now, arrived = next(events, (FOR_EVER, []))
        if now == FOR_EVER:
            yield StartEvent(None, now, passes)
            return
        has_event = loop.has_event
        for job in arrived:
            snapshot.queue.add(job)


def _remove(
    loop: EventLoop[J, P], scheduler: PassSchedule[J, P], numbers: set[int], now: int
) -> None:
    """End the jobs that are preempted. The simulation does not requeue them."""
    for _, running in loop.ends:
        if running.number in numbers:
            loop.snapshot.end(running)
            scheduler.record_end(running, now)
    loop.ends[:] = [end for end in loop.ends if end[1].number not in numbers]
    heapify(loop.ends)
