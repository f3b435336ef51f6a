"""How long the bank goes on trying where others are in the way. Measured by a clock that nobody sets, which tests may hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

PATIENCE_SECONDS = 30.0


class Deadline(NamedTuple):
    """A moment after which nothing more is begun."""

    at: float
    ticks: Callable[[], float]

    @property
    def over(self) -> bool:
        return self.ticks() >= self.at


@dataclass(frozen=True)
class Patience:
    """So many seconds, by `ticks`."""

    seconds: float = PATIENCE_SECONDS
    ticks: Callable[[], float] = time.monotonic

    def from_now(self) -> Deadline:
        """The deadline of what begins now."""
        return Deadline(self.ticks() + self.seconds, self.ticks)
