"""Status of the bank as reports find it: up or down, retries, number of senders."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fairbank.core.errors import FairbankError, InvalidInput

STABLE_SECONDS = 2.0  # of answers, before the agent relies on the bank again
GROW_SECONDS = 0.02  # wait of a report that adds a sender
SHRINK_SECONDS = 5.0  # idle time that removes a sender

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds

_SPLIT_AFTER, _DROP_AFTER = 3, 6  # attempts; server errors may pass by themselves


class SenderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of concurrent requests to the bank, and size of a request.

    `batch`: reports in one request. `gather`: seconds that a report waits for others to go with it
    when no job waits for its result, such as an end.
    """

    minimum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    maximum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    batch: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1_000
    gather: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.1


def resize_pool(size: int, limits: SenderSettings, *, waited: float, idle: float) -> int:
    """Return the new number of senders.

    Args:
        size: present number.
        limits: smallest and largest number.
        waited: seconds that a report has waited beyond its time.
        idle: seconds for which all senders have been idle.
    """
    if waited >= GROW_SECONDS and size < limits.maximum:
        return size + 1
    if idle >= SHRINK_SECONDS and size > limits.minimum:
        return size - 1
    return min(max(size, limits.minimum), limits.maximum)


def retry_pause(failures: int) -> float:
    """Return the seconds until the next request after so many failures in a row."""
    # The exponent is capped because 2 ** 10_000 after a long outage would be slow.
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 16))) if failures else 0.0


def after_failure(
    error: FairbankError, size: int, attempts: int
) -> Literal["retry", "split", "drop"]:
    """Return what to do with the reports of a request that failed as a whole.

    A bank that is down or denies access is retried without end: nothing is wrong with the reports.
    One report that the bank cannot decode, or fails at again and again, is found by halving.

    Args:
        error: error of the request.
        size: reports in it.
        attempts: requests so far that carried its first report.
    """
    if isinstance(error, InvalidInput):
        return "split" if size > 1 else "drop"
    # The base class itself is a server error (HTTP 500); its subclasses say what is wrong.
    if type(error) is not FairbankError or attempts < _SPLIT_AFTER:
        return "retry"
    if size > 1:
        return "split"
    return "drop" if attempts >= _DROP_AFTER else "retry"


class BankStatus:
    """State of the bank: does it answer reports, and since when; times are monotonic seconds.

    Invariant: `down_since` is None exactly while `error` is None and `failures` is 0.
    `contacted_at` is the time of the last result or failure, None before the first.
    """

    def __init__(self, now: float) -> None:
        self.since = self.retry_at = now
        self.down_since: float | None = None
        self.error: FairbankError | None = None
        self.failures = 0
        self.contacted_at: float | None = None

    @property
    def up(self) -> bool:
        return self.down_since is None

    def record_success(self, now: float) -> bool:
        """Record an answer; return whether the bank was down before."""
        was_down = not self.up
        if was_down:
            self.since = now
        self.contacted_at = self.retry_at = now
        self.down_since, self.error, self.failures = None, None, 0
        return was_down

    def record_failure(self, error: FairbankError, now: float) -> bool:
        """Record a failed request; return whether the bank was up before."""
        was_up = self.up
        if was_up:
            self.down_since = self.since = now
        self.contacted_at, self.error = now, error
        self.failures += 1
        self.retry_at = now + retry_pause(self.failures)
        return was_up

    def is_stable(self, now: float) -> bool:
        """Return whether the bank has answered long enough to be relied on."""
        return self.up and now - self.since >= STABLE_SECONDS
