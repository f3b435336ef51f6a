"""Tree over pending jobs that finds the first one narrow and short enough for what is free."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Generic

from fairbank.scheduling.machines.fronts import NO_JOB, add_shape, fits_front, front_of
from fairbank.scheduling.machines.processors import W
from fairbank.scheduling.snapshot import FOR_EVER, Hole

BLOCK = 32
"""Places below a leaf. Testing them one by one costs less than more levels."""


class FrontTree(Generic[W]):
    """Jobs in the order of their numbers, under a tree with the front of each range of places.

    Invariants: the tree is stored in a list like a heap: 1 is the root, 2i and 2i + 1 are below i,
    and the last `_leaves` nodes have BLOCK places each. Places of jobs that left stay empty until
    the tree needs more of them. `_shapes` has the shape of each place, and each front is that of
    the shapes below it.
    """

    __slots__ = ("_fronts", "_jobs", "_leaves", "_numbers", "_shapes")

    def __init__(self) -> None:
        self._build([])

    @property
    def min_processors(self) -> int:
        """Return the least number of processors that a job wants."""
        return min(self._fronts[1][0][0], FOR_EVER)

    def add(self, job: W) -> None:
        """Add a job whose number is higher than all others."""
        place = len(self._jobs)
        if place == len(self._shapes):
            self._build([waiting for waiting in self._jobs if waiting is not None])
            place = len(self._jobs)
        self._jobs.append(job)
        self._numbers.append(job.number)
        self._shapes[place] = shape = job.processors, job.limit
        node = self._leaves + place // BLOCK
        # A front that the job does not change is below others that it does not change either.
        while node and add_shape(self._fronts[node], shape):
            node >>= 1

    def remove(self, job: W) -> None:
        """Remove a job, and update the fronts above it."""
        place = bisect_left(self._numbers, job.number)
        fronts, shape = self._fronts, self._shapes[place]
        self._jobs[place], self._shapes[place] = None, NO_JOB
        node = self._leaves + place // BLOCK
        begin = place // BLOCK * BLOCK
        shapes = self._shapes[begin : begin + BLOCK]
        # A front stays if another job of the same shape is below it, or if none was.
        while node and shape not in shapes and shape in fronts[node]:
            fronts[node] = front_of(shapes)
            shapes = fronts[node] + fronts[node ^ 1]
            node >>= 1

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> W | None:
        """Return the first job behind number `after` that fits one of the holes, the narrowest and
        longest of which is first.
        """
        fronts, leaves = self._fronts, self._leaves
        if not fits_front(fronts[1], holes):
            return None
        place = bisect_right(self._numbers, after)
        node = leaves + place // BLOCK
        if node == 2 * leaves:
            return None
        if fits_front(fronts[node], holes):
            job = self._first_in_block(node, place, holes)
            if job is not None:
                return job
        while True:
            while node & 1:  # the last of its pair: on to the next stretch, which may be wider
                node >>= 1
            if not node:
                return None
            node += 1
            if fits_front(fronts[node], holes):
                while node < leaves:
                    node *= 2
                    node += not fits_front(fronts[node], holes)
                return self._first_in_block(node, 0, holes)

    def _first_in_block(self, node: int, place: int, holes: Sequence[Hole]) -> W | None:
        begin = (node - self._leaves) * BLOCK
        end, place = begin + BLOCK, max(begin, place)
        widest, seconds = holes[-1]
        for at, (width, limit) in enumerate(self._shapes[place:end], place):
            if width <= widest and (limit <= seconds or fits_front(((width, limit),), holes)):
                return self._jobs[at]
        return None

    def _build(self, waiting: list[W]) -> None:
        self._jobs: list[W | None] = list(waiting)
        self._numbers = [job.number for job in waiting]
        self._leaves = 1 << (2 * len(waiting) // BLOCK).bit_length()
        self._shapes = [(job.processors, job.limit) for job in waiting]
        self._shapes += [NO_JOB] * (self._leaves * BLOCK - len(waiting))
        level = [
            front_of(self._shapes[at : at + BLOCK]) for at in range(0, len(self._shapes), BLOCK)
        ]
        self._fronts = level
        while len(level) > 1:
            level = [
                front_of(one + other) for one, other in zip(level[::2], level[1::2], strict=True)
            ]
            self._fronts = level + self._fronts
        self._fronts = [[], *self._fronts]
