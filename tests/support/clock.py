"""Clocks that move only as a test says."""

from __future__ import annotations

from fairbank.core.time import Instant


class ManualClock:
    """Clock whose time the test sets; each reading advances it by `step` seconds."""

    def __init__(self, at: int = 0, *, step: int = 0) -> None:
        self.at, self.step = Instant(at), step

    def now(self) -> Instant:
        now = self.at
        self.at = Instant(now + self.step)
        return now
