"""Tree over the time limits of pending jobs that request the same number of processors."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic

from fairbank.scheduling.machines.processors import W
from fairbank.scheduling.snapshot import FOR_EVER

MIN_CAPACITY = 16
"""Smallest capacity of a tree."""
_NO_JOB = 2 * FOR_EVER
"""Limit at an empty place: longer than any hole."""


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
