"""Event loop of all simulations: the time jumps from one end, arrival or due pass to the next.

The replay of a trace (`simulator.engine.clock`) and the simulation of a queue from now on
(`explain.forward_simulation`) differ in run times and in what they do between two events, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop
from typing import Any, Generic, TypeVar

from fairbank.scheduling.machines.machine import FOR_EVER, J, Machine, P, RunningJob
from fairbank.scheduling.snapshot import Snapshot

M = TypeVar("M", bound=Machine[Any, Any])


class EventLoop(Generic[J, P, M]):
    """Events to come on a machine under a scheduler.

    Invariant: `ends` is a heap with the real end of each job of `snapshot.running`, and no other.
    The caller pushes the end of each job that it starts, and keeps the list object while `events`
    runs.
    """

    def __init__(
        self,
        snapshot: Snapshot[J, P, M],
        on_end: Callable[[RunningJob[J, P], int], None] | None = None,
    ) -> None:
        self.snapshot, self.on_end = snapshot, on_end
        self.ends: list[tuple[int, RunningJob[J, P]]] = []
        self.wake = FOR_EVER
        """Time at which the scheduler wants a pass even if nothing happens. The caller sets it
        after its passes.
        """
        self.has_event = False
        """True if a job ends or arrives at the time that `events` yielded last."""
        self.pause_at = FOR_EVER
        self.on_pause: Callable[[int], None] | None = None
        """Called once with `pause_at`, between all that happens up to then and the next event."""

    def events(self, arrivals: Iterable[J]) -> Iterator[tuple[int, list[J]]]:
        """Yield each time at which a pass may be due, with the jobs that arrive then.

        The jobs that end at that time have ended already; the caller queues those that arrive.
        Arrivals come in the order of their submit times and are read one ahead, not all at once.
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
