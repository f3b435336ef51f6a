"""Layout of Slurm's tables: columns, formats and lines.

squeue and sinfo place columns in a text, each padded or cut to its width. sacct, sstat and sshare
put a blank after each column and dashes under the header, mark a cut with +, and can print whole
cells with delimiters. Widths count bytes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.report.slurm.notation import (
    PIPE,
    EndKept,
    Notation,
    Uncut,
    Unmarked,
    Writer,
    Written,
    text,
)


class SlurmColumn(NamedTuple):
    """Column: its name in formats, the field of the row that it shows, and how that is written.

    `letter` is that of `-o`, the name that of `-O`. A negative `width` aligns left.
    """

    name: str
    field: str
    write: Writer = text
    head: str = ""
    letter: str = ""
    width: int = 20

    def cell(self, row: Any, notation: Notation) -> Written:
        """Return the cell of a row."""
        return self.write(getattr(row, self.field), notation)


Columns = Mapping[str, SlurmColumn]
"""Columns by name, in Slurm's order."""


def table(*columns: SlurmColumn) -> Columns:
    """Return the columns by name."""
    return {column.name: column for column in columns}


def names_in(columns: Columns, *names: str) -> tuple[str, ...]:
    """Return names of columns, all of which the table has."""
    return tuple(columns[name].name for name in names)


def _cut(cell: str, width: int) -> str:
    """Return the first bytes of a text. A character that a cut divides is left out."""
    if cell.isascii():
        return cell[:width]
    return cell.encode()[:width].decode(errors="ignore")


def _padded(cell: str, width: int) -> str:
    """Return the text with blanks before it, or behind it for a negative width."""
    blanks = " " * (abs(width) - (len(cell) if cell.isascii() else len(cell.encode())))
    return cell + blanks if width < 0 else blanks + cell


# --- squeue and sinfo ---


class PlacedColumn(NamedTuple):
    """Column in a line and the text after it; None stands for no column.

    The width is negative to align left, and 0 for as wide as the text.
    """

    column: SlurmColumn | None
    width: int
    behind: str

    def show(self, cell: Written) -> str:
        """Return the cell in its width, with the text after it."""
        shown = str(cell)
        if not self.width:
            return shown + self.behind
        if self.width < 0 or not isinstance(cell, Uncut):
            end = cell[-1] if isinstance(cell, EndKept) and len(cell) > abs(self.width) else ""
            shown = _cut(shown, abs(self.width) - len(end)) + end
        return _padded(shown, self.width) + self.behind


class TableFormat(NamedTuple):
    """Format of a line: the text before its first column, its columns, and unknown columns.

    squeue and sinfo report what is unknown, print the text around it, and exit with 0.
    """

    before: str
    cells: tuple[PlacedColumn, ...]
    unknown: tuple[str, ...] = ()


_BY_LETTER = re.compile(r"(\.?)(\d{0,6})(.?)(.*)", re.DOTALL)
_BY_NAME = re.compile(r"([^:]*)(?::(\.?)(\d{0,6})(.*))?", re.DOTALL)


def parse_letters(form: str, columns: Columns) -> TableFormat:
    """Parse `%.18i %.9P`: a dot aligns right, then the width and the letter. `%all` is all."""
    letters: dict[str, SlurmColumn] = {}
    for column in columns.values():
        letters.setdefault(column.letter, column)
    letters.pop("", None)
    if form.lower() == "%all":
        form = PIPE.join(f"%{letter}" for letter in sorted(letters, key=str.swapcase))
    before, *specifications = form.split("%")
    cells, unknown = list[PlacedColumn](), list[str]()
    for specification in filter(None, specifications):
        match = _BY_LETTER.fullmatch(specification)
        right, width, letter, behind = match.groups() if match else ("", "", "", specification)
        if letter in letters:
            cells.append(PlacedColumn(letters[letter], _signed(right, width), behind))
        else:
            cells.append(PlacedColumn(None, 0, f"%{specification}"))
            unknown.append(letter)
    return TableFormat(before, tuple(cells), tuple(unknown))


def parse_names(form: str, columns: Columns) -> TableFormat:
    """Parse `JobID:.18 ,Name`: a dot aligns right, then the width and a text; default: 20 wide."""
    names = {name.lower(): column for name, column in columns.items()}
    cells, unknown = list[PlacedColumn](), list[str]()
    for specification in filter(None, form.split(",")):
        match = _BY_NAME.fullmatch(specification)
        name, right, width, behind = match.groups() if match else (specification,) * 4
        column = names.get(name.lower())
        size = -20 if width is None else _signed(right, width)
        cells.append(PlacedColumn(column, size if column else 0, behind or ""))
        unknown += [] if column else [name]
    return TableFormat("", tuple(cells), tuple(unknown))


def _signed(right: str, width: str) -> int:
    return int(width or 0) * (1 if right else -1)


def lines(
    rows: Sequence[Any], form: TableFormat, notation: Notation, *, header: bool = True
) -> Iterator[str]:
    """Yield the lines of rows without line ends."""
    if header:
        cells = (cell.show(cell.column.head if cell.column else "") for cell in form.cells)
        yield form.before + "".join(cells)
    columns = (_cells(rows, cell, notation) for cell in form.cells)
    yield from map("".join, zip(repeat(form.before, len(rows)), *columns, strict=True))


def _cells(rows: Sequence[Any], placed: PlacedColumn, notation: Notation) -> Iterable[str]:
    """Return the shown cells of a column."""
    if placed.column is None:
        return repeat(placed.behind, len(rows))
    values: Iterable[Any] = map(attrgetter(placed.column.field), rows)
    if rows and isinstance(getattr(rows[0], placed.column.field), list):
        values = map(tuple, values)  # such as exit codes from JSON: a key must be hashable
    return map(_ShownCells(placed, placed.column.write, notation).__getitem__, values)


class _ShownCells(dict[Any, str]):
    """Shown cells of a column by their values, most of which are those of many rows.

    Only a new value takes more than a look-up: this halves the time for 10,000 jobs.
    """

    def __init__(self, placed: PlacedColumn, write: Writer, notation: Notation) -> None:
        self._placed, self._write, self._notation = placed, write, notation
        self._width, self._behind = abs(placed.width), placed.behind
        self._pad = str.rjust if placed.width > 0 else str.ljust

    def __missing__(self, value: Any) -> str:
        cell = self._write(value, self._notation)
        # Nearly all cells are short texts.
        if type(cell) is str and len(cell) <= self._width and cell.isascii():
            shown = self._pad(cell, self._width) + self._behind
        else:
            shown = self._placed.show(cell)
        self[value] = shown
        return shown


def letters_format(columns: Columns, names: Iterable[str], delimiter: str) -> str:
    """Return the argument of --format for whole cells with a delimiter between them."""
    return delimiter.join(f"%{columns[name].letter}" for name in names)


def widths_format(columns: Columns, widths: Mapping[str, int]) -> str:
    """Return the argument of --Format for columns with these widths."""
    return ",".join(f"{columns[name].name}:{width}" for name, width in widths.items())


# --- sacct, sstat and sshare ---

_FIELD = re.compile(r"([^%]*)(?:%(-?\d{1,6})?.*)?", re.DOTALL)


def parse_fields(form: str, columns: Columns) -> list[SlurmColumn]:
    """Parse `jobid,state%30,node%-12`: names, which may be cut short, and widths. `ALL` is all.

    The first column that begins with a name is meant. Raises InvalidInput if there is none: sacct
    and sstat exit with 1.
    """
    fields: list[SlurmColumn] = []
    for wanted in filter(None, form.split(",")):
        match = _FIELD.fullmatch(wanted)
        name, width = match.groups() if match else (wanted, None)
        start = name.lower()
        chosen = [column for key, column in columns.items() if key.lower().startswith(start)][:1]
        if "all".startswith(start):
            chosen = list(columns.values())
        elif not chosen:
            raise InvalidInput(f'Invalid field requested: "{name}"', field="--format")
        fields += chosen if width is None else [one._replace(width=int(width)) for one in chosen]
    return fields


def cells_of(
    rows: Iterable[Any], fields: Sequence[SlurmColumn], notation: Notation
) -> Iterator[list[Written]]:
    """Yield the cells of each row."""
    return ([field.cell(row, notation) for field in fields] for row in rows)


def field_lines(
    rows: Iterable[list[Written]],
    fields: Sequence[SlurmColumn],
    *,
    delimiter: str = "",
    is_ended: bool = False,
    header: bool = True,
) -> Iterator[str]:
    """Yield the lines of cells without line ends, padded, or whole with a delimiter between them.

    `is_ended` puts the delimiter after the last cell too, as with --parsable.
    """
    names: list[Written] = [Unmarked(field.head or field.name) for field in fields]
    for texts in chain([names] if header else [], rows):
        if delimiter:
            yield delimiter.join(map(whole, texts)) + (delimiter if is_ended else "")
            continue
        yield "".join(
            f"{_fitted(text, field.width)} " for text, field in zip(texts, fields, strict=True)
        )
        if texts is names:
            yield "".join(f"{'-' * abs(field.width)} " for field in fields)


def whole(cell: Written) -> str:
    """Return a cell at full length."""
    if cell is None:
        return ""
    return f"{cell:f}" if isinstance(cell, float) else str(cell)


def _fitted(cell: Written, width: int) -> str:
    """Fit a cell to its column: a text is cut, with + at the end, a figure gets an exponent, and a
    whole number widens its column.
    """
    shown, size = whole(cell), abs(width)
    is_long = len(shown if shown.isascii() else shown.encode()) > size
    if is_long and isinstance(cell, float):
        # Never padded; C takes a precision below 0 for none.
        return f"{cell:.{size - 6}e}" if size >= 6 else f"{cell:e}"
    if is_long and isinstance(cell, str) and not isinstance(cell, Uncut):
        shown = _cut(shown, size) if isinstance(cell, Unmarked) else _cut(shown, size - 1) + "+"
    return _padded(shown, width)


def field_list(columns: Columns) -> str:
    """Return the list of all columns that sacct -e and sstat -e print, four in a line."""
    names = list(columns)
    rows = (names[start : start + 4] for start in range(0, len(names), 4))
    return "".join(" ".join(f"{name:<19}" for name in row) + "\n" for row in rows)
