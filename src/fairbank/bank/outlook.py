"""Spending pace of an allocation, projected to its end. The server computes it with its clock, so
that commands, pages and notices say the same.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fairbank.core.time import DAY

PACE_DAYS = 7
"""Days after which an allocation has a pace, unless 10 % of its term pass sooner."""


class OutlookState(Enum):
    """Kinds of outlook, with their names in messages."""

    NOT_STARTED = "not started"
    ENDED = "ended"
    EMPTY = "empty"
    TOO_EARLY = "too early"
    RUNS_OUT = "runs out"
    LASTS = "lasts"
    UNUSED = "unused"


class Outlook(NamedTuple):
    """Outlook. `at` is the time at which the allocation will be empty before its end, or now if it
    is empty. `left_over` is the unused rest of its grant at its end, `available_at_end` what is
    available then, with the credit limit, both in SU-minutes.
    """

    state: OutlookState
    at: int | None = None
    left_over: int | None = None
    available_at_end: int | None = None


def outlook(
    granted: int, used: int, start: int, end: int, now: int, *, held: int = 0, limit: int = 0
) -> Outlook:
    """Project the pace of an allocation to its end.

    The run-out date counts held credit as left, because jobs mostly cost less than their holds. The
    unused rest at the end does not: at least what is held now may be used. If holds take all that
    is left, it is empty now, because no job can start.
    There is no pace before 7 days or 10 % of the term have passed, whichever is sooner: one large
    job would set it. A credit limit does not expire, so it is not counted as unused.

    Args:
        granted: SU-minutes of the grant.
        used: SU-minutes that were charged.
        held: SU-minutes that are held.
        limit: SU-minutes of credit beyond the grant.
        start: start of the allocation's term, in seconds since 1970.
        end: end of the term, in seconds since 1970.
        now: the current time, in seconds since 1970.

    Returns:
        The outlook. Its state is UNUSED after half of the term if more than a quarter of the grant
        would remain.
    """
    left, past, ahead = granted + limit - used, now - start, end - now
    # The end first: what staff ended before its start never starts.
    if ahead <= 0:
        return Outlook(OutlookState.ENDED, None, max(0, granted - used), left - held)
    if past < 0:
        return Outlook(OutlookState.NOT_STARTED)
    if left <= held:
        return Outlook(OutlookState.EMPTY, at=now)
    if past < max(1, min(PACE_DAYS * DAY, (end - start) // 10)):
        return Outlook(OutlookState.TOO_EARLY)
    if used > 0 and left * past < used * ahead:
        return Outlook(OutlookState.RUNS_OUT, at=now + left * past // used)
    available = left - max(held, used * ahead // past)
    left_over = max(0, available - limit)
    wasting = past > ahead and 4 * left_over > granted
    state = OutlookState.UNUSED if wasting else OutlookState.LASTS
    return Outlook(state, None, left_over, available)


def daily_pace(used: int, start: int, end: int, now: int) -> int:
    """Return the amount used per day of the term that has passed, by at least one whole day.

    Args:
        used: amount since the start in SU-minutes, as is the result.
        start: start of the allocation in seconds since 1970.
        now: current time.
    """
    return used * DAY // max(DAY, min(now, end) - start)
