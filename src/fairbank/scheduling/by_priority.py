"""Jobs that wait for processors, the highest priority first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from fairbank.scheduling.machine import Gap, Profile
from fairbank.scheduling.processors import Waiting


class Submitted(Waiting, Protocol):
    """A job of which it is known who sent it, and when."""

    @property
    def submitted(self) -> int: ...

    @property
    def user(self) -> int: ...


S = TypeVar("S", bound=Submitted)


class ByPriority(Generic[S]):
    """Whoever waits, and the `priorities` by the numbers of the jobs, as they were when somebody last worked them out."""

    def __init__(self) -> None:
        self._jobs: dict[int, S] = {}
        self.priorities: dict[int, int] = {}

    def add(self, job: S) -> None:
        self._jobs[job.number] = job

    def remove(self, job: S) -> None:
        del self._jobs[job.number]
        self.priorities.pop(job.number, None)

    def __len__(self) -> int:
        return len(self._jobs)

    def jobs(self) -> Iterator[S]:
        return iter(self._jobs.values())

    def line(self, now: int) -> Listed[S]:
        """By priority, then submit time, then number: who has no priority yet comes last."""
        known = self.priorities.get
        return Listed(sorted(self._jobs.values(), key=lambda job: (-known(job.number, 0), job.submitted, job.number)))


class Listed(Generic[S]):
    """Some jobs in their order."""

    reasons: Mapping[int, str] = {}

    def __init__(self, jobs: Sequence[S]) -> None:
        self._jobs = jobs

    def upto(self, most: int) -> Listed[S]:
        """The first so many."""
        return self if len(self._jobs) <= most else Listed(self._jobs[:most])

    def __iter__(self) -> Iterator[tuple[int, S]]:
        return enumerate(self._jobs)

    def lines(self) -> Iterable[Iterator[tuple[int, S]]]:
        found: dict[int, list[tuple[int, S]]] = {}
        for turn, job in self:
            found.setdefault(job.partition, []).append((turn, job))
        return map(iter, found.values())

    def first(self, after: int, ahead: Profile[S, Any]) -> tuple[int, S] | None:
        gaps = ahead.gaps()
        for turn in range(after + 1, len(self._jobs)):
            job = self._jobs[turn]
            if ahead.now(job) is not None if gaps is None else _fits(job, gaps):
                return turn, job
        return None


def _fits(job: Waiting, gaps: Sequence[Gap]) -> bool:
    return any(job.processors <= room and job.limit <= seconds for room, seconds in gaps)
