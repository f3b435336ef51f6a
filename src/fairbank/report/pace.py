"""Projection of an allocation's pace since its start to its end."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fairbank.core.time import DAY
from fairbank.core.units import WORTH
from fairbank.report.columns import Look


class SpendingPace(Enum):
    """Outlook of an allocation."""

    NOT_STARTED = "not started"
    ENDED = "ended"
    EMPTY = "empty"
    TOO_EARLY = "too early"
    RUNS_OUT = "runs out"
    LASTS = "lasts"
    UNUSED = "unused"


class Outlook(NamedTuple):
    """Outlook with the time at which the allocation will be empty, if before its end, and the
    unused rest of its grant at its end, in SU-minutes.
    """

    course: SpendingPace
    at: int | None = None
    left_over: int | None = None


def outlook(
    granted: int, used: int, start: int, end: int, now: int, *, held: int = 0, limit: int = 0
) -> Outlook:
    """Project the pace of an allocation to its end.

    Args:
        granted, used, held, limit: amounts in SU-minutes; `limit` is credit beyond the grant.
        start, end: the term of the allocation.
        now: the current time.

    Held credit counts as not yet used but certain to be: the rest is at most what is available now.
    There is no pace during the first day. UNUSED is returned after half of the term if more than a
    quarter of the grant would remain. A credit limit does not expire, so it is not counted as
    unused.
    """
    left, past, ahead = granted + limit - used, now - start, end - now
    if past < 0:
        return Outlook(SpendingPace.NOT_STARTED)
    if ahead <= 0:
        return Outlook(SpendingPace.ENDED, left_over=max(0, granted - used))
    if left <= 0:
        return Outlook(SpendingPace.EMPTY, at=now)
    if past < DAY:
        return Outlook(SpendingPace.TOO_EARLY)
    if used > 0 and left * past < used * ahead:
        return Outlook(SpendingPace.RUNS_OUT, at=now + left * past // used)
    left_over = max(0, granted - used - max(held, used * ahead // past))
    wasting = past > ahead and 4 * left_over > granted
    return Outlook(SpendingPace.UNUSED if wasting else SpendingPace.LASTS, left_over=left_over)


def about(minutes: int, look: Look) -> str:
    """Format an estimate with at most three significant digits, truncated."""
    worth = WORTH[look.units]
    whole = minutes // worth
    step = 10 ** max(0, len(str(whole)) - 3)
    return look.su(whole // step * step * worth if whole >= 10 else minutes)


def say(seen: Outlook, look: Look) -> str:
    """Return the outlook in a few words; ! marks one that needs action."""
    match seen:
        case Outlook(SpendingPace.RUNS_OUT, int(at)):
            return f"! {look.day(at)}" if look.short else f"! about {look.day(at)}"
        case Outlook(SpendingPace.LASTS, _, int(left)):
            return (
                f"no, {about(left, look)} left"
                if look.short
                else f"no, about {about(left, look)} left over"
            )
        case Outlook(SpendingPace.UNUSED, _, int(left)):
            return (
                f"! {about(left, look)} lost"
                if look.short
                else f"! {about(left, look)} will expire unused"
            )
        case Outlook(SpendingPace.EMPTY):
            return "!! empty"
        case Outlook(SpendingPace.TOO_EARLY):
            return "too early" if look.short else "too early to tell"
        case _:
            return seen.course.value
