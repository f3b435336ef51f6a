"""Service units: the bank counts whole SU-minutes, people read and write SU (hours)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NewType

from fairbank.values.trouble import Malformed

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

_AMOUNT = re.compile(r"([+-]?)(\d{1,20}|\d{1,3}(?:,\d{3}){1,6})(?:\.(\d{1,20}))?([mhkM]?)", re.ASCII)


def round_up(exact: Fraction) -> SuMinutes:
    """The whole SU-minutes that cover `exact`. Used once per run: 55 core-seconds cost 1 core-minute (HADM, "Service Units")."""
    return SuMinutes(-(-exact.numerator // exact.denominator))


def parse_su(text: str, *, field: str = "amount", default: str = "h") -> SuMinutes:
    """Read `100`, `12.5`, `1,200`, `90m`, `20k`, `1.5M` as SU-minutes; no suffix means SU (hours).

    Raises Malformed, naming `field`, for anything else, for amounts finer than a minute, below 1, or above AMOUNT_MAX.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise Malformed(
            f"{text[:40]!r} is not an amount of SU", field=field, remedy="write SU (hours) such as 100 or 12.5, or 90m, 20k, 1.5M"
        )
    sign, whole, decimals, suffix = match.groups()
    whole, decimals = whole.replace(",", ""), decimals or ""
    minutes, finer = divmod(int(whole + decimals) * WORTH[suffix or default], 10 ** len(decimals))
    if finer:
        raise Malformed(
            f"{text[:40]!r} is finer than one SU-minute", field=field, remedy="the bank counts whole minutes; write for example 0.25 or 15m"
        )
    return amount(-minutes if sign == "-" else minutes, field=field)


def amount(minutes: int, *, field: str = "amount") -> SuMinutes:
    """`minutes` as an amount that may be moved: at least 1, at most AMOUNT_MAX. Raises Malformed, naming `field`."""
    if minutes < 1:
        raise Malformed(
            f"{minutes} SU-minutes cannot be moved", field=field, remedy="an amount is at least 1 minute; to take credit away use withdraw"
        )
    if minutes > AMOUNT_MAX:
        raise Malformed(f"{minutes} SU-minutes is more than the bank counts in one entry", field=field, remedy=f"at most {AMOUNT_MAX}")
    return SuMinutes(minutes)


def show_su(minutes: int, *, units: str = "h", separators: bool = False) -> str:
    """An amount for people, in SU unless `units` says otherwise; two decimals only where it is not whole.

    >>> show_su(3600), show_su(25), show_su(-90), show_su(7_200_000, separators=True)
    ('60', '0.42', '-1.50', '120,000')
    """
    hundredths, rest = divmod(abs(minutes) * 100, WORTH[units])
    hundredths += 2 * rest >= WORTH[units]
    sign = "-" if minutes < 0 and hundredths else ""
    whole, decimals = divmod(hundredths, 100)
    text = f"{whole:,}" if separators else str(whole)
    return f"{sign}{text}.{decimals:02}" if decimals else f"{sign}{text}"


def type_su(minutes: int) -> str:
    """An amount as `parse_su` reads it back, exactly: `66` or, where it is no whole SU, `3959m`."""
    return f"{minutes}m" if minutes % MINUTES_IN_SU else str(minutes // MINUTES_IN_SU)
