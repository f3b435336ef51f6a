"""Reports from the future: some clock is wrong, so nothing is moved on their word; an end is kept and counts when it is said again."""

from __future__ import annotations

from fairbank.bank.wish import Adjust, Asked, Charge, Hold, Release
from fairbank.core.time import Instant, iso

_ENDS = (Charge, Release)  # made once: a union takes longer to make than the rest


def from_future(asked: Asked, wish: Hold | Adjust | Charge | Release) -> str | None:
    """Which time of a report is later than it may be, and what the clock says; None when none is."""
    latest = asked.latest
    if latest is None:
        return None
    start, ended = wish.start, wish.ended if isinstance(wish, _ENDS) else None
    if (
        wish.run.submitted <= latest
        and (start is None or start <= latest)
        and (ended is None or ended <= latest)
    ):
        return None
    told = (("submitted", wish.run.submitted), ("start", start), ("end", ended))
    return next(
        _about(name, at, asked.at, latest) for name, at in told if at is not None and at > latest
    )


def _about(name: str, at: int, now: Instant, latest: int) -> str:
    return f"{name} is {iso(at)}, but the bank's clock says {iso(now)}, and a report may be at most {latest - now} s ahead of it"
