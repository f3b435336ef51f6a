"""Service units: the bank stores whole SU-minutes, people read and write SU (hours)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NewType

from fairbank.core.errors import InvalidInput

if TYPE_CHECKING:  # the everyday command formats amounts and must not pay for importing fractions
    from collections.abc import Mapping
    from fractions import Fraction
    from typing import Any

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


def exact_decimal(number: Fraction) -> str:
    """Format a fraction as a decimal if it is finite, else as `1/3`."""
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return str(number)
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // number.denominator).zfill(places + 1)
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def round_up(exact: Fraction) -> SuMinutes:
    """Return the smallest amount that covers `exact`. A price is rounded once, at its end.

    55 core-seconds cost 1 core-minute (HADM, "Service Units").
    """
    return SuMinutes(-(-exact.numerator // exact.denominator))


def nearest(numerator: int, denominator: int) -> int:
    """Return the quotient, rounded to the nearest, halves away from 0: the one rounding of what is
    shown.

    >>> nearest(1, 2), nearest(-1, 2), nearest(149, 100)
    (1, -1, 1)
    """
    rounded = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -rounded if numerator < 0 else rounded


def in_percent(part: int, whole: int | None) -> int | None:
    """Return a part in hundredths; None if the whole is 0 or not known."""
    return nearest(100 * part, whole) if whole else None


def in_permille(part: int, whole: int | None) -> int | None:
    """Return a part in thousandths; None if the whole is 0 or not known."""
    return nearest(1000 * part, whole) if whole else None


def show_permille(permille: int) -> str:
    """Format thousandths in percent: `99.9%`."""
    return f"{permille // 10}.{permille % 10}%"


def parse_su(text: str, *, field: str = "amount", least: int = 1) -> SuMinutes:
    """Parse `100`, `12.5`, `90m`, `20k` as SU-minutes; no suffix means SU (hours).

    `90M` is refused, because it may be meant as minutes or as millions, and `1,200`, because the
    comma may be a decimal one; `1,200.50` and `1,200,000` are not ambiguous. Two decimals of an SU,
    as `show_su` prints them, mean the nearest minute.

    Args:
        text: the amount.
        field: the name of the field for errors.
        least: the smallest amount accepted, in SU-minutes.

    Raises:
        InvalidInput: not an amount, with M, finer than a minute, too small, or above AMOUNT_MAX.

    >>> parse_su("25.58"), parse_su("25.59"), parse_su("0.42"), parse_su("0.41", least=0)
    (1535, 1535, 25, 25)
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text[:40]!r} is not an amount of SU",
            field=field,
            remedy="write SU (hours) such as 100 or 12.5, or 90m, 20k",
        )
    sign, whole, decimals, suffix = match.groups()
    if "," in whole and (whole.startswith("0") or (decimals is None and whole.count(",") == 1)):
        raise _ambiguous_comma(text, whole, suffix, field=field)
    whole, decimals = whole.replace(",", ""), decimals or ""
    if suffix == "M":
        thousands = f"{whole}{decimals.ljust(3, '0')[:3]}".lstrip("0")
        raise InvalidInput(
            f"{text[:40]!r} is ambiguous: M may mean minutes or millions",
            field=field,
            remedy=f"write {text[:40].removesuffix('M')}m for SU-minutes, or"
            f" {thousands or '0'}k for millions of SU",
        )
    minutes, finer = divmod(int(whole + decimals) * WORTH[suffix or "h"], 10 ** len(decimals))
    if finer:
        # `show_su` prints two decimals of an SU: a minute is more than one of them.
        if (suffix or "h") != "h" or len(decimals) != 2:
            raise _finer_than_a_minute(text, minutes, field=field, least=least)
        minutes += 2 * finer > 10 ** len(decimals)
    return amount(-minutes if sign == "-" else minutes, field=field, least=least)


def _ambiguous_comma(text: str, whole: str, suffix: str, *, field: str) -> InvalidInput:
    """Return the error for one comma before three digits; its remedy has both meanings."""
    groups = whole.split(",")
    meanings = [f"{''.join(groups)}{suffix}"] if groups[0].strip("0") else []
    meanings += [f"{'.'.join(groups)}{suffix}"] if len(groups) == 2 else []
    return InvalidInput(
        f"{text[:40]!r} is ambiguous: a comma may separate thousands or decimals",
        field=field,
        remedy=f"write {' or '.join(meanings) or 'the digits without commas'}",
    )


def _finer_than_a_minute(text: str, below: int, *, field: str, least: int) -> InvalidInput:
    """Return the error for an amount between two minutes; its remedy names them."""
    near = [minutes for minutes in (below, below + 1) if minutes >= least]
    return InvalidInput(
        f"{text[:40]!r} is finer than one SU-minute",
        field=field,
        remedy="the bank counts whole minutes: "
        + ", ".join(f"{minutes}m is {show_su(minutes)} SU" for minutes in near),
    )


def amount(minutes: int, *, field: str = "amount", least: int = 1) -> SuMinutes:
    """Check an amount, and return it.

    Args:
        minutes: amount in SU-minutes.
        field: name for the error.
        least: lowest accepted amount in SU-minutes; the highest is AMOUNT_MAX.

    Raises:
        InvalidInput: the amount is out of range.
    """
    if minutes < least:
        rule = "an amount is at least one SU-minute: 1m" if least else "an amount is 0 or more"
        raise InvalidInput(
            f"{show_su(minutes)} SU is too small an amount", field=field, remedy=rule
        )
    if minutes > AMOUNT_MAX:
        most = f"at most {AMOUNT_MAX}m, which is {show_su(AMOUNT_MAX)} SU"
        raise InvalidInput(
            f"{show_minutes(minutes)} is more than the bank counts in one entry",
            field=field,
            remedy=most,
        )
    return SuMinutes(minutes)


class AmountFormat(NamedTuple):
    """Format of amounts.

    `units` is the suffix of the unit, a key of WORTH. `separators` separates thousands by commas.
    `decimals` is the number of decimals; None: two, none if the amount is whole.
    """

    units: str = "h"
    separators: bool = False
    decimals: int | None = None

    def parts(self, minutes: int) -> int:
        """Return an amount in units of the last decimal."""
        return nearest(minutes * 10**self.places, WORTH[self.units])

    def write(self, parts: int) -> str:
        """Return the text of an amount in units of the last decimal."""
        whole, rest = divmod(abs(parts), 10**self.places)
        text = f"{'-' if parts < 0 else ''}{whole:{',' if self.separators else ''}}"
        return f"{text}.{rest:0{self.places}}" if self.places and (rest or self.decimals) else text

    def write_rounded(self, parts: int, exact: int) -> str:
        """Return the text of a rounded amount; not 0 unless `exact` is."""
        if not parts and exact:
            return f"<{self.write(1)}" if exact > 0 else f">{self.write(-1)}"
        return self.write(parts)

    @property
    def places(self) -> int:
        """Number of decimals that are computed."""
        return 2 if self.decimals is None else self.decimals


IN_SU = AmountFormat()
"""Format of texts in JSON, which programs may read."""

IN_SENTENCES = AmountFormat(separators=True)
"""Format of amounts in sentences, which only people read."""


def show_su(minutes: int, form: AmountFormat = IN_SENTENCES) -> str:
    """Format an amount, rounded to the nearest; for a sentence in SU unless `form` says otherwise.

    Each amount has one text, whether it is granted, used, held or left, and two amounts in SU never
    have the same one. What is too small for the decimals of a large unit is not shown as 0.

    Args:
        minutes: the amount in SU-minutes.
        form: the format.

    >>> show_su(3600), show_su(25), show_su(-90), show_su(7_200_000), show_su(7_200_000, IN_SU)
    ('60', '0.42', '-1.50', '120,000', '120000')
    >>> show_su(1), show_su(119), show_su(120), show_su(3600, AmountFormat(decimals=2))
    ('0.02', '1.98', '2', '60.00')
    >>> show_su(365, AmountFormat("M")), show_su(-1, AmountFormat("k"))
    ('<0.01', '>-0.01')
    """
    if form is IN_SU and minutes >= 0:
        # As below, in a third of the time: the bank's lists have thousands of amounts.
        whole, rest = divmod((minutes * 5 + 1) // 3, 100)
        return f"{whole}.{rest:02}" if rest else str(whole)
    return form.write_rounded(form.parts(minutes), minutes)


def show_hours(seconds: int, form: AmountFormat) -> str:
    """Format seconds in hours, whatever the unit of amounts is, rounded as amounts are.

    >>> show_hours(59 * 60, IN_SENTENCES), show_hours(7_200, IN_SENTENCES), show_hours(1, IN_SU)
    ('0.98', '2', '<0.01')
    >>> show_hours(1, AmountFormat(decimals=4))
    '0.0003'
    """
    return form.write_rounded(nearest(seconds * 10**form.places, 60 * MINUTES_IN_SU), seconds)


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return a number with its noun, such as `1 row` or `2,000 rows`.

    Args:
        thing: noun in the singular.
        things: irregular plural; None adds an s.
    """
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def show_minutes(minutes: int) -> str:
    """Format an exact amount with its unit: `1 SU-minute`, `1,440 SU-minutes`."""
    return counted(minutes, "SU-minute")


class ShownSums(NamedTuple):
    """Amounts of an allocation, formatted."""

    granted: str
    limit: str
    used: str
    held: str
    remaining: str


def show_sums(
    granted: int, used: int, held: int, remaining: int, form: AmountFormat = IN_SENTENCES
) -> ShownSums:
    """Format the amounts of an allocation.

    Args:
        granted: credit of the grant in SU-minutes, as are all amounts; without the credit limit.
        used: charges.
        held: holds of open runs.
        remaining: what is left of the grant and of the credit limit.
        form: unit, decimals and separators of all figures.

    >>> show_sums(6000, 25, 35, 5940)
    ShownSums(granted='100', limit='0', used='0.42', held='0.58', remaining='99')
    """
    limit = used + held + remaining - granted
    amounts = (granted, limit, used, held, remaining)
    return ShownSums(*(show_su(amount, form) for amount in amounts))


def show_shortfall(requested: int, available: int, form: AmountFormat = IN_SENTENCES) -> str:
    """Format how much credit is missing, at least 0.

    Args:
        requested: amount to be paid in SU-minutes.
        available: credit in SU-minutes.
        form: unit, decimals and separators.

    >>> show_su(46_080), show_su(37_789), show_shortfall(46_080, 37_789)
    ('768', '629.82', '138.18')
    """
    return show_su(max(0, requested - available), form)


# --- amounts in objects of JSON ---

AMOUNTS = frozenset(
    "after amount available available_at_end beyond_credit cap capacity charged charged_minutes"
    " cost credit_in credit_limit credit_out deposited down expired_minutes granted granted_at_end"
    " granted_minutes held held_at_the_peak highest idle left left_over lowest my_cap my_charged"
    " my_held my_left occupied pace refunded refused_requested released remaining requested"
    " returned shortfall total uncharged unpaid_minutes used wasted written_off".split()
)
"""Names of fields that are amounts, in each answer of the bank and in the JSON of each command."""


def amount_texts(fields: Mapping[str, object], form: AmountFormat = IN_SU) -> dict[str, str]:
    """Return the text of each amount of an object, as a table shows it.

    Args:
        fields: the fields of the object, also those that are no amounts.
        form: the format; default: in SU.
    """
    # Agents get thousands of these in an answer: no second pass over the fields, no sets.
    return {
        name: show_su(value, form)
        for name, value in fields.items()
        if name in AMOUNTS and isinstance(value, int)
    }


def with_texts(value: Any, form: AmountFormat = IN_SU) -> Any:
    """Return a JSON value in which each object with amounts has them as text, too."""
    if isinstance(value, dict):
        # The bank's texts are in SU. What it marks as not known is no figure in any unit.
        fields = {name: part for name, part in value.items() if name != "display"}
        inside = {name: with_texts(part, form) for name, part in fields.items()}
        display = amount_texts(value, form)
        display |= {
            name: text
            for name, text in value.get("display", {}).items()
            if name in display and text == "-"
        }
        return {**inside, "display": display} if display else inside
    if isinstance(value, list | tuple):
        return [with_texts(item, form) for item in value]
    return value
