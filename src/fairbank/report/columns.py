"""Columns: what each shows of a row, and how people want figures and times shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from fairbank.core.time import parse_instant, show_duration
from fairbank.core.units import (
    ShownSums,
    show_change,
    show_running_sums,
    show_shortfall,
    show_su,
    show_sums,
)
from fairbank.report.cells import plain

Row = Mapping[str, Any]
"""One object of an answer of the bank."""

UNITS = {"m": "SU-minutes", "h": "SU", "k": "thousand SU", "M": "million SU"}


class Look(NamedTuple):
    """How figures and times are shown: in which units, with thousands separators or not, in which zone; in short where there is
    little room, and exactly, for programs, without anything that is only for the eye."""

    units: str = "h"
    separators: bool = False
    zone: tzinfo = UTC
    short: bool = False
    exact: bool = False
    decimals: int | None = None
    """As many for each amount; None: two where it is not whole."""

    def su(self, minutes: int) -> str:
        """An amount that was granted, used, held, moved: cut off."""
        return show_su(
            minutes, units=self.units, separators=self.separators, decimals=self.decimals
        )

    def left(self, minutes: int) -> str:
        """An amount that may still be drawn: never shown as more than it is."""
        return show_su(
            minutes, units=self.units, separators=self.separators, decimals=self.decimals, down=True
        )

    def sums(self, granted: int, used: int, held: int, available: int) -> ShownSums:
        """The amounts of an allocation, which add up as they are shown."""
        return show_sums(
            granted,
            used,
            held,
            available,
            units=self.units,
            separators=self.separators,
            decimals=self.decimals,
        )

    def running(self, granted: int, used: int, held: int, available: int) -> ShownSums:
        """The same in a row below others: they add up as well, and none changes but by what moves it."""
        return show_running_sums(
            granted,
            used,
            held,
            available,
            units=self.units,
            separators=self.separators,
            decimals=self.decimals,
        )

    def moved(self, *sums: tuple[int, int], owed: bool) -> str:
        """By how much such sums, each before and after, grew or fell together; `owed`: what is used or held."""
        return show_change(
            *sums, owed=owed, units=self.units, separators=self.separators, decimals=self.decimals
        )

    def lacking(self, asked: int, available: int) -> str:
        """What is missing: the amount that was asked less what is left, as they are shown."""
        return show_shortfall(
            asked, available, units=self.units, separators=self.separators, decimals=self.decimals
        )

    def day(self, instant: int) -> str:
        return datetime.fromtimestamp(instant, self.zone).strftime("%Y-%m-%d")

    def moment(self, instant: int) -> str:
        """`2026-11-21 07:30:12`, in short `11-21 07:30`, exactly `2026-11-21T07:30:12-05:00`."""
        at = datetime.fromtimestamp(instant, self.zone)
        return (
            at.isoformat()
            if self.exact
            else at.strftime("%m-%d %H:%M" if self.short else "%Y-%m-%d %H:%M:%S")
        )

    def as_of(self, instant: int) -> str:
        """`2026-11-21 07:30:12 -05:00`."""
        at = datetime.fromtimestamp(instant, self.zone)
        offset = at.strftime("%z")
        return f"{at:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"


Show = Callable[[Row, Look], str]


class Amount:
    """Shows an amount of SU, which may be rounded there; programs are told it in whole minutes too."""

    def __init__(self, show: Show) -> None:
        self._show = show

    def __call__(self, row: Row, look: Look) -> str:
        return self._show(row, look)

    def in_minutes(self, row: Row, look: Look) -> str:
        return self._show(row, look._replace(units="m"))


class Summand(Amount):
    """An amount of an allocation, in a row that adds up: granted + limit = used + held + available."""

    def __init__(self, name: str, granted: str = "deposited", used: str = "charged") -> None:
        self._name, self._keys = name, (granted, used, "held", "available")

    def __call__(self, row: Row, look: Look) -> str:
        sums = self._sums(row, look)
        return "" if sums is None else str(getattr(sums, self._name))

    def in_minutes(self, row: Row, look: Look) -> str:
        return self(row, look._replace(units="m"))

    def largest(self, row: Row, look: Look) -> str:
        """Of the row: by it all its amounts have decimals or none has."""
        sums = self._sums(row, look)
        return "" if sums is None else max(sums, key=lambda each: len(_whole(each)))

    def _sums(self, row: Row, look: Look) -> ShownSums | None:
        amounts = [row.get(key) for key in self._keys]
        return (
            None
            if None in amounts
            else self._shown(look, *(int(each) for each in amounts if each is not None))
        )

    def _shown(self, look: Look, granted: int, used: int, held: int, available: int) -> ShownSums:
        return look.sums(granted, used, held, available)


class RunningColumn(Summand):
    """The same where each row follows from the one before it."""

    def _shown(self, look: Look, granted: int, used: int, held: int, available: int) -> ShownSums:
        return look.running(granted, used, held, available)


class Column(NamedTuple):
    """`drop` says which column goes first where there is too little room: the higher, the earlier; 0 stays.
    Before any goes, those with a `least` width are cut down to it. An `extra` column is shown where there is much room, or when
    asked for. `wide` is a width asked for. What `brief` does, `cells` says.
    """

    head: str
    show: Show
    right: bool = False
    drop: int = 0
    extra: bool = False
    wide: int | None = None
    least: int | None = None
    brief: bool = False

    def cell(self, row: Row, look: Look) -> str:
        """What stands in the row, harmless for a terminal."""
        return plain(self.show(row, look))

    def cells(self, rows: Sequence[Row], look: Look) -> list[str]:
        """What stands in a table's rows. Amounts below each other have the same number of decimals: none where all are whole, else two.

        A `brief` column has none either where there is little room and it, or another of the amounts that its rows add up, reaches 100 SU:
        what is then left out is less than a hundredth of the largest figure. Of thousands and millions two decimals always say something,
        and take little room. What is left is cut off, so that nobody counts on credit that is not there.
        """
        told = [self.cell(row, look) for row in rows]
        if not self.right or not any("." in each for each in told):
            return told
        largest = (
            [self.show.largest(row, look) for row in rows]
            if isinstance(self.show, Summand)
            else told
        )
        whole = (
            self.brief
            and look.short
            and look.units == "h"
            and any(_reaches_100(each) for each in largest)
        )
        return [self.cell(row, look._replace(decimals=0 if whole else 2)) for row in rows]


def with_minutes(columns: Sequence[Column], *, extra: bool = False) -> list[Column]:
    """The columns, and behind them each amount once more in whole SU-minutes: what the bank counts, never rounded. With `extra` they
    are there to be asked for."""
    amounts = [(column, column.show) for column in columns if isinstance(column.show, Amount)]
    exact = [
        column._replace(
            head=f"{column.head}-MINUTES", show=show.in_minutes, extra=extra or column.extra
        )
        for column, show in amounts
    ]
    return [*columns, *exact]


def _reaches_100(figure: str) -> bool:
    return len(_whole(figure)) >= 3


def _whole(figure: str) -> str:
    """What stands before the point, without a sign."""
    return figure.partition(".")[0].lstrip("-")


def text(key: str) -> Show:
    """The field as it is; nothing where it is missing."""
    return lambda row, look: "" if row.get(key) is None else str(row[key])


def su(key: str) -> Show:
    """The field as an amount, cut off."""
    return Amount(lambda row, look: "" if row.get(key) is None else look.su(int(row[key])))


def left(key: str) -> Show:
    """The field as an amount that may still be drawn: rounded down."""
    return Amount(lambda row, look: "" if row.get(key) is None else look.left(int(row[key])))


def percent(key: str) -> Show:
    return lambda row, look: "" if row.get(key) is None else f"{row[key]}%"


def day(key: str) -> Show:
    return lambda row, look: "" if row.get(key) is None else look.day(instant_of(row[key]))


def moment(key: str) -> Show:
    return lambda row, look: "" if row.get(key) is None else look.moment(instant_of(row[key]))


def duration(key: str) -> Show:
    return lambda row, look: "" if row.get(key) is None else show_duration(int(row[key]))


def instant_of(said: object) -> int:
    """An instant of an answer: ISO text, or seconds."""
    return said if isinstance(said, int) else parse_instant(str(said))
