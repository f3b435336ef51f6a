"""Outlook of an allocation in words, from the bank's figures."""

from __future__ import annotations

from fairbank.bank.outlook import OutlookState
from fairbank.core.units import WORTH
from fairbank.report.columns import Look, Row, instant_of


def about(minutes: int, look: Look) -> str:
    """Format an estimate with at most three significant digits, truncated."""
    worth = WORTH[look.units]
    whole = minutes // worth
    step = 10 ** max(0, len(str(whole)) - 3)
    return look.su(whole // step * step * worth if whole >= 10 else minutes)


def show_outlook(row: Row, look: Look) -> str:
    """Return the outlook of a balance row in a few words; ! marks one that needs action."""
    state = OutlookState(row["outlook"])
    match state:
        case OutlookState.RUNS_OUT:
            day = look.day(instant_of(row["runs_out"]))
            return f"! {day}" if look.short else f"! about {day}"
        case OutlookState.LASTS:
            left = about(row["left_over"], look)
            return f"no, {left} left" if look.short else f"no, about {left} left over"
        case OutlookState.UNUSED:
            left = about(row["left_over"], look)
            return f"! {left} lost" if look.short else f"! {left} will expire unused"
        case OutlookState.EMPTY:
            return "!! empty"
        case OutlookState.TOO_EARLY:
            return "too early" if look.short else "too early to tell"
        case _:
            return str(state.value)
