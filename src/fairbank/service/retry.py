"""How long the bank goes on trying where others are in the way. Measured by a clock that nobody sets, which tests may hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

RETRY_SECONDS = 30.0


class Deadline(NamedTuple):
    """A moment after which nothing more is begun."""

    at: float
    monotonic: Callable[[], float]

    @property
    def is_over(self) -> bool:
        return self.monotonic() >= self.at


@dataclass(frozen=True)
class RetryPolicy:
    """So many seconds, by `ticks`."""

    seconds: float = RETRY_SECONDS
    monotonic: Callable[[], float] = time.monotonic

    def new_deadline(self) -> Deadline:
        """The deadline of what begins now."""
        return Deadline(self.monotonic() + self.seconds, self.monotonic)
