"""When and where a job could start, as jobs end that run now (facts, section 6.2, steps h and i).

Ends are lumped together: Slurm looks again after every stretch of ends, and the stretches double, so that a job is told a time a little
later than the first at which it would fit, for far fewer looks.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator

from fairbank.scheduling.pending import Active
from fairbank.scheduling.placement.machine import Machine
from fairbank.scheduling.placement.nodeset import NodeSet
from fairbank.scheduling.placement.placing import Request, place
from fairbank.scheduling.placement.room import Placement, Room

STRETCH = 30
"""Seconds: how precisely the first end is looked at, and the first stretch behind it."""


class Ahead:
    """The machine from now on, if everybody who runs uses the whole time limit. Rooms are kept from one job to the next."""

    def __init__(self, machine: Machine, room: Room, running: list[Active], now: int, *, linear: int = 0) -> None:
        """Whoever should have ended by now is expected to do so a stretch from now. `linear`: how much a stretch grows; 0: it doubles."""
        self.machine, self.now, self.linear = machine, now, linear
        self.running = sorted(((max(job.ends, now + STRETCH) if job.ends <= now else job.ends), job.number, job) for job in running)
        self._rooms: list[tuple[int, Room]] = [(now, room)]

    def room_at(self, at: int) -> Room:
        """What is free when all have ended who are to end by then. To be read only."""
        known = bisect_right(self._rooms, at, key=_when) - 1
        since, room = self._rooms[max(known, 0)]
        ends = self.running[bisect_right(self.running, since, key=_end) : bisect_right(self.running, at, key=_end)]
        if ends:
            room = room.copy()
            room.give_all(job.placement for _, _, job in ends)
            self._rooms.insert(known + 1, (at, room))
        return room

    def begin(self, job: Active) -> None:
        """Somebody started now."""
        insort(self.running, (job.ends, job.number, job), key=lambda each: each[:2])
        for at, room in self._rooms:
            if at < job.ends:
                room.take(job.placement)

    def end(self, job: Active) -> None:
        """Somebody was preempted now."""
        self.running = [each for each in self.running if each[1] != job.number]
        for at, room in self._rooms:
            if at < job.ends:
                room.give(job.placement)

    def first(self, request: Request, within: NodeSet, begin: int) -> tuple[int, Placement] | None:
        """The first start from `begin` on, and where; None where the job does not fit on these nodes at all."""
        found = place(self.machine, self.room_at(begin), request, within)
        if found is not None:
            return begin, found
        if not self.running or place(self.machine, self.room_at(self.running[-1][0]), request, within) is None:
            return None
        for until in self._stretches(within, begin):
            if (found := place(self.machine, self.room_at(until), request, within)) is not None:
                return self._needed(found, begin, until), found
        return None

    def _stretches(self, within: NodeSet, begin: int) -> Iterator[int]:
        """The last end of each stretch: of jobs on these nodes, for others are in nobody's way."""
        at, stretch = bisect_right(self.running, begin, key=_end), STRETCH
        while True:
            while at < len(self.running) and not self.running[at][2].nodes & within:
                at += 1
            if at == len(self.running):
                return
            until = -(-self.running[at][0] // STRETCH) * STRETCH + stretch
            at = bisect_right(self.running, until, key=_end)
            yield self.running[at - 1][0]
            stretch = stretch + self.linear if self.linear else stretch * 2

    def _needed(self, found: Placement, begin: int, until: int) -> int:
        """The end of the last job that had to end for it."""
        after, upto = bisect_right(self.running, begin, key=_end), bisect_right(self.running, until, key=_end)
        for at in range(upto - 1, after - 1, -1):
            end, _, job = self.running[at]
            if job.nodes & found.nodes:
                return end
        return begin


def _when(known: tuple[int, Room]) -> int:
    return known[0]


def _end(running: tuple[int, int, Active]) -> int:
    return running[0]
