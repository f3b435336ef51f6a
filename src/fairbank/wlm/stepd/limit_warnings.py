"""Signals before the time limit of a step, to processes that asked for one."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.wlm.stepd.processes import Process

WARNINGS_MAX = 1_000


class LimitWarning(NamedTuple):
    """Signal, how many seconds before the limit it is sent, and to which process."""

    number: int
    seconds: float
    process: Process


class LimitWarnings:
    """Warnings of a step that are not sent yet. Each is sent once, whatever the limit becomes."""

    def __init__(self) -> None:
        self._waiting: list[LimitWarning] = []

    def add(self, number: int, seconds: float, process: Process) -> bool:
        """Add the warning of a process. Return False if there are too many."""
        if len(self._waiting) >= WARNINGS_MAX:
            return False
        self._waiting.append(LimitWarning(number, seconds, process))
        return True

    def next_at(self, end_at: float | None) -> float | None:
        """Return when the next one is due, if the limit is at `end_at`; None: never."""
        if end_at is None or not self._waiting:
            return None
        return end_at - max(warning.seconds for warning in self._waiting)

    def take_due(self, end_at: float | None, now: float) -> list[LimitWarning]:
        """Return those that are due, and forget them."""
        if end_at is None or not self._waiting:
            return []
        due = [warning for warning in self._waiting if now >= end_at - warning.seconds]
        self._waiting = [warning for warning in self._waiting if warning not in due]
        return due
