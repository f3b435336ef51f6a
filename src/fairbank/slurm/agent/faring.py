"""How the bank fares: whether it answers, since when, and what a request that failed means for the letters in it."""

from __future__ import annotations

from enum import Enum

from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.slurm.agent.pool import pause

SETTLED_SECONDS = 2.0
"""A bank that has answered for so long is back."""

_SPLIT_AFTER, _ASIDE_AFTER = 3, 6


class Next(Enum):
    """What to do with the letters of a request that failed."""

    AGAIN = "again"
    SPLIT = "split"
    ASIDE = "aside"


def after_failure(trouble: FairbankError, size: int, tried: int) -> Next:
    """A bank that is away or lets nobody in is tried again. What it cannot read, or fails at again and again, is found by halving."""
    if isinstance(trouble, InvalidInput):
        return Next.SPLIT if size > 1 else Next.ASIDE
    if type(trouble) is not FairbankError or tried < _SPLIT_AFTER:
        return Next.AGAIN
    if size > 1:
        return Next.SPLIT
    return Next.ASIDE if tried >= _ASIDE_AFTER else Next.AGAIN


class Faring:
    """Since when the bank answers or does not. Times are of a clock that only goes forward."""

    def __init__(self, now: float) -> None:
        self.since = now
        self.down_since: float | None = None
        self.trouble: FairbankError | None = None
        self.failures = 0
        self.retry_at = now
        self.heard_at: float | None = None
        """When a report told last how it fares; None until one has."""

    @property
    def up(self) -> bool:
        return self.down_since is None

    def heard_since(self, then: float) -> bool:
        """Whether a report told since then how it fares."""
        return self.heard_at is not None and self.heard_at >= then

    def answered(self, now: float) -> bool:
        """It has answered. Whether that is news."""
        news = not self.up
        if news:
            self.since = now
        self.heard_at = now
        self.down_since, self.trouble, self.failures, self.retry_at = None, None, 0, now
        return news

    def failed(self, trouble: FairbankError, now: float) -> bool:
        """It has not. Whether that is news."""
        news = self.up
        if news:
            self.down_since = self.since = now
        self.heard_at = now
        self.trouble = trouble
        self.failures += 1
        self.retry_at = now + pause(self.failures)
        return news

    def is_back(self, now: float) -> bool:
        """Whether it has answered long enough to be relied on."""
        return self.up and now - self.since >= SETTLED_SECONDS
