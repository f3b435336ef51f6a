"""Service units: the bank stores whole SU-minutes, people read and write SU (hours)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NewType

from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:  # the everyday command formats amounts and must not pay for importing fractions
    from fractions import Fraction

SuMinutes = NewType("SuMinutes", int)
"""One billing unit for one minute. Never a float; only `round_up` converts fractions."""

MINUTES_IN_SU = 60
AMOUNT_MAX = SuMinutes(10**15)
SUM_MAX = SuMinutes(2**53 - 1)
"""Upper bound of every sum, exact in JSON readers, databases and spreadsheets."""

# What one unit of each display suffix is worth, in SU-minutes.
WORTH = {"m": 1, "h": MINUTES_IN_SU, "k": 1_000 * MINUTES_IN_SU, "M": 1_000_000 * MINUTES_IN_SU}

_AMOUNT = re.compile(
    r"([+-]?)(\d{1,40}|\d{1,3}(?:,\d{3}){1,12})(?:\.(\d{1,20}))?([mhkM]?)", re.ASCII
)


def round_up(exact: Fraction) -> SuMinutes:
    """Return the smallest amount that covers `exact`. A price is rounded once, at its end.

    55 core-seconds cost 1 core-minute (HADM, "Service Units").
    """
    return SuMinutes(-(-exact.numerator // exact.denominator))


def parse_su(text: str, *, field: str = "amount", default: str = "h", least: int = 1) -> SuMinutes:
    """Parse `100`, `12.5`, `1,200`, `90m`, `20k`, `1.5M` as SU-minutes; no suffix means SU (hours).

    It reads what `show_su` prints: two decimals of an SU mean the minute that is shown so.

    Args:
        text: the amount.
        field: the name of the field for errors.
        default: the suffix to use if there is none.
        least: the smallest amount accepted, in SU-minutes.

    Raises:
        InvalidInput: not an amount, finer than a minute, too small, or above AMOUNT_MAX.

    >>> parse_su("25.58"), parse_su("0.42"), parse_su("0.41", least=0)
    (1535, 25, 25)
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text[:40]!r} is not an amount of SU",
            field=field,
            remedy="write SU (hours) such as 100 or 12.5, or 90m, 20k, 1.5M",
        )
    sign, whole, decimals, suffix = match.groups()
    whole, decimals = whole.replace(",", ""), decimals or ""
    minutes, finer = divmod(int(whole + decimals) * WORTH[suffix or default], 10 ** len(decimals))
    if finer:
        minutes = _shown_as(
            int(whole + decimals),
            minutes,
            hours=(suffix or default) == "h" and len(decimals) == 2,
            text=text,
            field=field,
        )
    return amount(-minutes if sign == "-" else minutes, field=field, least=least)


def _shown_as(hundredths: int, below: int, *, hours: bool, text: str, field: str) -> int:
    """Return the minutes that are shown with these two decimals, truncated or rounded.

    Raises:
        InvalidInput: the decimals lie between two minutes; the remedy names both.
    """
    for minutes in (below, below + 1) if hours else ():
        if hundredths in (_shown(minutes, "h", None), (20 * minutes + 6) // 12):
            return minutes
    raise InvalidInput(
        f"{text[:40]!r} is finer than one SU-minute",
        field=field,
        remedy=(
            f"the bank counts whole minutes: {below}m is {show_su(below)} SU, "
            f"{below + 1}m is {show_su(below + 1)} SU"
        ),
    )


def amount(minutes: int, *, field: str = "amount", least: int = 1) -> SuMinutes:
    """Check an amount in SU-minutes: at least `least`, at most AMOUNT_MAX. Raises InvalidInput."""
    if minutes < least:
        rule = "an amount is at least one SU-minute: 1m" if least else "an amount is 0 or more"
        raise InvalidInput(
            f"{show_su(minutes)} SU is too small an amount", field=field, remedy=rule
        )
    if minutes > AMOUNT_MAX:
        most = f"at most {AMOUNT_MAX}m, which is {show_su(AMOUNT_MAX)} SU"
        raise InvalidInput(
            f"{minutes} SU-minutes is more than the bank counts in one entry",
            field=field,
            remedy=most,
        )
    return SuMinutes(minutes)


def show_su(
    minutes: int,
    *,
    units: str = "h",
    separators: bool = False,
    decimals: int | None = None,
    down: bool = False,
) -> str:
    """Format an amount, in SU unless `units` says otherwise.

    Further decimals are truncated, so that every command shows the same figure for an amount.

    Args:
        minutes: the amount in SU-minutes.
        units: the suffix of the unit to use, a key of WORTH.
        separators: whether to separate thousands by commas.
        decimals: the number of decimals; default: two, none if the amount is whole.
        down: whether to round down below zero too, for credit that can still be used.

    >>> show_su(3600), show_su(25), show_su(-90), show_su(7_200_000, separators=True)
    ('60', '0.41', '-1.50', '120,000')
    >>> show_su(-25), show_su(-25, down=True), show_su(3600, decimals=2), show_su(90, decimals=0)
    ('-0.41', '-0.42', '60.00', '1')
    """
    return _written(_shown(minutes, units, decimals, down=down), decimals, separators=separators)


class ShownSums(NamedTuple):
    """Amounts of an allocation, formatted."""

    granted: str
    limit: str
    used: str
    held: str
    available: str


def show_sums(
    granted: int,
    used: int,
    held: int,
    available: int,
    *,
    units: str = "h",
    separators: bool = False,
    decimals: int | None = None,
) -> ShownSums:
    """Format the amounts of an allocation so that the shown figures add up.

    All figures are truncated; the difference that this makes goes to held and used, so available
    credit is never shown too high. A credit limit takes the difference if both it and the granted
    amount are truncated. With `decimals=0` this would shift a whole unit, so each figure is rounded
    to the nearest and available credit is truncated.

    >>> show_sums(1535, 0, 0, 1535).available, show_sums(1535, 25, 0, 1510, decimals=0)
    ('25.58', ShownSums(granted='26', limit='0', used='0', held='0', available='25'))
    """
    amounts = (granted, used + held + available - granted, used, held)
    if decimals == 0:
        whole = [
            *((2 * each + WORTH[units]) // (2 * WORTH[units]) for each in amounts),
            _shown(available, units, 0, down=True),
        ]
        return ShownSums(*(_written(each, 0, separators=separators) for each in whole))
    shown = [_shown(each, units, decimals) for each in amounts]
    left = _shown(available, units, decimals, down=True)
    missing = shown[0] + shown[1] - shown[2] - shown[3] - left
    for place, sign in ((3, 1), (2, 1), (1, -1)):
        if (
            missing * sign > 0
            and amounts[place] * 10 ** (2 if decimals is None else decimals) % WORTH[units]
        ):
            shown[place] += 1
            missing -= sign
    return ShownSums(*(_written(each, decimals, separators=separators) for each in (*shown, left)))


def show_running_sums(
    granted: int,
    used: int,
    held: int,
    available: int,
    *,
    units: str = "h",
    separators: bool = False,
    decimals: int | None = None,
) -> ShownSums:
    """Format the amounts of one line of a statement.

    Each figure is formatted by itself, so that it changes only with an entry that moves it. Used
    and held are rounded up, granted and the limit truncated. Available is the rest, which may be
    too low by less than a hundredth for each of the others, and is never too high.

    >>> show_running_sums(6000, 100, 200, 5700), show_running_sums(6000, 100, 0, 5900).available
    (ShownSums(granted='100', limit='0', used='1.67', held='3.34', available='94.99'), '98.33')
    """
    limit = used + held + available - granted
    shown = [
        _shown(granted, units, decimals),
        _shown(limit, units, decimals),
        *(_shown_up(each, units, decimals) for each in (used, held)),
    ]
    left = shown[0] + shown[1] - shown[2] - shown[3]
    return ShownSums(*(_written(each, decimals, separators=separators) for each in (*shown, left)))


def show_change(
    *sums: tuple[int, int],
    owed: bool = False,
    units: str = "h",
    separators: bool = False,
    decimals: int | None = None,
) -> str:
    """Format the change of sums between two lines of a statement, as those lines show them.

    Args:
        sums: pairs of an amount before and after, in SU-minutes.
        owed: whether the sums are used or held, which are rounded up.

    >>> show_change((100, 200), owed=True), show_change((480, 0), (0, 100), owed=True)
    ('1.67', '6.33')
    >>> show_change((6000, 5900))
    '1.67'
    """
    shown = _shown_up if owed else _shown
    moved = sum(
        shown(after, units, decimals) - shown(before, units, decimals) for before, after in sums
    )
    return _written(abs(moved), decimals, separators=separators)


def show_shortfall(
    asked: int,
    available: int,
    *,
    units: str = "h",
    separators: bool = False,
    decimals: int | None = None,
) -> str:
    """Format how much `available` lacks of `asked`: the difference of the figures shown.

    >>> show_su(46_080), show_su(37_789, down=True), show_shortfall(46_080, 37_789)
    ('768', '629.81', '138.19')
    """
    lacking = _shown(asked, units, decimals) - _shown(available, units, decimals, down=True)
    return _written(max(0, lacking), decimals, separators=separators)


def _shown(minutes: int, units: str, decimals: int | None, *, down: bool = False) -> int:
    """Return the amount in units of the last decimal, truncated."""
    parts: int = minutes * 10 ** (2 if decimals is None else decimals)
    worth = WORTH[units]
    return parts // worth if down or parts >= 0 else -(-parts // worth)


def _shown_up(minutes: int, units: str, decimals: int | None) -> int:
    """Return the amount in units of the last decimal, rounded up."""
    return -_shown(-minutes, units, decimals, down=True)


def _written(shown: int, decimals: int | None, *, separators: bool) -> str:
    places = 2 if decimals is None else decimals
    whole, rest = divmod(abs(shown), 10**places)
    text = f"{'-' if shown < 0 else ''}{whole:{',' if separators else ''}}"
    return f"{text}.{rest:0{places}}" if places and (rest or decimals) else text


def exact_su(minutes: int) -> str:
    """Format an amount that `parse_su` reads back exactly: `66`, or `3959m` if it is not a whole
    SU.
    """
    return f"{minutes}m" if minutes % MINUTES_IN_SU else str(minutes // MINUTES_IN_SU)
