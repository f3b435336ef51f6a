"""Monotonic clock that moves only when a test moves it."""

from __future__ import annotations


class Ticks:
    """Replacement of `time.monotonic`."""

    def __init__(self, at: float = 100.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at
