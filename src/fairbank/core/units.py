"""Service units: the bank counts whole SU-minutes, people read and write SU (hours)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NewType

from fairbank.core.errors import Malformed

if TYPE_CHECKING:  # the everyday command formats amounts and must not pay for importing fractions
    from fractions import Fraction

SuMinutes = NewType("SuMinutes", int)
"""One billing unit for one minute. Never a float; `round_up` is the only place where a fraction becomes one."""

MINUTES_IN_SU = 60
AMOUNT_MAX = SuMinutes(10**15)
SUM_MAX = SuMinutes(2**53 - 1)
"""No sum grows beyond this, so that every JSON reader, database and spreadsheet holds it exactly."""

# What one unit of each display suffix is worth, in SU-minutes.
WORTH = {"m": 1, "h": MINUTES_IN_SU, "k": 1_000 * MINUTES_IN_SU, "M": 1_000_000 * MINUTES_IN_SU}

_AMOUNT = re.compile(
    r"([+-]?)(\d{1,40}|\d{1,3}(?:,\d{3}){1,12})(?:\.(\d{1,20}))?([mhkM]?)", re.ASCII
)


def round_up(exact: Fraction) -> SuMinutes:
    """The whole SU-minutes that cover `exact`. Used once per run: 55 core-seconds cost 1 core-minute (HADM, "Service Units")."""
    return SuMinutes(-(-exact.numerator // exact.denominator))


def parse_su(text: str, *, field: str = "amount", default: str = "h", least: int = 1) -> SuMinutes:
    """Read `100`, `12.5`, `1,200`, `90m`, `20k`, `1.5M` as SU-minutes; no suffix means SU (hours).

    What `show_su` prints is read back: of SU with two decimals, the minute that is shown so. Raises Malformed, naming `field`, for anything
    else, for amounts finer than a minute, below `least` minutes, or above AMOUNT_MAX.

    >>> parse_su("25.58"), parse_su("0.42"), parse_su("0.41", least=0)
    (1535, 25, 25)
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise Malformed(
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
    """The minutes that these two decimals are, cut off as they are printed, or to the nearest; between two minutes no others are meant.
    Raises Malformed, naming the two."""
    for minutes in (below, below + 1) if hours else ():
        if hundredths in (_shown(minutes, "h", None), (20 * minutes + 6) // 12):
            return minutes
    raise Malformed(
        f"{text[:40]!r} is finer than one SU-minute",
        field=field,
        remedy=f"the bank counts whole minutes: {below}m is {show_su(below)} SU, {below + 1}m is {show_su(below + 1)} SU",
    )


def amount(minutes: int, *, field: str = "amount", least: int = 1) -> SuMinutes:
    """`minutes` as an amount: at least 1 (or `least`), at most AMOUNT_MAX. Raises Malformed, naming `field`."""
    if minutes < least:
        rule = "an amount is at least one SU-minute: 1m" if least else "an amount is 0 or more"
        raise Malformed(f"{show_su(minutes)} SU is too small an amount", field=field, remedy=rule)
    if minutes > AMOUNT_MAX:
        most = f"at most {AMOUNT_MAX}m, which is {show_su(AMOUNT_MAX)} SU"
        raise Malformed(
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
    """An amount for people, in SU unless `units` says otherwise; two decimals only where it is not whole, or as many as `decimals` says.

    What follows is cut off, so that no two figures of one amount differ; with `down` never more than it is also below zero, for what
    somebody may still draw.

    >>> show_su(3600), show_su(25), show_su(-90), show_su(7_200_000, separators=True)
    ('60', '0.41', '-1.50', '120,000')
    >>> show_su(-25), show_su(-25, down=True), show_su(3600, decimals=2), show_su(90, decimals=0)
    ('-0.41', '-0.42', '60.00', '1')
    """
    return _written(_shown(minutes, units, decimals, down=down), decimals, separators=separators)


class ShownSums(NamedTuple):
    """The amounts of an allocation, as text."""

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
    """Amounts that add up, so that they add up as they are shown too: granted, with the credit limit, is used, held and available.

    All are cut off; what that took of held and used, and is missing in the sum, they get back, so what is available is never more than
    it is. A limit takes what it and what was granted together make, where both are cut. Without decimals that would shift a whole unit
    from one to another: there each is rounded to the nearest by itself, and what is available cut off.

    >>> show_sums(1535, 0, 0, 1535).available, show_sums(1535, 25, 0, 1510, decimals=0)
    ('25.58', Sums(granted='26', limit='0', used='0', held='0', available='25'))
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
    """The same where sums stand below each other: each is shown by itself, so that none changes but by an entry that moves it.

    What is used and held is rounded up, what was granted and the limit are cut off; available is what is then left in the row, which may be
    less than it is, by under a hundredth for each of the others, and is never more.

    >>> show_running(6000, 100, 200, 5700), show_running(6000, 100, 0, 5900).available
    (Sums(granted='100', limit='0', used='1.67', held='3.34', available='94.99'), '98.33')
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
    """By how much sums of `show_running`, each before and after, grew or fell together as they are shown; `owed`: what is used or held.

    >>> show_moved((100, 200), owed=True), show_moved((480, 0), (0, 100), owed=True), show_moved((6000, 5900))
    ('1.67', '6.33', '1.67')
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
    """How much `available` lacks of `asked`, so that people can check it: the one less the other, as they are shown.

    >>> show_su(46_080), show_su(37_789, down=True), show_short(46_080, 37_789)
    ('768', '629.81', '138.19')
    """
    lacking = _shown(asked, units, decimals) - _shown(available, units, decimals, down=True)
    return _written(max(0, lacking), decimals, separators=separators)


def _shown(minutes: int, units: str, decimals: int | None, *, down: bool = False) -> int:
    """An amount in the last of its decimals, cut off."""
    parts: int = minutes * 10 ** (2 if decimals is None else decimals)
    worth = WORTH[units]
    return parts // worth if down or parts >= 0 else -(-parts // worth)


def _shown_up(minutes: int, units: str, decimals: int | None) -> int:
    """An amount in the last of its decimals, rounded up."""
    return -_shown(-minutes, units, decimals, down=True)


def _written(shown: int, decimals: int | None, *, separators: bool) -> str:
    places = 2 if decimals is None else decimals
    whole, rest = divmod(abs(shown), 10**places)
    text = f"{'-' if shown < 0 else ''}{whole:{',' if separators else ''}}"
    return f"{text}.{rest:0{places}}" if places and (rest or decimals) else text


def exact_su(minutes: int) -> str:
    """An amount as `parse_su` reads it back, exactly: `66` or, where it is no whole SU, `3959m`."""
    return f"{minutes}m" if minutes % MINUTES_IN_SU else str(minutes // MINUTES_IN_SU)
