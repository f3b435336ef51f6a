"""Tables that fit the terminal, delimited text, CSV and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.units import with_texts
from fairbank.report.cells import csv_line, cut, padded, plain, without, wrapped
from fairbank.report.cells import width as width_of
from fairbank.report.columns import UNITS, Column, DisplayFormat, Row, SameWhenShort

UNBOUND = 1_000_000
"""Width that every table fits, with its extra columns."""
WIDE = 120
"""Width from which a table shows its extra columns too, if they fit."""

NARROWEST = 4


class TextTable(NamedTuple):
    """Lines of a table, and the headers of the columns that were dropped."""

    lines: list[str]
    dropped: list[str]


class _ColumnCells(NamedTuple):
    """Cells of a column with its header, and the width of the widest. `ascii`: none is wider than
    it is long.
    """

    texts: list[str]
    width: int
    ascii: bool

    def fitted(self, width: int, *, right: bool) -> list[str]:
        """Return the cells with this width."""
        if self.ascii and self.width <= width:  # two thirds of the time for 10,000 rows
            return [text.rjust(width) if right else text.ljust(width) for text in self.texts]
        if self.ascii:
            texts = [f"{text[: width - 1]}+" if len(text) > width else text for text in self.texts]
            return [text.rjust(width) if right else text.ljust(width) for text in texts]
        return [padded(cut(text, width), width, right=right) for text in self.texts]


class _Grid(NamedTuple):
    columns: Sequence[Column]
    cells: list[_ColumnCells]
    gap: int

    def widths(self) -> list[int]:
        return [column.width for column in self.cells]

    def total(self, *, truncated: bool = False) -> int:
        """Return the width of the table; `truncated`: after truncating what may be truncated."""
        widths = [
            min(own, column.min_width or own) if truncated else own
            for column, own in zip(self.columns, self.widths(), strict=True)
        ]
        return sum(widths) + self.gap * (len(widths) - 1)


def table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    form: DisplayFormat,
    width: int | None = 80,
    *,
    header: bool = True,
) -> TextTable:
    """Format rows as a table of at most `width` characters, wider if its figures need it: they are
    never truncated.

    Args:
        columns: the columns, in order.
        form: the format of amounts and times.
        width: the width of the terminal; None: no limit, so all columns but the extra ones.
        header: print the header line.
    """
    if width is None:
        columns = [column for column in columns if not column.extra]
        width = UNBOUND
    grid, dropped = _fitting(columns, rows, form, width, header)
    widths = _shrunk(grid, width)
    gap = " " * grid.gap
    if not any(column.wraps for column in grid.columns):
        texts = [
            cells.fitted(own, right=column.right)
            for column, cells, own in zip(grid.columns, grid.cells, widths, strict=True)
        ]
        return TextTable([gap.join(line).rstrip() for line in zip(*texts, strict=True)], dropped)
    lines = []
    for line in zip(*(cells.texts for cells in grid.cells), strict=True):
        parts = [
            wrapped(cell, own) if column.wraps else [cut(cell, own)]
            for column, cell, own in zip(grid.columns, line, widths, strict=True)
        ]
        for part in zip_longest(*parts, fillvalue=""):
            padded_cells = [
                padded(cell, own, right=column.right)
                for column, cell, own in zip(grid.columns, part, widths, strict=True)
            ]
            lines.append(gap.join(padded_cells).rstrip())
    return TextTable(lines, dropped)


def _fitting(
    columns: Sequence[Column], rows: Sequence[Row], form: DisplayFormat, width: int, header: bool
) -> tuple[_Grid, list[str]]:
    """Return the richest grid that fits, and the headers of the dropped columns.

    Tried in order: all columns with two blanks between them, with one blank, with short times and
    amounts, with truncated columns, then with one column after the other dropped. Extra columns
    never make the others short: a wider terminal shows no less of a column.
    """
    chosen = [column for column in columns if not column.extra or width >= WIDE]
    # Extra columns are dropped first, then those with the highest `drop`.
    droppable = sorted(
        (column for column in chosen if column.extra or column.drop),
        key=lambda column: (column.extra, column.drop),
    )

    def cells(column: Column, short: bool) -> _ColumnCells:
        return all_cells(column, short and not isinstance(column.show, SameWhenShort))

    @cache  # the cells of a column are the same in each attempt
    def all_cells(column: Column, short: bool) -> _ColumnCells:
        texts = column.cells(rows, form._replace(short=short))
        texts = [column.head, *texts] if header else texts
        is_ascii = all(map(str.isascii, texts))
        return _ColumnCells(
            texts, max(map(len if is_ascii else width_of, texts), default=0), is_ascii
        )

    while True:
        for short, gap in ((False, 2), (False, 1), (True, 1)):
            grid = _Grid(chosen, [cells(column, short) for column in chosen], gap)
            if grid.total() <= width or any(column.extra for column in chosen):
                break
        if grid.total(truncated=True) <= width or not droppable:
            return grid, [
                column.head
                for column in columns
                if column not in chosen and (width >= WIDE or not column.extra)
            ]
        dropped = droppable.pop()
        chosen = [column for column in chosen if column is not dropped]


def _shrunk(grid: _Grid, width: int) -> list[int]:
    """Return the widths of the columns, truncated until the table fits.

    Columns with a `min_width` are truncated first, then all text, the widest first. Figures never
    are.
    """
    widths = [
        own if column.fixed_width is None else column.fixed_width
        for column, own in zip(grid.columns, grid.widths(), strict=True)
    ]
    over = sum(widths) + grid.gap * (len(widths) - 1) - width
    free = [place for place, column in enumerate(grid.columns) if column.fixed_width is None]
    least = {place: grid.columns[place].min_width or 0 for place in free}
    with_least = {place: floor for place, floor in least.items() if floor}
    text = {place: NARROWEST for place in free if not grid.columns[place].right}
    for floors in (with_least, text):
        while over > 0:
            wider = [(widths[place], place) for place in floors if widths[place] > floors[place]]
            if not wider:
                break
            widths[max(wider)[1]] -= 1
            over -= 1
    return widths


def separate_cells(
    columns: Sequence[Column],
    rows: Sequence[Row],
    form: DisplayFormat,
    delimiter: str = "|",
    *,
    header: bool = True,
) -> list[str]:
    """Return lines for a script. Extra columns are left out, however wide the terminal is.

    Args:
        rows: rows in order.
        form: format of amounts and times.
        delimiter: text between two cells, which no cell contains.
        header: begin with the header.
    """
    columns = [column for column in columns if not column.extra]
    lines = [delimiter.join(column.head for column in columns)] if header else []
    return lines + [
        delimiter.join(without(delimiter, column.cell(row, form)) for column in columns)
        for row in rows
    ]


def csv(
    columns: Sequence[Column], rows: Sequence[Row], form: DisplayFormat, *, header: bool = True
) -> list[str]:
    """Return CSV lines in which no cell is read as a formula. Extra columns are left out.

    Args:
        rows: rows in order.
        form: format of amounts and times.
        header: begin with the header.
    """
    columns = [column for column in columns if not column.extra]
    lines = [csv_line(column.head for column in columns)] if header else []
    return lines + [csv_line(column.cell(row, form) for column in columns) for row in rows]


def choose(columns: Sequence[Column], wanted: str | None, *, extras: bool = False) -> list[Column]:
    """Return the columns that are shown. Columns selected by name are never dropped.

    Args:
        columns: all columns of the table.
        wanted: value of -o: `COL%WIDTH,COL`; `+COL,COL` are added to the default ones. None or
            empty: the default columns.
        extras: all columns are default ones, and none is dropped.

    Raises:
        InvalidInput: a column does not exist or its width is invalid.
    """
    default = [column._replace(extra=False, drop=0) if extras else column for column in columns]
    names = _names(wanted or "")
    if not names:
        return default
    chosen = [_chosen(columns, name.removeprefix("+")) for name in names]
    if adds_columns(names[0]):
        added = [column.head for column in chosen]
        return [column for column in default if column.head not in added] + chosen
    return chosen


def adds_columns(wanted: str) -> bool:
    """Return whether the columns of -o are added to the default ones: `+COL,COL`."""
    return wanted.lstrip(", ").startswith("+")


def _names(wanted: str) -> list[str]:
    return [name.strip() for name in wanted.split(",") if name.strip()]


def _chosen(columns: Sequence[Column], wanted: str) -> Column:
    """Return the column that `COL` or `COL%WIDTH` selects. A header may itself end with %."""
    name, percent, width = wanted.rpartition("%")
    if not percent or _with_header(columns, wanted):
        name, percent, width = wanted, "", ""
    column = _find(columns, name, "--format")
    if percent and not re.fullmatch(r"-?0*([1-9]\d{0,2}|1000)", width, re.ASCII):
        raise InvalidInput(
            f"{plain(wanted[:40])!r} has no width after %",
            field="--format",
            remedy=f"write for example {name.upper()}%20",
        )
    return column._replace(
        extra=False,
        drop=0,
        fixed_width=abs(int(width)) if percent else None,
        right=column.right and not width.startswith("-"),
    )


def _with_header(columns: Sequence[Column], name: str) -> Column | None:
    head = name.upper().replace("_", "-")
    return next((column for column in columns if column.head in (head, f"{head}%")), None)


def _find(columns: Sequence[Column], name: str, field: str) -> Column:
    column = _with_header(columns, name)
    if column is None:
        there = ", ".join(column.head for column in columns)
        purpose = " to sort by" if field == "--sort" else ""
        raise InvalidInput(
            f"there is no column {plain(name[:40])!r}{purpose}",
            field=field,
            remedy=f"there are: {there}",
        )
    return column


def sort_rows(
    columns: Sequence[Column], rows: Sequence[Row], wanted: str, form: DisplayFormat
) -> list[Row]:
    """Return the rows in another order: numbers by value, the rest as text.

    Args:
        columns: all columns of the table.
        rows: rows to sort.
        wanted: value of --sort: `COL[,-COL]`, the first counting most; - reverses.
        form: format of times; amounts are compared in SU-minutes.

    Raises:
        InvalidInput: there is no such column.
    """
    ordered = list(rows)
    exactly = form._replace(units="m", separators=False, short=False)
    for name in reversed(_names(wanted)):
        column = _find(columns, name.removeprefix("-"), "--sort")
        ordered.sort(
            key=lambda row, column=column: _rank(column.cell(row, exactly)),  # type: ignore[misc]
            reverse=name.startswith("-"),
        )
    return ordered


def _rank(cell: str) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers before text."""
    try:
        return False, float(cell.rstrip("%")), cell
    except ValueError:
        return True, 0.0, cell


# --- JSON ---


class JsonSource(NamedTuple):
    """Source of the data: the bank's name, the time and the cluster, None if there is none."""

    bank: str | None = None
    as_of: str | None = None
    cluster: str | None = None


def envelope(
    schema: str,
    source: JsonSource,
    data: Sequence[Row] | Row,
    warnings: Sequence[str],
    form: DisplayFormat,
    more: Row | None = None,
) -> dict[str, Any]:
    """Return what `--json` prints.

    Each object keeps the bank's fields, with exact amounts; its `display` has the amounts as text
    in `unit`, as a table shows them.

    Args:
        schema: name and version of the schema.
        data: the rows of a list, or the result of a change.
        warnings: the warnings, as sentences.
        form: the unit of `display`.
        more: other parts of the document.
    """
    document = {
        "schema": schema,
        **source._asdict(),
        "amounts_in": UNITS["m"],
        "unit": form.units,
        "data": data,
        "warnings": list(warnings),
        **(more or {}),
    }
    shown: dict[str, Any] = with_texts(document, form._replace(separators=False).amounts)
    return shown


def as_json(document: Mapping[str, Any]) -> str:
    """Return indented JSON, ASCII only, so that no character affects a terminal."""
    return json.dumps(document, indent=2)
