"""CSV files with a header line, read strictly: an error names line, column, value and form."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from fairbank.core.errors import InvalidInput

T = TypeVar("T")

BYTES_MAX = 256 << 20
"""Largest accepted file; a million jobs take about 100 MiB."""

_BOM_OF_UTF8, _BOMS_OF_UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


class TableFields(NamedTuple):
    """Fields of a kind of file; each is also the default name of its column.

    Of each pair of optional fields in `one_of` the file has at least one. `record` is what a line
    describes.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    one_of: tuple[tuple[str, str], ...] = ()
    record: str = "line"


class CsvRow(NamedTuple):
    """Record of a table, and the line on which it begins. A field without a value is left out."""

    line: int
    cells: Mapping[str, str]


class CsvTable(msgspec.Struct, frozen=True):
    """Records of a file, and the column of each field that it has."""

    fields: TableFields
    columns: Mapping[str, str]
    rows: Sequence[CsvRow]

    def parse(self, parse_row: Callable[[CsvRow], T]) -> list[T]:
        """Return what `parse_row` makes of each record, which has all required fields.

        Raises InvalidInput with the first error, its line and its column, and the number of lines
        with errors.
        """
        values: list[T] = []
        errors: list[tuple[CsvRow, InvalidInput]] = []
        for row in self.rows:
            try:
                self._check_required(row)
                values.append(parse_row(row))
            except InvalidInput as error:
                errors.append((row, error))
        if not errors:
            return values
        row, first = errors[0]
        more = f"; {len(errors)} lines have errors" if len(errors) > 1 else ""
        column = self.columns.get(first.field or "", first.field)
        raise InvalidInput(
            f"line {row.line}, column {column}: {first.message}{more}",
            field=first.field,
            remedy=first.remedy,
        )

    def _check_required(self, row: CsvRow) -> None:
        for field in self.fields.required:
            if field not in row.cells:
                remedy = f"every {self.fields.record} needs a value"
                raise InvalidInput("the cell is empty", field=field, remedy=remedy)


def read_table(
    content: bytes, fields: TableFields, columns: Mapping[str, str], *, delimiter: str = ","
) -> CsvTable:
    """Read a CSV file in UTF-8, with or without a byte-order mark.

    Args:
        fields: the fields that it may have.
        columns: names of the columns of fields, where they differ from the fields' names.
        delimiter: one character.

    Raises:
        InvalidInput: the file is not such a table; the error names the line.
    """
    text = _decoded(content)
    if not text.strip():
        raise InvalidInput(
            "the file is empty", field="FILE", remedy="its first line names the columns"
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records = _records(reader)
    _, header = next(records, (1, []))
    places = _places([name.strip() for name in header], fields, columns, delimiter)
    rows = []
    for line, cells in records:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InvalidInput(
                f"line {line} has {len(cells)} cells, the header has {len(header)}",
                field="FILE",
                remedy="quote cells that contain the delimiter",
            )
        values = {field: cells[place].strip() for field, place in places.items()}
        rows.append(CsvRow(line, {field: value for field, value in values.items() if value}))
    if not rows:
        raise InvalidInput(
            "the file has no line after its header",
            field="FILE",
            remedy="export the lines that are to be imported",
        )
    return CsvTable(fields, {field: header[place].strip() for field, place in places.items()}, rows)


def _decoded(content: bytes) -> str:
    if len(content) > BYTES_MAX:
        raise InvalidInput(
            f"the file has more than {BYTES_MAX >> 20} MiB",
            field="FILE",
            remedy="split it; a line that is imported again changes nothing",
        )
    if content.startswith(_BOMS_OF_UTF16):
        raise InvalidInput(
            "the file is in UTF-16", field="FILE", remedy="convert it: iconv -f UTF-16 -t UTF-8"
        )
    try:
        return content.removeprefix(_BOM_OF_UTF8).decode()
    except UnicodeDecodeError as bad:
        line = bad.object.count(b"\n", 0, bad.start) + 1
        raise InvalidInput(
            f"line {line} is not UTF-8: it has the byte 0x{bad.object[bad.start]:02x}",
            field="FILE",
            remedy="convert it, for example: iconv -f ISO-8859-1 -t UTF-8",
        ) from bad


def _records(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line on which it begins; a quoted cell may have several lines."""
    begin = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInput(
                f"line {begin} is not CSV: {error}",
                field="FILE",
                remedy='a cell with quotes begins and ends with ", and doubles those within',
            ) from error
        yield begin, cells
        begin = reader.line_num + 1


def _places(
    header: Sequence[str], fields: TableFields, columns: Mapping[str, str], delimiter: str
) -> dict[str, int]:
    """Return the place of the column of each field that the file has."""
    known = (*fields.required, *fields.optional)
    for field in columns:
        if field not in known:
            raise InvalidInput(
                f"{field[:64]!r} is not a field",
                field="--column",
                remedy=f"one of {', '.join(known)}",
            )
    named = ", ".join(name for name in header if name) or "none"
    if len(header) < 2:
        raise InvalidInput(
            f"the first line is not a header with {delimiter!r} between the names of columns:"
            f" {named[:64]!r}",
            field="FILE",
            remedy="name the delimiter: --delimiter ';', or tab",
        )
    places: dict[str, int] = {}
    for field in known:
        column = columns.get(field, field)
        count = header.count(column)
        if count > 1:
            raise InvalidInput(
                f"the file has {count} columns {column!r}",
                field="FILE",
                remedy="rename one of them in its first line",
            )
        if count:
            places[field] = header.index(column)
        elif field in fields.required or field in columns:
            raise InvalidInput(
                f"the file has no column {column[:64]!r} for the field {field}; it has {named}",
                field="--column",
                remedy=f"name the column: --column {field}=NAME",
            )
    for field, other in fields.one_of:
        if not {field, other} & places.keys():
            raise InvalidInput(
                f"the file has no column {field!r}, and no column {other!r} either; it has {named}",
                field="--column",
                remedy=f"name one of them: --column {field}=NAME",
            )
    return places
