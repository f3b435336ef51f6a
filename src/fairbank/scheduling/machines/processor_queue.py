"""Pending jobs for processors in the order of their numbers, for the policies of the literature."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar

from fairbank.scheduling.machines.front_tree import FrontTree
from fairbank.scheduling.machines.processors import ProcessorJob, W
from fairbank.scheduling.snapshot import FOR_EVER, Hole

FEW = 24
"""Number of new jobs up to which a scan is faster than adding them to the tree."""


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
        """Return a lower bound of what a job wants. It is exact in SearchQueue only."""
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


class SearchQueue(OrderedQueue[W]):
    """Queue with an additional tree, which finds the first job that fits at once.

    A backfill pass over thousands of jobs so tests a few (docs/decisions/0022).

    Invariants: each job is in `_order`, and either in `_newcomers` or in the tree. New jobs enter
    the tree when a pass searches those before them, because many start as they arrive. Numbers in
    `_newcomers` are higher than `_last_in_tree`. `_min_processors` is 0 if it is unknown because
    the narrowest job left.
    """

    __slots__ = ("_last_in_tree", "_min_processors", "_newcomers", "_tree")

    def __init__(self) -> None:
        super().__init__()
        self._newcomers: dict[int, W] = {}
        self._last_in_tree = -1
        self._tree: FrontTree[W] = FrontTree()
        self._min_processors = FOR_EVER

    def add(self, job: W) -> None:
        self._order[job.number] = self._newcomers[job.number] = job
        if job.processors < self._min_processors:
            self._min_processors = job.processors

    def remove(self, job: W) -> None:
        del self._order[job.number]
        if job.processors == self._min_processors:
            self._min_processors = 0
        if self._newcomers.pop(job.number, None) is None:
            self._tree.remove(job)

    @property
    def min_processors(self) -> int:
        if not self._min_processors:
            newest = min([job.processors for job in self._newcomers.values()], default=FOR_EVER)
            self._min_processors = min(newest, self._tree.min_processors)
        return self._min_processors

    def first_that_fits(self, after: int, holes: Sequence[Hole]) -> tuple[int, W] | None:
        if not holes or self._min_processors > holes[-1][0]:
            return None
        if after >= self._last_in_tree and len(self._newcomers) <= FEW:
            job = self._first_newcomer(after, holes)
        else:
            for newcomer in self._newcomers.values():
                self._tree.add(newcomer)
                self._last_in_tree = newcomer.number
            self._newcomers.clear()
            job = self._tree.first_that_fits(after, holes)
        return None if job is None else (job.number, job)

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


def fits_hole(job: ProcessorJob, holes: Sequence[Hole]) -> bool:
    """Return True if the job fits one of the holes, the narrowest and longest of which is first."""
    for width, seconds in holes:
        if job.processors <= width:
            return job.limit <= seconds
    return False
