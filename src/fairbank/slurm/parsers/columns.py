"""Output in columns: cells between delimiters, or of fixed width.

A line is a record. A line that is no record is reported and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine
from fairbank.slurm.parsers.words import quoted


def fixed_width_format(widths: Mapping[str, int]) -> str:
    """Return the argument of `squeue --Format` for columns of these widths."""
    return ",".join(f"{name}:{width}" for name, width in widths.items())


def fixed_width_cells(line: str, widths: Mapping[str, int]) -> dict[str, str]:
    """Return a line's cells by column."""
    cells, at = {}, 0
    for name, width in widths.items():
        cells[name] = line[at : at + width].strip()
        at += width
    return cells


DELIMITER = "\x1f"
"""Unit separator, which no user types; sacct and squeue take any delimiter."""
PIPE = "|"
"""Delimiter of sacctmgr, sshare and sprio. sacctmgr knows no other."""

T = TypeVar("T")


class Record(NamedTuple):
    """One line: its number in the output, and its cells by column."""

    line: int
    cells: dict[str, str]


def split_records(
    command: str, text: str, columns: Sequence[str], delimiter: str = DELIMITER
) -> Iterator[Record | UnreadableLine]:
    """Split lines into records.

    A line with too few or too many cells is no record. If a user's text broke a line in two,
    neither half is guessed, since the user could have written a whole record into the text.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield split_record(command, number, line, columns, delimiter)


def split_record(
    command: str, number: int, line: str, columns: Sequence[str], delimiter: str
) -> Record | UnreadableLine:
    """Split one line.

    Args:
        command: that printed it, for the error.
        number: of the line.
        line: its text.
        columns: in their order.
        delimiter: between the cells.
    """
    cells = line.split(delimiter)
    if len(cells) == len(columns):
        return Record(number, dict(zip(columns, cells, strict=True)))
    where = columns[min(len(cells), len(columns)) - 1]
    return UnreadableLine(
        command, number, where, f"{len(cells)} cells instead of {len(columns)}: {quoted(line)}"
    )


def read_rows(
    command: str,
    records: Iterator[Record | UnreadableLine],
    reader: Callable[[dict[str, str]], T | None],
) -> ParsedRows[T]:
    """Convert records to values.

    Args:
        command: that printed them, for errors.
        records: records, and lines that are none.
        reader: returns the value of a record, or None to leave it out. Its InvalidInput is
            reported.
    """
    rows: list[T] = []
    unreadable: list[UnreadableLine] = []
    for record in records:
        if isinstance(record, UnreadableLine):
            unreadable.append(record)
            continue
        try:
            value = reader(record.cells)
        except InvalidInput as error:
            unreadable.append(
                UnreadableLine(command, record.line, error.field or "", error.message)
            )
        else:
            rows += [] if value is None else [value]
    return ParsedRows(tuple(rows), tuple(unreadable))
