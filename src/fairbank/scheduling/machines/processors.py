"""Simplest machine: identical processors. The placement of a job is their number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from fairbank.scheduling.machines.fronts import Front, add_shape
from fairbank.scheduling.snapshot import (
    FOR_EVER,
    Hole,
    NumberedJob,
    RemainingHoles,
    RunningJob,
    Snapshot,
    new_tuple,
)


class ProcessorJob(NumberedJob, Protocol):
    """Job that waits for processors. `limit` is in seconds, at least 1."""

    @property
    def processors(self) -> int: ...

    @property
    def limit(self) -> int: ...

    @property
    def partition(self) -> int: ...

    @property
    def user(self) -> int: ...

    @property
    def group(self) -> int: ...


W = TypeVar("W", bound=ProcessorJob)


class Processors(Generic[W]):
    """Machine of `size` processors, of which `free` are free."""

    __slots__ = ("free", "size")

    def __init__(self, size: int) -> None:
        self.size = self.free = size

    def seconds(self, job: W, placement: int) -> int:
        return job.limit

    def take(self, placement: int) -> None:
        self.free -= placement

    def give(self, placement: int) -> None:
        self.free += placement

    def profile(self, running: Sequence[RunningJob[W, int]], now: int) -> ProcessorProfile[W]:
        return ProcessorProfile(self.size, self.free, running, now)


ProcessorSnapshot = Snapshot[W, int, Processors[W], Any]


END = 4 * FOR_EVER
"""Time behind every begin and end."""
LATEST, LATEST_MAX = 64, 128
"""Begins that a search for a later slot looks through."""


class TimeSlot(NamedTuple):
    """Processors for a job from `begin` until just before `end`."""

    begin: int
    end: int
    processors: int


class ProcessorProfile(Generic[W]):
    """Free processors over time, as steps: `free[i]` of them from `times[i]` until the next step
    begins. The last step begins at `END` and ends every search without a test of the index.

    Invariants: `_new_slots` are the slots before the steps are built. `_drops` are the times at
    which fewer processors are free than at all times between now and then, with their number; None:
    unknown.
    `_has_later_slots`: a slot begins later than now. Without one, free processors only increase.
    `_running` is in the order of the ends and lacks `_started`, the jobs that start now. `_holes`
    is a cache, valid until the next `take`. `_free_at_first`: free processors when the first slot
    later than now begins. `_latest` has the latest begins found, with the number of processors and
    the time limit.

    Optimisation: most passes reserve for one job at most. Until then free processors only increase,
    and a scan over the running jobs finds the place of that job. The steps are built when a second
    job needs a later slot.
    """

    __slots__ = (
        "_drops _free _free_at_first _has_later_slots _has_steps _holes _latest _new_slots "
        "_now _running _search_end _size _started free times"
    ).split()

    def __init__(
        self, size: int, free: int, running: Sequence[RunningJob[W, int]], now: int
    ) -> None:
        self._size, self._free, self._running, self._now = size, free, running, now
        self._started: list[tuple[W, TimeSlot]] = []
        self._holes: list[Hole] | None = None
        self._has_steps = False
        self._free_at_first = free
        self._new_slots: list[TimeSlot] = []
        self._has_later_slots = False
        self._drops: list[tuple[int, int]] | None = []
        self._search_end = FOR_EVER

    def slot_now(self, job: W) -> TimeSlot | None:
        """Return the slot if the job fits now and delays no reservation; else None."""
        wanted, end = job.processors, self._now + job.limit
        if wanted > self._free:
            return None
        if drops := self._find_drops():
            first_begin = self.first_begin_after(end)
            for at, free in drops:
                if free < wanted and at < first_begin:
                    return None
        return new_tuple(TimeSlot, (self._now, end, wanted))

    def earliest_slot(self, job: W) -> TimeSlot:
        """Return the earliest slot of a job that is not wider than the machine.

        Behind `_search_end` the job may have to wait even longer.
        """
        wanted, seconds = job.processors, job.limit
        if not self._has_later_slots:
            begin, self._free_at_first = self._first_time_with(wanted)
            return new_tuple(TimeSlot, (begin, begin + seconds, wanted))
        if not self._has_steps:
            self._build_steps()
        times, free, latest = self.times, self.free, self._latest
        search_end, resolution = self._search_end, self.resolution
        # What is taken is never given back, so no begin before the last one found for a job that is
        # as narrow and short, or more so, can be free again.
        low = self._now
        for before, width, limit in latest:
            if width <= wanted and limit <= seconds:
                if -before > low:
                    low = -before
                break
        begin = low
        step = bisect_right(times, low) - 1
        while begin < search_end:
            while free[step] < wanted:
                step += 1
            if times[step] > begin:
                begin = times[step]
            # Slurm's backfill rounds the end up to its resolution. So drops up to the next time at
            # which a slot may begin matter, also those after the end of the job.
            first_begin = begin + seconds
            if resolution:  # `first_begin_after`, without its call: 4 % of a pass
                first_begin += resolution - first_begin % resolution
            step += 1
            while times[step] < first_begin and free[step] >= wanted:
                step += 1
            if times[step] >= first_begin:
                break
        if begin > low:
            insort(latest, (-begin, wanted, seconds))
            if len(latest) > LATEST_MAX:
                # Behind the begin of a narrower and shorter job no other is of use.
                front: Front = []
                latest[:] = [slot for slot in latest if add_shape(front, slot[1:])][:LATEST]
        return new_tuple(TimeSlot, (begin, begin + seconds, wanted))

    def take(self, job: W, slot: TimeSlot) -> None:
        """Reserve a slot, which must be free, for the job."""
        begin, end, processors = slot
        self._holes = None
        if begin == self._now:
            # Measured by what is free before this job takes its part.
            drops = self._find_drops() if self._has_later_slots else ()
            self._free -= processors
            if not self._has_later_slots:
                self._started.append((job, slot))
                return
            if drops:
                self._drops = _strictly_less(
                    self._free,
                    [(at, free - processors if at < end else free) for at, free in drops],
                )
        elif not self._has_later_slots:
            self._has_later_slots = True
            left = self._free_at_first - processors
            self._drops = [(begin, left)] if left < self._free else []
        if self._has_steps:
            self._cut_steps(slot)
        else:
            self._new_slots.append(slot)

    def holes(self) -> Sequence[Hole]:
        """Return the free holes from now on, the narrowest and longest first."""
        if self._holes is None:
            width, holes = self._free, list[Hole]()
            for at, free in self._find_drops():
                holes.append((width, self.last_end_before(at) - self._now))
                width = free
            if width:
                holes.append((width, FOR_EVER))
            holes.reverse()
            self._holes = holes
        return self._holes

    def _find_drops(self) -> list[tuple[int, int]]:
        if self._drops is None:
            self._drops = _strictly_less(self._free, zip(self.times, self.free, strict=True))
        return self._drops

    resolution = 0
    """Seconds of a step in which no slot begins after the end of a job; 0: there are no steps."""

    def last_end_before(self, begin: int) -> int:
        """Return the latest time at which other jobs may end if a slot begins at `begin`."""
        return begin

    def first_begin_after(self, until: int) -> int:
        """Return the first time at which a slot may begin if another job stays until `until`."""
        return until

    def overdue_end(self, ends: int) -> int:
        """Return the expected end of a job that should have ended at `ends`."""
        return self._now + 1

    def _sorted_ends(self) -> Sequence[RunningJob[W, int]]:
        """Return all jobs that run or start now, by expected end, none of which is past."""
        if self._started:
            self._running = [*self._running]
            for job, slot in self._started:
                insort(
                    self._running,
                    RunningJob(slot.end, job.number, slot.processors, job, slot.begin),
                )
            self._started = []
        if self._running and self._running[0].ends <= self._now:
            self._running = sorted(
                job_running
                if job_running.ends > self._now
                else job_running._replace(ends=self.overdue_end(job_running.ends))
                for job_running in self._running
            )
        return self._running

    def _first_time_with(self, wanted: int) -> tuple[int, int]:
        """Return the first second with enough free processors, and how many are free then."""
        free, begin = self._free, self._now
        if free >= wanted:
            return begin, free
        for end, _, processors, _, _ in self._sorted_ends():
            if free >= wanted and end > begin:
                break
            free += processors
            begin = end
        return begin, free

    def _build_steps(self) -> None:
        """Build a step for each end of a running job; cut steps where slots begin or end."""
        self._has_steps = True
        self._latest: list[tuple[int, int, int]] = []
        running = self._sorted_ends()
        before = self._size - sum([job_running.placement for job_running in running])
        ends = accumulate((job_running.placement for job_running in running), initial=before)
        steps = dict(
            zip([self._now, *(job_running.ends for job_running in running)], ends, strict=True)
        )
        self.times, self.free = [*steps, END], [*steps.values(), self._size]
        for slot in self._new_slots:
            self._cut_steps(slot)

    def _cut_steps(self, slot: TimeSlot) -> None:
        times, free, now = self.times, self.free, self._now
        begin, end, processors = slot
        first = bisect_left(times, begin)
        if times[first] != begin:
            times.insert(first, begin)
            free.insert(first, free[first - 1])
        last = bisect_left(times, end, first)
        if times[last] != end:
            times.insert(last, end)
            free.insert(last, free[last - 1])
        left = [before - processors for before in free[first:last]]
        free[first:last] = left
        # The slot adds a drop only if it leaves fewer than are free at all times before it. Which
        # of the drops after it remain is then unknown. A slot that begins now changes the drops in
        # `take`.
        if begin > now and self._drops is not None:
            least = self._free
            for at, fewer in self._drops:
                if at > begin:
                    break
                least = fewer
            if min(left) < least:
                self._drops = None


def _strictly_less(least: int, counts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times, in order, with fewer than `least` free processors and fewer than before."""
    drops = []
    for time, free in counts:
        if free < least:
            drops.append((time, free))
            least = free
    return drops


class Holes(Generic[W]):
    """Holes that are left now, while new jobs start. No job ended since the plan, and none should
    have.
    """

    __slots__ = ("_holes", "_now")

    def __init__(self, remaining: RemainingHoles, now: int) -> None:
        self._now = now
        at, holes = remaining
        self._holes: Sequence[Hole] = (
            holes if at == now else [(width, seconds - now + at) for width, seconds in holes]
        )

    def slot_now(self, job: W) -> TimeSlot | None:
        """Return the slot of a job that fits a hole now; None if it fits none."""
        wanted, seconds = job.processors, job.limit
        for width, lasts in self._holes:
            if wanted <= width:
                if seconds <= lasts:
                    return new_tuple(TimeSlot, (self._now, self._now + seconds, wanted))
                return None
        return None

    def take(self, job: W, slot: TimeSlot) -> None:
        self._holes = reduce_holes(self._holes, slot.processors, slot.end - slot.begin)

    def holes(self) -> Sequence[Hole]:
        return self._holes

    def remaining(self) -> RemainingHoles:
        return new_tuple(RemainingHoles, (self._now, self._holes))


def reduce_holes(holes: Sequence[Hole], processors: int, seconds: int) -> list[Hole]:
    """Return what is left of holes when a job that fits takes processors.

    Args:
        holes: number of processors and seconds of each hole, the narrowest and longest first.
        processors: processors that the job takes.
        seconds: time that it takes them, from now on.
    """
    reduced: list[Hole] = []
    rest = FOR_EVER
    for width, lasts in reversed(holes):  # from the widest on
        left = width - processors
        if left > rest:
            left = rest
        if reduced and reduced[-1][0] == left:
            reduced.pop()
        if left:
            reduced.append((left, lasts))
        if lasts >= seconds:
            # The job ends within this hole. Longer holes keep their width, but not beyond this one.
            rest, processors = left, 0
    reduced.reverse()
    return reduced
