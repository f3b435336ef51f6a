"""The questions that are not answered yet, and when each must be."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from fairbank.slurm.agent.letters import Letter, Receipt
from fairbank.slurm.records import PrologAsked


class OpenQuestion(msgspec.Struct, eq=False):
    """A question that is not answered yet. `letter` is None where it is on disk, from an agent before this one."""

    asked: PrologAsked
    heard: float
    deadline: float
    receipts: tuple[Receipt, ...]
    letter: Letter | None


class Questions:
    """At most one a run."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}
        self._deadlines: list[
            tuple[float, str]
        ] = []  # also of those taken since: they go when their time comes

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, run: str) -> bool:
        return run in self._open

    def keep(self, run: str, question: OpenQuestion) -> None:
        self._open[run] = question
        heapq.heappush(self._deadlines, (question.deadline, run))

    def get(self, run: str) -> OpenQuestion | None:
        return self._open.get(run)

    def take(self, run: str) -> OpenQuestion | None:
        """The question of this run, which is none any more."""
        return self._open.pop(run, None)

    def overdue(self, now: float) -> Iterator[tuple[str, OpenQuestion]]:
        """Those that have waited long enough, which are none any more."""
        while self._deadlines and self._deadlines[0][0] <= now:
            due, run = heapq.heappop(self._deadlines)
            question = self._open.get(run)
            if question is not None and question.deadline == due:
                del self._open[run]
                yield run, question

    def next_deadline(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None
