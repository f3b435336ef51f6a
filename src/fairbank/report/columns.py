"""Columns of tables, and the format of amounts and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_instant, show_duration
from fairbank.core.units import (
    AmountFormat,
    ShownSums,
    show_permille,
    show_shortfall,
    show_su,
    show_sums,
)
from fairbank.report.cells import plain

Row = Mapping[str, Any]
"""One object of the bank's answer."""

UNITS = {"m": "SU-minutes", "h": "SU", "k": "thousand SU", "M": "million SU"}


# A time in quotes was typed so, and the value of an option is typed again. A part of a word, as in
# the name of a file, is no time.
_INSTANT = re.compile(
    r"(['\"]|--?[A-Za-z][a-z-]* )?(?<![\w/=.-])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?![\w.]*[\w/-])",
    re.ASCII,
)


class DisplayFormat(NamedTuple):
    """Format of amounts and times: unit, thousands separators, time zone.

    `short` selects a brief form for narrow terminals, `exact` the full form for programs. A short
    time leaves out the year only if it is `year`, the present one.
    """

    units: str = "h"
    separators: bool = False
    zone: tzinfo = UTC
    short: bool = False
    exact: bool = False
    decimals: int | None = None
    """Number of decimals of each amount; None: two, none if the amount is whole."""
    year: int | None = None

    @property
    def unit(self) -> str:
        """Name of the unit that amounts are shown in."""
        return UNITS[self.units]

    @property
    def amounts(self) -> AmountFormat:
        # Scripts get all digits: of a million SU a hundredth is much, and they add rows up.
        digits = {"k": 5, "M": 8}.get(self.units) if self.exact else None
        return AmountFormat(self.units, self.separators, digits or self.decimals)

    def su(self, minutes: int) -> str:
        """Format an amount."""
        return show_su(minutes, self.amounts)

    @property
    def for_sentences(self) -> DisplayFormat:
        """Format of amounts in a sentence: with separators, also where tables have none."""
        return self._replace(separators=True)

    def su_text(self, minutes: int) -> str:
        """Format an amount of a sentence, with its unit."""
        return self.with_unit(self.for_sentences.su(minutes))

    def with_unit(self, amount: str) -> str:
        """Return a formatted amount with its unit, in the singular for one SU-minute."""
        is_one = amount == "1" and self.units == "m"
        return f"{amount} {self.unit.removesuffix('s') if is_one else self.unit}"

    def sums(self, granted: int, used: int, held: int, remaining: int) -> ShownSums:
        """Format the amounts of an allocation.

        Args:
            granted: credit of the grant in SU-minutes, as are all amounts.
            used: charges.
            held: holds of open runs.
            remaining: what is left of the grant and of the credit limit.
        """
        return show_sums(granted, used, held, remaining, self.amounts)

    def lacking(self, requested: int, available: int) -> str:
        """Format the shortfall: the requested amount less the available one."""
        return show_shortfall(requested, available, self.amounts)

    def day(self, instant: int) -> str:
        return datetime.fromtimestamp(instant, self.zone).strftime("%Y-%m-%d")

    def moment(self, instant: int) -> str:
        """Format a time: `2026-11-21 07:30:12`, short `11-21 07:30` or `2025-11-21 07:30`, exact
        in ISO with the zone.
        """
        at = datetime.fromtimestamp(instant, self.zone)
        if self.exact:
            return at.isoformat()
        if not self.short:
            return at.strftime("%Y-%m-%d %H:%M:%S")
        return at.strftime("%m-%d %H:%M" if at.year == self.year else "%Y-%m-%d %H:%M")

    def sentence(self, text: str) -> str:
        """Replace the UTC times of a sentence of the bank by times in this zone, except those of
        quotations and options.
        """
        return _INSTANT.sub(lambda match: match[0] if match[1] else self._in_zone(match[0]), text)

    def _in_zone(self, text: str) -> str:
        try:
            return self.moment(parse_instant(text))
        except InvalidInput:  # no time, such as a 30 February in a reason that staff gave
            return text

    def last_day(self, end: int) -> str:
        """Format the end of a period, which it excludes: its last day, or unless `short` date and
        time if that is not midnight, exact with the zone.
        """
        at = datetime.fromtimestamp(end, self.zone)
        if self.short or at.time() == time():
            return self.day(end - 1)
        if self.exact:
            return at.isoformat()
        return at.strftime("%Y-%m-%d %H:%M")

    def days(self, start: int, end: int) -> str:
        """Format a period as its first and its last day: `2026-07-01 .. 2027-06-30`."""
        return f"{self.day(start)} .. {self.day(end - 1)}"

    def as_of(self, instant: int) -> str:
        """Format a time with its offset: `2026-11-21 07:30:12 -05:00`."""
        at = datetime.fromtimestamp(instant, self.zone)
        offset = at.strftime("%z")
        return f"{at:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


Show = Callable[[Row, DisplayFormat], str]


class Amount:
    """Shows an amount of SU, rounded. Programs also get it in whole minutes."""

    def __init__(self, show: Show) -> None:
        self._show = show

    def __call__(self, row: Row, form: DisplayFormat) -> str:
        return self._show(row, form)

    def in_minutes(self, row: Row, form: DisplayFormat) -> str:
        return self(row, form._replace(units="m"))


class Summand(Amount):
    """Shows an amount in a row that adds up: granted + limit = used + held + remaining."""

    def __init__(self, name: str, granted: str = "deposited", used: str = "charged") -> None:
        super().__init__(self._cell)
        self._name, self._keys = name, (granted, used, "held")

    def sums(self, row: Row, form: DisplayFormat) -> ShownSums | None:
        """Format the amounts of a row."""
        rest: Any = row.get("remaining")
        amounts = [*(row.get(key) for key in self._keys), rest]
        return None if None in amounts else form.sums(*map(int, amounts))

    def _cell(self, row: Row, form: DisplayFormat) -> str:
        sums = self.sums(row, form)
        return "" if sums is None else str(getattr(sums, self._name))


class SameWhenShort:
    """Shows a cell that is no shorter on a narrow terminal, so that it is made only once."""

    def __init__(self, show: Show) -> None:
        self._of_row = show

    def __call__(self, row: Row, form: DisplayFormat) -> str:
        return self._of_row(row, form)


class PlainField(SameWhenShort):
    """Shows a field of the row, empty if it is missing, in the same way in every format."""

    def __init__(self, key: str, show: Callable[[Any], str] = str) -> None:
        super().__init__(self._cell)
        self._key, self._show = key, show

    def _cell(self, row: Row, form: DisplayFormat) -> str:
        value = row.get(self._key)
        return "" if value is None else self._show(value)

    def all(self, rows: Sequence[Row]) -> list[str]:
        """Return the cells of all rows; a call for each takes twice the time."""
        key, show = self._key, self._show
        return ["" if (value := row.get(key)) is None else show(value) for row in rows]


class Column(NamedTuple):
    """Column of a table.

    Columns with the highest `drop` are dropped first on a narrow terminal; 0 is never dropped.
    Before that, columns with a `min_width` are truncated to it. An `extra` column needs a wide
    terminal or must be selected. `fixed_width` is a selected width. A column that `wraps` continues
    in further lines instead of being truncated.
    """

    head: str
    show: Show
    right: bool = False
    drop: int = 0
    extra: bool = False
    fixed_width: int | None = None
    min_width: int | None = None
    wraps: bool = False

    def cell(self, row: Row, form: DisplayFormat) -> str:
        """Return the cell of a row, safe for a terminal."""
        return plain(self.show(row, form))

    def cells(self, rows: Sequence[Row], form: DisplayFormat) -> list[str]:
        """Return the cells of all rows, with the same number of decimals: none if all are whole,
        else two. They do not depend on the width of the terminal: an amount is the same everywhere.
        """
        show = self.show
        cells = (
            show.all(rows) if isinstance(show, PlainField) else [show(row, form) for row in rows]
        )
        joined = "".join(cells)
        if not (joined.isascii() and joined.isprintable()):  # faster than a call for each cell
            cells = list(map(plain, cells))
        if not self.right or isinstance(show, PlainField) or not any("." in cell for cell in cells):
            return cells
        return [self.cell(row, form._replace(decimals=2)) for row in rows]


EXACT = "-MINUTES"
"""End of the header of an amount in whole SU-minutes."""


def with_unit(columns: Sequence[Column], unit: str) -> list[Column]:
    """Return the columns; if the unit is not SU, the headers of amounts name it: `USED (million
    SU)`.

    Args:
        columns: columns that were chosen.
        unit: a key of UNITS.
    """
    if unit == DisplayFormat().units:
        return list(columns)
    return [
        column._replace(head=f"{column.head} ({UNITS[unit]})")
        if isinstance(column.show, Amount)
        else column
        for column in columns
    ]


def with_minutes(columns: Sequence[Column], *, extra: bool = False) -> list[Column]:
    """Return the columns, then each amount in whole SU-minutes: shown, or `extra` if selected."""
    exact = [
        column._replace(
            head=f"{column.head}{EXACT}", show=column.show.in_minutes, extra=extra or column.extra
        )
        for column in columns
        if isinstance(column.show, Amount)
    ]
    return [*columns, *exact]


def field(key: str, show: Callable[[Any, DisplayFormat], str]) -> Show:
    """Show a field of the row; empty if it is missing."""
    return lambda row, form: "" if row.get(key) is None else show(row[key], form)


def text(key: str) -> PlainField:
    """Show the field unchanged."""
    return PlainField(key)


def decimal(key: str, decimals: int) -> Show:
    """Show the field as a number with this number of decimals."""
    return field(key, lambda value, form: f"{value:.{decimals}f}")


def su(key: str) -> Amount:
    """Show the field as an amount."""
    return Amount(field(key, lambda value, form: form.su(int(value))))


def if_any(amount: Amount) -> Amount:
    """Show the amount; - in a table if the row has none."""

    def show(row: Row, form: DisplayFormat) -> str:
        return amount(row, form) or ("" if form.exact else "-")

    return Amount(show)


def percent(permille_of: Callable[[Row], int | None]) -> Show:
    """Show a part in percent; - where it is not known."""

    def show(row: Row, form: DisplayFormat) -> str:
        permille = permille_of(row)
        return ("" if form.exact else "-") if permille is None else show_permille(permille)

    return show


def day(key: str) -> Show:
    return field(key, lambda value, form: form.day(instant_of(value)))


def last_day(key: str) -> Show:
    """Show the end of a period, which it excludes, as its last day."""
    return field(key, lambda value, form: form.day(instant_of(value) - 1))


def moment(key: str) -> Show:
    return field(key, lambda value, form: form.moment(instant_of(value)))


def duration(key: str) -> PlainField:
    return PlainField(key, lambda value: show_duration(int(value)))


def instant_of(value: object) -> int:
    """Return a time of an answer, given as ISO text or seconds."""
    return value if isinstance(value, int) else parse_instant(str(value))
