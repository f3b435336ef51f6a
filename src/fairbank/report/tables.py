"""Tables that fit the terminal: columns are dropped in a fixed order, or added on a wide
terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.report.cells import csv_line, cut, padded, plain, width, without
from fairbank.report.columns import Column, Look, Row

WIDE = 120
"""Width from which a table shows its extra columns too, if they fit."""

NARROWEST = 4


class TextTable(NamedTuple):
    """Lines of a table, and the headers of the columns that were dropped."""

    lines: list[str]
    dropped: list[str]


class _Grid(NamedTuple):
    columns: Sequence[Column]
    cells: list[list[str]]
    gap: int

    def widths(self) -> list[int]:
        return [
            max((width(line[place]) for line in self.cells), default=0)
            for place in range(len(self.columns))
        ]

    def total(self, *, least: bool = False) -> int:
        """Return the width of the table; with `least`, after truncating the columns that may be
        truncated.
        """
        widths = self.widths()
        if least:
            widths = [
                min(wide, column.least or wide)
                for column, wide in zip(self.columns, widths, strict=True)
            ]
        return sum(widths) + self.gap * (len(widths) - 1)


def table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    look: Look,
    width: int = 80,
    *,
    header: bool = True,
) -> TextTable:
    """Format rows as a table with at most `width` columns of text. Figures are never truncated, so a
    table can be wider.

    Args:
        columns: the columns, in order.
        rows: the rows.
        look: the format of amounts and times.
        width: that of the terminal.
        header: print the header line.
    """
    grid, dropped = _fitting(columns, rows, look, width, header)
    widths = _shrunk(grid, width)
    gap = " " * grid.gap
    lines = []
    for line in grid.cells:
        cells = [
            padded(cut(cell, wide), wide, right=column.right)
            for column, cell, wide in zip(grid.columns, line, widths, strict=True)
        ]
        lines.append(gap.join(cells).rstrip())
    return TextTable(lines, dropped)


def _fitting(
    columns: Sequence[Column], rows: Sequence[Row], look: Look, width: int, header: bool
) -> tuple[_Grid, list[str]]:
    """Return the richest grid that fits, and the headers of the dropped columns.

    Tried in order: all columns with two blanks between them, with one blank, with short times and
    amounts, with truncated columns, then with one column after the other dropped.
    """
    chosen = [column for column in columns if not column.extra or width >= WIDE]
    going = sorted(
        (each for each in chosen if each.extra or each.drop),
        key=lambda each: (each.extra, each.drop),
    )
    while True:
        for brief, gap in ((False, 2), (False, 1), (True, 1)):
            grid = _grid(chosen, rows, look._replace(short=brief), gap, header)
            if grid.total() <= width:
                break
        if grid.total(least=True) <= width or not going:
            return grid, [
                each.head
                for each in columns
                if each not in chosen and not (each.extra and width < WIDE)
            ]
        gone = going.pop()
        chosen = [each for each in chosen if each is not gone]


def _grid(
    columns: Sequence[Column], rows: Sequence[Row], look: Look, gap: int, header: bool
) -> _Grid:
    cells = [[column.head for column in columns]] if header else []
    cells += map(list, zip(*(column.cells(rows, look) for column in columns), strict=True))
    return _Grid(columns, cells, gap)


def _shrunk(grid: _Grid, width: int) -> list[int]:
    """Return the widths of the columns, truncated until the table fits.

    Columns with a `least` width are truncated first, then all text, the widest first. Figures never
    are.
    """
    widths = [
        wide if column.wide is None else column.wide
        for column, wide in zip(grid.columns, grid.widths(), strict=True)
    ]
    over = sum(widths) + grid.gap * (len(widths) - 1) - width
    free = [place for place, column in enumerate(grid.columns) if column.wide is None]
    for places, floors in (
        (
            [place for place in free if grid.columns[place].least],
            {place: grid.columns[place].least or 0 for place in free},
        ),
        (
            [place for place in free if not grid.columns[place].right],
            dict.fromkeys(free, NARROWEST),
        ),
    ):
        while over > 0:
            wide, place = max(
                ((widths[place], place) for place in places if widths[place] > floors[place]),
                default=(0, -1),
            )
            if not wide:
                break
            widths[place] -= 1
            over -= 1
    return widths


def separated(
    columns: Sequence[Column],
    rows: Sequence[Row],
    look: Look,
    delimiter: str = "|",
    *,
    header: bool = True,
) -> list[str]:
    """Return lines for a script: cells separated by `delimiter`, none at the end. Always the same
    columns.
    """
    columns = [column for column in columns if not column.extra]
    lines = [delimiter.join(column.head for column in columns)] if header else []
    return lines + [
        delimiter.join(without(delimiter, column.cell(row, look)) for column in columns)
        for row in rows
    ]


def csv(
    columns: Sequence[Column], rows: Sequence[Row], look: Look, *, header: bool = True
) -> list[str]:
    """Return CSV lines in which no cell is read as a formula. Always the same columns."""
    columns = [column for column in columns if not column.extra]
    lines = [csv_line(column.head for column in columns)] if header else []
    return lines + [csv_line(column.cell(row, look) for column in columns) for row in rows]


def choose(columns: Sequence[Column], wanted: str | None, *, extras: bool = False) -> list[Column]:
    """Return the columns that `-o COL%WIDTH,+COL` selects; with only + columns, added to the
    default ones.

    Columns selected by name are never dropped. Without `wanted` the result is the default columns,
    with `extras` all.

    Raises:
        InvalidInput: a column does not exist or its width is invalid.
    """
    if not wanted:
        return (
            [column._replace(extra=False, drop=0) for column in columns]
            if extras
            else list(columns)
        )
    asked = [each.strip() for each in wanted.split(",") if each.strip()]
    named = [_asked(columns, each.removeprefix("+")) for each in asked]
    if all(each.startswith("+") for each in asked):
        names = [each.head for each in named]
        return [
            column
            for column in columns
            if column.head not in names and (extras or not column.extra)
        ] + named
    return named


def _asked(columns: Sequence[Column], said: str) -> Column:
    name, percent, wide = (
        said.rpartition("%") if "%" in said and _headed(columns, said) is None else (said, "", "")
    )
    found = _headed(columns, name)
    if found is None:
        there = ", ".join(column.head for column in columns)
        raise InvalidInput(
            f"there is no column {plain(name[:40])!r}",
            field="--format",
            remedy=f"there are: {there}",
        )
    if percent and not (
        wide.lstrip("-").isascii()
        and wide.lstrip("-").isdigit()
        and 1 <= int(wide.lstrip("-")) <= 1_000
    ):
        raise InvalidInput(
            f"{plain(said[:40])!r} has no width after %",
            field="--format",
            remedy=f"write for example {name.upper()}%20",
        )
    return found._replace(
        extra=False,
        drop=0,
        wide=abs(int(wide)) if percent else None,
        right=found.right and not wide.startswith("-"),
    )


def _headed(columns: Sequence[Column], name: str) -> Column | None:
    """Return the column with this header. A header may itself end with %."""
    head = name.upper().replace("_", "-")
    return next((column for column in columns if column.head in (head, f"{head}%")), None)


def sort_rows(columns: Sequence[Column], rows: Sequence[Row], wanted: str, look: Look) -> list[Row]:
    """Sort rows by `COL[,-COL]`: numbers by value, the rest as text; - reverses. Raises
    InvalidInput.
    """
    ordered = list(rows)
    exactly = look._replace(units="m", separators=False, short=False)
    for said in reversed([each.strip() for each in wanted.split(",") if each.strip()]):
        column = _column(columns, said.removeprefix("-"))
        ordered.sort(
            key=lambda row, column=column: _rank(column.cell(row, exactly)),  # type: ignore[misc]
            reverse=said.startswith("-"),
        )
    return ordered


def _column(columns: Sequence[Column], name: str) -> Column:
    for column in columns:
        if column.head == name.upper().replace("_", "-"):
            return column
    there = ", ".join(column.head for column in columns)
    raise InvalidInput(
        f"there is no column {plain(name[:40])!r} to sort by",
        field="--sort",
        remedy=f"there are: {there}",
    )


def _rank(cell: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers before text."""
    try:
        return False, float(cell.rstrip("%")), cell
    except ValueError:
        return True, 0.0, cell
