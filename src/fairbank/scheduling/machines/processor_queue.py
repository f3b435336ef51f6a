"""Pending jobs for processors: in the order of their numbers, for the policies of the literature, and
ordered by priority.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar

from fairbank.scheduling.machines.processors import ProcessorJob, W
from fairbank.scheduling.snapshot import FOR_EVER, Hole

FEW = 24
"""Number of new jobs up to which a scan is faster than sorting them into the trees."""
MIN_CAPACITY = 16
"""Smallest capacity of a tree."""
_NO_JOB = 2 * FOR_EVER
"""Limit at an empty place: longer than any hole."""


W_co = TypeVar("W_co", bound=ProcessorJob, covariant=True)


class QueueOrder(Protocol[W_co]):
    """Pending jobs in the order of the queue, each with its position. Lower positions go first."""

    def __iter__(self) -> Iterator[tuple[int, W_co]]: ...

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, W_co] | None:
        """Return the first job behind position `after` that fits one of the holes, the narrowest
        and longest of which is first.
        """
        ...


class OrderedQueue(Generic[W]):
    """Queue in the order of numbers, which are the positions. Jobs may leave from its middle."""

    __slots__ = ("_order",)

    @property
    def min_processors(self) -> int:
        """Return a lower bound of what a job wants. It is exact in WidthQueue only."""
        return 1

    def __init__(self) -> None:
        # A dict would look for its first entry among all that are gone.
        self._order: OrderedDict[int, W] = OrderedDict()

    def add(self, job: W) -> None:
        self._order[job.number] = job

    def remove(self, job: W) -> None:
        del self._order[job.number]

    def __len__(self) -> int:
        return len(self._order)

    def jobs(self) -> Iterator[W]:
        return iter(self._order.values())

    def order(self, now: int) -> Self:
        return self

    def __iter__(self) -> Iterator[tuple[int, W]]:
        return iter(self._order.items())

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, W] | None:
        return next((item for item in self if item[0] > after and fits_hole(item[1], holes)), None)


class PartitionQueue(OrderedQueue[W]):
    """Queue with an additional order for each partition."""

    __slots__ = ("_by_partition",)

    def __init__(self) -> None:
        super().__init__()
        self._by_partition: dict[int, OrderedDict[int, W]] = {}

    def add(self, job: W) -> None:
        order = self._by_partition.get(job.partition)
        if order is None:
            order = self._by_partition[job.partition] = OrderedDict()
        self._order[job.number] = order[job.number] = job

    def remove(self, job: W) -> None:
        del self._order[job.number]
        order = self._by_partition[job.partition]
        del order[job.number]
        if not order:
            del self._by_partition[job.partition]

    def by_partition(self) -> Iterable[Iterable[tuple[int, W]]]:
        """Return the order of each partition."""
        return [line.items() for line in self._by_partition.values()]


class WidthQueue(OrderedQueue[W]):
    """Queue with an additional tree for each number of processors, which finds the first job that
    is short enough at once.

    A backfill pass over thousands of jobs so tests one or two of each width (docs/decisions/0022).

    Invariants: each job is in `_order`, and either in `_newcomers` or in the tree of its width. New
    jobs enter the trees when a pass searches those before them, because many start as they arrive.
    Numbers in `_newcomers` are higher than `_last_in_trees`. `_widths` are the widths of trees that
    are not empty, in order; empty trees stay, because their width comes again. `_min_processors` is
    0 if it is unknown because the narrowest job left.
    """

    __slots__ = ("_last_in_trees", "_min_processors", "_newcomers", "_trees", "_widths")

    def __init__(self) -> None:
        super().__init__()
        self._newcomers: dict[int, W] = {}
        self._last_in_trees = -1
        self._widths: list[int] = []
        self._trees: dict[int, LimitTree[W]] = {}
        self._min_processors = FOR_EVER

    def add(self, job: W) -> None:
        self._order[job.number] = self._newcomers[job.number] = job
        if job.processors < self._min_processors:
            self._min_processors = job.processors

    def remove(self, job: W) -> None:
        number, width = job.number, job.processors
        del self._order[number]
        if width == self._min_processors:
            self._min_processors = 0
        if self._newcomers.pop(number, None) is None:
            tree = self._trees[width]
            tree.remove(job)
            if not tree.waiting:
                del self._widths[bisect_left(self._widths, width)]

    @property
    def min_processors(self) -> int:
        if not self._min_processors:
            newest = min([job.processors for job in self._newcomers.values()], default=FOR_EVER)
            self._min_processors = min(newest, self._widths[0]) if self._widths else newest
        return self._min_processors

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, W] | None:
        if not holes or self._min_processors > holes[-1][0]:
            return None
        job = self._first_in_holes(after, holes)
        return None if job is None else (job.number, job)

    def _first_in_holes(self, after: int, holes: Sequence[Hole]) -> W | None:
        if after >= self._last_in_trees and len(self._newcomers) <= FEW:
            return self._first_newcomer(after, holes)
        if self._newcomers:
            self._add_newcomers()
        first: W | None = None
        hole, (hole_width, seconds) = 0, holes[0]
        for width in self._widths:
            while width > hole_width:
                hole += 1
                if hole == len(holes):
                    return first
                hole_width, seconds = holes[hole]
            tree = self._trees[width]
            if tree.shortest[1] <= seconds:
                job = tree.first_within(after, seconds)
                if job is not None and (first is None or job.number < first.number):
                    first = job
        return first

    def _first_newcomer(self, after: int, holes: Sequence[Hole]) -> W | None:
        """Return the same among new jobs, scanned from the last on. After an arrival few jobs are
        behind those that a pass left waiting.
        """
        first: W | None = None
        hole_width, seconds = holes[-1]
        for job in reversed(self._newcomers.values()):
            if job.number <= after:
                break
            if job.processors <= hole_width and (job.limit <= seconds or fits_hole(job, holes)):
                first = job
        return first

    def _add_newcomers(self) -> None:
        for job in self._newcomers.values():
            tree = self._trees.get(job.processors)
            if tree is None:
                tree = self._trees[job.processors] = LimitTree()
            if not tree.waiting:
                insort(self._widths, job.processors)
            tree.add(job)
            self._last_in_trees = job.number
        self._newcomers.clear()


def fits_hole(job: ProcessorJob, holes: Sequence[Hole]) -> bool:
    """Return True if the job fits one of the holes, the narrowest and longest of which is first."""
    for width, seconds in holes:
        if job.processors <= width:
            return job.limit <= seconds
    return False


class LimitTree(Generic[W]):
    """Jobs of one width in the order of the queue, under a tree: `shortest[i]` is the shortest
    limit below node i.

    Invariants: the tree is stored in a list like a heap. 1 is the root, 2i and 2i + 1 are below i,
    and the last `_capacity` entries are the places of the jobs. Places of jobs that left stay empty
    until the tree needs more capacity. `waiting` is the number of jobs.
    """

    __slots__ = ("_capacity", "_jobs", "_numbers", "shortest", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._build([], MIN_CAPACITY)

    def add(self, job: W) -> None:
        if len(self._jobs) == self._capacity:
            waiting = [remaining for remaining in self._jobs if remaining is not None]
            self._build(waiting, max(MIN_CAPACITY, 1 << (2 * len(waiting)).bit_length()))
        self.waiting += 1
        self._jobs.append(job)
        self._numbers.append(job.number)
        least, place = self.shortest, self._capacity + len(self._jobs) - 1
        while place and least[place] > job.limit:
            least[place] = job.limit
            place >>= 1

    def remove(self, job: W) -> None:
        place = bisect_left(self._numbers, job.number)
        self._jobs[place] = None
        self.waiting -= 1
        least = self.shortest
        place += self._capacity
        least[place] = _NO_JOB
        while place > 1:
            place >>= 1
            shortest = least[2 * place]
            if least[2 * place + 1] < shortest:
                shortest = least[2 * place + 1]
            if least[place] == shortest:
                break
            least[place] = shortest

    def first_within(self, after: int, seconds: int) -> W | None:
        """Return the first job behind number `after` whose limit is at most so many seconds."""
        shortest, capacity = self.shortest, self._capacity
        if shortest[1] > seconds:
            return None
        place = bisect_right(self._numbers, after) + capacity
        if place >= 2 * capacity:
            return None
        while shortest[place] > seconds:
            while place & 1:  # the last of its pair: on to the next stretch, which may be wider
                place >>= 1
            if not place:
                return None
            place += 1
        while place < capacity:
            place *= 2
            place += shortest[place] > seconds
        return self._jobs[place - capacity]

    def _build(self, waiting: list[W], capacity: int) -> None:
        self._jobs: list[W | None] = list(waiting)
        self._numbers = [job.number for job in waiting]
        self._capacity = capacity
        level = [job.limit for job in waiting] + [_NO_JOB] * (capacity - len(waiting))
        self.shortest = level
        while len(level) > 1:
            level = list(map(min, level[::2], level[1::2]))
            self.shortest = level + self.shortest
        self.shortest = [_NO_JOB, *self.shortest]


_Key = tuple[bool, int, int, int]
"""True for a job that was moved to the end; negative priority; submit time; number."""


class PriorityQueue(Generic[W]):
    """Queue by priority as last computed, then submit time, then number. Jobs that were moved to
    the end are behind all others.

    Invariants: `_order` has the keys of all jobs with a priority, sorted, and `_ranked` the same
    jobs in the same order. `_unranked` has all other jobs. `total_processors` is the sum over all
    jobs, and `_widths` counts the jobs of each number of processors.
    """

    def __init__(self) -> None:
        self._jobs: dict[int, W] = {}
        self._keys: dict[int, _Key] = {}
        self._order: list[_Key] = []
        self._ranked: list[W] = []
        self._unranked: dict[int, W] = {}
        self._at_end: set[int] = set()
        self._widths: dict[int, int] = {}
        self.total_processors = 0

    def add(self, job: W) -> None:
        self._jobs[job.number] = self._unranked[job.number] = job
        self._widths[job.processors] = self._widths.get(job.processors, 0) + 1
        self.total_processors += job.processors

    def remove(self, job: W) -> None:
        del self._jobs[job.number]
        if self._unranked.pop(job.number, None) is None:
            self._remove_key(self._keys.pop(job.number))
        self._at_end.discard(job.number)
        self.total_processors -= job.processors
        if self._widths[job.processors] == 1:
            del self._widths[job.processors]
        else:
            self._widths[job.processors] -= 1

    def move_to_end(self, job: W) -> None:
        """Let a job wait behind all others, whatever its priority."""
        self._at_end.add(job.number)
        key = self._keys.get(job.number)
        if key is not None and not key[0]:
            self._remove_key(key)
            self._insert_key((True, *key[1:]))

    def _remove_key(self, key: _Key) -> None:
        at = bisect_left(self._order, key)
        del self._order[at], self._ranked[at]

    def _insert_key(self, key: _Key) -> None:
        at = bisect_left(self._order, key)
        self._keys[key[-1]] = key
        self._order.insert(at, key)
        self._ranked.insert(at, self._jobs[key[-1]])

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def min_processors(self) -> int:
        """Return the least number of processors that a job wants."""
        return min(self._widths, default=FOR_EVER)

    def jobs(self) -> Iterator[W]:
        return iter(self._jobs.values())

    def unranked(self) -> Sequence[W]:
        """Return the jobs without a priority."""
        return list(self._unranked.values())

    def set_priorities(self, jobs: Sequence[W], priorities: Iterable[int]) -> None:
        """Set the priorities of jobs that had none."""
        last = self._at_end
        ranked = [
            (job.number in last, -priority, job.submitted, job.number)
            for job, priority in zip(jobs, priorities, strict=True)
        ]
        for key in ranked:
            del self._unranked[key[-1]]
        if len(ranked) <= FEW:
            for key in ranked:
                self._insert_key(key)
            return
        self._keys.update((key[-1], key) for key in ranked)
        self._order = sorted(self._keys.values())
        self._ranked = [self._jobs[key[-1]] for key in self._order]

    def clear_priorities(self) -> None:
        """Forget the priorities of all jobs."""
        self._keys, self._order, self._ranked = {}, [], []
        self._unranked = dict(self._jobs)

    def order(self, now: int) -> JobList[W]:
        """Return the jobs in order, without a priority last. Valid until the queue changes."""
        if not self._unranked:
            return JobList(self._ranked)
        last = self._at_end
        return JobList(
            [
                *self._ranked,
                *sorted(
                    self._unranked.values(),
                    key=lambda job: (job.number in last, job.submitted, job.number),
                ),
            ]
        )


class JobList(Generic[W]):
    """List of jobs as an order. Positions are indexes."""

    def __init__(self, jobs: Sequence[W]) -> None:
        self._jobs = jobs

    def first_jobs(self, count: int) -> JobList[W]:
        """Return the first `count` jobs."""
        return self if len(self._jobs) <= count else JobList(self._jobs[:count])

    def __iter__(self) -> Iterator[tuple[int, W]]:
        return enumerate(self._jobs)

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, W] | None:
        if not holes:
            return None
        width = holes[-1][0]
        for position in range(after + 1, len(self._jobs)):
            job = self._jobs[position]
            if job.processors <= width and fits_hole(job, holes):
                return position, job
        return None
