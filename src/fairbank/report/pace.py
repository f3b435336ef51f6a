"""When an allocation runs out: its pace since its start, drawn on to its end. A projection, not a promise."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from fairbank.core.time import DAY
from fairbank.core.units import WORTH
from fairbank.report.columns import Look


class SpendingPace(Enum):
    """Where an allocation is heading."""

    NOT_STARTED = "not started"
    ENDED = "ended"
    EMPTY = "empty"
    TOO_EARLY = "too early"
    RUNS_OUT = "runs out"
    LASTS = "lasts"
    UNUSED = "unused"


class Outlook(NamedTuple):
    """`at` is when it will be empty, if before its end; `left_over` what is left of its grant at its end, in SU-minutes."""

    course: SpendingPace
    at: int | None = None
    left_over: int | None = None


def outlook(
    granted: int, used: int, start: int, end: int, now: int, *, held: int = 0, limit: int = 0
) -> Outlook:
    """Where an allocation of `granted` is heading, `used` of which is charged at `now`; `limit` more can be drawn on credit.

    What is `held` counts as not yet used, but will be: no more is left over than is available now. In the first day there is no pace to
    speak of. UNUSED is said from half of the term on, when more than a quarter of the grant would be left. Nobody loses a limit.
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
    """An estimate: at most three digits that say something, the rest cut off, as all amounts are."""
    worth = WORTH[look.units]
    whole = minutes // worth
    step = 10 ** max(0, len(str(whole)) - 3)
    return look.su(whole // step * step * worth if whole >= 10 else minutes)


def say(seen: Outlook, look: Look) -> str:
    """The outlook in a few words; ! where somebody should act."""
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
