"""Prolog questions: requests of slurmctld that have no verdict yet, and their deadlines."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import msgspec

from fairbank.agent.protocol.messages import PrologRequest
from fairbank.agent.reports import Receipt, PendingReport

_RECEIPTS_KEPT = 4  # of a request that the plug-in repeats; it waits for the newest


class PrologQuestion(msgspec.Struct, eq=False):
    """Prolog request without a verdict. `report` is None if an agent before this one sent it."""

    request: PrologRequest
    received: float
    deadline: float
    receipts: tuple[Receipt, ...]
    report: PendingReport | None

    def join(self, receipt: Receipt) -> None:
        """Add the receipt of a repeated request."""
        self.receipts = (*self.receipts[1 - _RECEIPTS_KEPT :], receipt)


class PrologQuestions:
    """Open prolog questions, at most one per run, and their deadlines."""

    def __init__(self) -> None:
        self._open: dict[str, PrologQuestion] = {}
        # Also of questions that were taken since; they are skipped when their time comes.
        self._deadlines: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, run: str) -> bool:
        return run in self._open

    def keep(self, run: str, question: PrologQuestion) -> None:
        self._open[run] = question
        heapq.heappush(self._deadlines, (question.deadline, run))

    def get(self, run: str) -> PrologQuestion | None:
        return self._open.get(run)

    def take(self, run: str) -> PrologQuestion | None:
        """Remove and return the question of a run."""
        return self._open.pop(run, None)

    def overdue(self, now: float) -> Iterator[str]:
        """Yield the runs whose question has waited long enough."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, run = heapq.heappop(self._deadlines)
            question = self._open.get(run)
            if question is not None and question.deadline == deadline:
                yield run

    def next_deadline(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None
