"""The plainest machine: processors that are all alike, of which a job is given a number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import FOR_EVER, Gap, NumberedJob, RunningJob, TimeSlot


class ProcessorJob(NumberedJob, Protocol):
    """Job that waits for processors. Its number is its position: lower numbers go first."""

    @property
    def processors(self) -> int: ...

    @property
    def limit(self) -> int:
        """Seconds that it may run, at least 1."""
        ...

    @property
    def partition(self) -> int: ...


W = TypeVar("W", bound=ProcessorJob)


class Processors(Generic[W]):
    """`size` processors, `free` of them nobody's."""

    __slots__ = ("free", "size")

    def __init__(self, size: int) -> None:
        self.size = self.free = size

    def place(self, job: W, now: int) -> int | None:
        return job.processors if job.processors <= self.free else None

    def ever(self, job: W) -> bool:
        return job.processors <= self.size

    def seconds(self, job: W, placement: int) -> int:
        return job.limit

    def take(self, placement: int) -> None:
        self.free -= placement

    def give(self, placement: int) -> None:
        self.free += placement

    def copy(self) -> Processors[W]:
        other: Processors[W] = Processors(self.size)
        other.free = self.free
        return other

    def ahead(self, running: Sequence[RunningJob[W, int]], now: int) -> ProcessorProfile[W]:
        return ProcessorProfile(self.size, self.free, running, now)


class ProcessorProfile(Generic[W]):
    """Processors from now on, as steps: `free[i]` of them from `times[i]` until the next step begins; the last one lasts for ever.

    Most passes keep something for one job at the most. Until then what is free only grows, and the place of that job is found on the way
    through the running ones; the steps are laid when a second job asks for later.
    """

    __slots__ = "_begins _drops _free _kept _known _laid _now _running _size _started _then _told free times".split()

    def __init__(
        self, size: int, free: int, running: Sequence[RunningJob[W, int]], now: int
    ) -> None:
        self._size, self._free, self._running, self._now = size, free, running, now
        self._started: list[tuple[W, TimeSlot[int]]] = []
        """They start now, and `_running` is without them."""
        self._told: list[Gap] | None = None
        """The gaps, until somebody takes."""
        self._laid = False
        self._then = free
        """What is free when the first job that cannot start now could."""
        self._kept: list[TimeSlot[int]] = []
        """Of whom the steps say nothing yet."""
        self._begins: list[int] = []
        """When something that is kept for later begins, in order: only then can there be less than before."""
        self._drops: list[tuple[int, int]] | None = []
        """When there will be less than ever before, and how much then; None: not known."""

    def now(self, job: W) -> TimeSlot[int] | None:
        wanted, end = job.processors, self._now + job.limit
        if wanted > self._free:
            return None
        if less := self._less():
            clear = self.reach(end)
            for at, free in less:
                if free < wanted and at < clear:
                    return None
        return new_tuple(TimeSlot, (self._now, end, wanted))

    def earliest(self, job: W) -> TimeSlot[int] | None:
        wanted, seconds = job.processors, job.limit
        if wanted > self._size:
            return None
        if not self._begins:
            begin, self._then = self._grown_to(wanted)
            return new_tuple(TimeSlot, (begin, begin + seconds, wanted))
        self._lay()
        times, free, reach = self.times, self.free, self.reach
        # What is taken is never given back, so for alike jobs the search goes on where it ended.
        low = self._known.get((wanted, seconds), self._now)
        step, last = bisect_right(times, low) - 1, len(times)
        while True:
            while free[step] < wanted:
                step += 1
            begin = max(times[step], low)
            until, ahead = begin + seconds, step + 1
            clear = reach(until)
            while ahead < last and times[ahead] < clear and free[ahead] >= wanted:
                ahead += 1
            if ahead == last or times[ahead] >= clear:
                self._known[wanted, seconds] = begin
                return TimeSlot(begin, until, wanted)
            step = ahead

    def take(self, job: W, slot: TimeSlot[int]) -> None:
        begin, end, processors = slot
        self._told = None
        if begin == self._now:
            drops = (
                self._less() if self._begins else ()
            )  # measured by what is free before this job takes its part
            self._free -= processors
            if not self._begins:
                self._started.append((job, slot))
                return
            if drops:
                self._drops = _strictly_less(
                    self._free,
                    [(at, free - processors if at < end else free) for at, free in drops],
                )
        elif self._begins:
            insort(self._begins, begin)
        else:
            self._begins = [begin]
            left = self._then - processors
            self._drops = [(begin, left)] if left < self._free else []
        self._kept.append(slot)

    def gaps(self) -> Sequence[Gap]:
        if self._told is None:
            self._told = self._between_drops()
        return self._told

    def _between_drops(self) -> list[Gap]:
        room, less = self._free, self._less()
        if not less:
            return [(room, FOR_EVER)] if room else []
        found: list[Gap] = []
        for at, free in less:
            found.append((room, self.edge(at) - self._now))
            room = free
        if room:
            found.append((room, FOR_EVER))
        found.reverse()
        return found

    def _less(self) -> list[tuple[int, int]]:
        if self._kept and self._laid:
            self._lay()
        if self._drops is None:
            times, free = self.times, self.free
            self._drops = _strictly_less(
                self._free, [(at, free[bisect_right(times, at) - 1]) for at in self._begins]
            )
        return self._drops

    def edge(self, begin: int) -> int:
        """When others must be gone at the latest from what is kept for somebody from `begin` on."""
        return begin

    def reach(self, until: int) -> int:
        """The same from the other side: whoever stays until then is in the way of what is kept for others from before this instant."""
        return until

    def overdue(self, ends: int) -> int:
        """When somebody is expected to end who should have by now."""
        return self._now + 1

    def _ends(self) -> Sequence[RunningJob[W, int]]:
        """Those who run and those who start now, in the order of their ends, of which none is past."""
        if self._started:
            self._running = [*self._running]
            for job, slot in self._started:
                insort(
                    self._running, RunningJob(slot.end, job.number, slot.placement, job, slot.begin)
                )
            self._started = []
        if self._running and self._running[0].ends <= self._now:
            self._running = sorted(
                each if each.ends > self._now else each._replace(ends=self.overdue(each.ends))
                for each in self._running
            )
        return self._running

    def _grown_to(self, wanted: int) -> tuple[int, int]:
        """When so many are free at first, and how many then are: all who are to end at that very second made room."""
        free, begin = self._free, self._now
        if free >= wanted:
            return begin, free
        for end, _, processors, _, _ in self._ends():
            if free >= wanted and end > begin:
                break
            free += processors
            begin = end
        return begin, free

    def _lay(self) -> None:
        """The steps: one for each instant at which somebody ends, and then cut where something is kept for somebody."""
        if not self._laid:
            self._laid = True
            self._known: dict[tuple[int, int], int] = {}
            running = self._ends()
            before = self._size - sum([each.placement for each in running])
            ends = accumulate((each.placement for each in running), initial=before)
            steps = dict(zip([self._now, *(each.ends for each in running)], ends, strict=True))
            self.times, self.free = list(steps), list(steps.values())
        free = self.free
        for begin, end, processors in self._kept:
            first = self._cut(begin)
            taken = slice(first, self._cut(end))
            left = [before - processors for before in free[taken]]
            free[taken] = left
            if (
                begin > self._now
                and self._drops is not None
                and min(left) < self._least_before(begin)
            ):
                self._drops = None
        self._kept = []

    def _least_before(self, at: int) -> int:
        """The least that is free from now until then, where the drops are known."""
        drops = self._drops or ()
        return next((free for begin, free in reversed(drops) if begin <= at), self._free)

    def _cut(self, at: int) -> int:
        """The step that begins at this instant; makes it where there is none."""
        step = bisect_left(self.times, at)
        if step == len(self.times) or self.times[step] != at:
            self.times.insert(step, at)
            self.free.insert(step, self.free[step - 1])
        return step


def _strictly_less(room: int, counts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those, in order, at which there is less than `room` and than ever before."""
    found = []
    for at, free in counts:
        if free < room:
            found.append((at, free))
            room = free
    return found
