"""Jobs that wait for processors, the highest priority first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from fairbank.scheduling.machines.machine import FOR_EVER, StartsNow
from fairbank.scheduling.machines.processor_queue import FEW, fits
from fairbank.scheduling.machines.processors import ProcessorJob


class SubmittedJob(ProcessorJob, Protocol):
    """A job of which it is known who sent it, of which group, and when."""

    @property
    def submitted(self) -> int: ...

    @property
    def user(self) -> int: ...

    @property
    def group(self) -> int: ...


S = TypeVar("S", bound=SubmittedJob)
_Key = tuple[bool, int, int, int]
"""Whether it was put last, its priority (the highest is the least), when it was submitted, its number."""


class PriorityQueue(Generic[S]):
    """Whoever waits: by priority as it was when somebody last worked it out, then submit time, then number; behind them who was put last.

    The order is kept from pass to pass, and so are the processors that all together want (`wanted`).
    """

    def __init__(self) -> None:
        self._jobs: dict[int, S] = {}
        self._keys: dict[int, _Key] = {}
        self._order: list[_Key] = []
        self._line: list[S] = []
        """Those whose priority is known, as in `_order`."""
        self._unranked: dict[int, S] = {}
        self._last: set[int] = set()
        self._widths: dict[int, int] = {}
        self.wanted = 0

    def add(self, job: S) -> None:
        self._jobs[job.number] = self._unranked[job.number] = job
        self._widths[job.processors] = self._widths.get(job.processors, 0) + 1
        self.wanted += job.processors

    def remove(self, job: S) -> None:
        del self._jobs[job.number]
        if self._unranked.pop(job.number, None) is None:
            self._take_out(self._keys.pop(job.number))
        self._last.discard(job.number)
        self.wanted -= job.processors
        if self._widths[job.processors] == 1:
            del self._widths[job.processors]
        else:
            self._widths[job.processors] -= 1

    def put_last(self, job: S) -> None:
        """Whatever its priority, it waits behind all of whom this is not said."""
        self._last.add(job.number)
        key = self._keys.get(job.number)
        if key is not None and not key[0]:
            self._take_out(key)
            self._put_in((True, *key[1:]))

    def _take_out(self, key: _Key) -> None:
        at = bisect_left(self._order, key)
        del self._order[at], self._line[at]

    def _put_in(self, key: _Key) -> None:
        at = bisect_left(self._order, key)
        self._keys[key[-1]] = key
        self._order.insert(at, key)
        self._line.insert(at, self._jobs[key[-1]])

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def narrowest(self) -> int:
        """The fewest processors that anybody wants."""
        return min(self._widths, default=FOR_EVER)

    def jobs(self) -> Iterator[S]:
        return iter(self._jobs.values())

    def unranked(self) -> Sequence[S]:
        """Those whose priority nobody worked out yet."""
        return list(self._unranked.values())

    def rank(self, jobs: Sequence[S], priorities: Iterable[int]) -> None:
        """Tell the priorities of some that had none."""
        last = self._last
        ranked = [
            (job.number in last, -priority, job.submitted, job.number)
            for job, priority in zip(jobs, priorities, strict=True)
        ]
        for key in ranked:
            del self._unranked[key[-1]]
        if len(ranked) <= FEW:
            for key in ranked:
                self._put_in(key)
            return
        self._keys.update((key[-1], key) for key in ranked)
        self._order = sorted(self._keys.values())
        self._line = [self._jobs[key[-1]] for key in self._order]

    def forget(self) -> None:
        """Nobody's priority is known any more."""
        self._keys, self._order, self._line = {}, [], []
        self._unranked = dict(self._jobs)

    def line(self, now: int) -> JobList[S]:
        """Who has no priority yet comes last. It holds until somebody comes, goes or is ranked."""
        if not self._unranked:
            return JobList(self._line)
        last = self._last
        return JobList(
            [
                *self._line,
                *sorted(
                    self._unranked.values(),
                    key=lambda job: (job.number in last, job.submitted, job.number),
                ),
            ]
        )


class JobList(Generic[S]):
    """Some jobs in their order."""

    reasons: Mapping[int, str] = {}

    def __init__(self, jobs: Sequence[S]) -> None:
        self._jobs = jobs

    def upto(self, most: int) -> JobList[S]:
        """The first so many."""
        return self if len(self._jobs) <= most else JobList(self._jobs[:most])

    def __iter__(self) -> Iterator[tuple[int, S]]:
        return enumerate(self._jobs)

    def lines(self) -> Iterable[Iterator[tuple[int, S]]]:
        found: dict[int, list[tuple[int, S]]] = {}
        for turn, job in self:
            found.setdefault(job.partition, []).append((turn, job))
        return map(iter, found.values())

    def first(self, after: int, ahead: StartsNow[S, Any]) -> tuple[int, S] | None:
        gaps = ahead.gaps()
        if gaps is None:
            return next(
                ((turn, job) for turn, job in self if turn > after and ahead.now(job) is not None),
                None,
            )
        if not gaps:
            return None
        room = gaps[-1][0]
        for turn in range(after + 1, len(self._jobs)):
            job = self._jobs[turn]
            if job.processors <= room and fits(job, gaps):
                return turn, job
        return None
