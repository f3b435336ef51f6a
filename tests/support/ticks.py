"""Seconds by a clock that nobody sets, and that moves only when a test says so."""

from __future__ import annotations


class Ticks:
    """In place of `time.monotonic`."""

    def __init__(self, at: float = 100.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at
