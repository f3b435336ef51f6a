"""Pending jobs for processors in the order of their priority."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from fairbank.scheduling.machines.processor_queue import FEW, fits_hole
from fairbank.scheduling.machines.processors import W
from fairbank.scheduling.snapshot import FOR_EVER, Hole

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
