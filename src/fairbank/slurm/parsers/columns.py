"""Answers in columns of fixed width: `squeue --Format`, for columns none of which holds a text that a user chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fairbank.core.errors import Malformed
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine
from fairbank.slurm.parsers.words import quoted


def fixed_width_format(widths: Mapping[str, int]) -> str:
    """What `squeue --Format` is asked for, to have these columns so wide."""
    return ",".join(f"{name}:{width}" for name, width in widths.items())


def fixed_width_cells(line: str, widths: Mapping[str, int]) -> dict[str, str]:
    """A line's cells by the names of their columns."""
    cells, at = {}, 0
    for name, width in widths.items():
        cells[name] = line[at : at + width].strip()
        at += width
    return cells


DELIMITER = "\x1f"
PIPE = "|"
"""What sacctmgr parts its columns with: it knows no other."""

T = TypeVar("T")


class Record(NamedTuple):
    """One line: its number in the answer, and its cells by the names of their columns."""

    line: int
    cells: dict[str, str]


def split_records(
    command: str, text: str, columns: Sequence[str], delimiter: str = DELIMITER
) -> Iterator[Record | UnreadableLine]:
    """Each line as a record. A line with too few or too many cells is none: where somebody's text broke a line in two, neither half is
    guessed at, for whoever wrote the text could write a whole record into it."""
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield split_record(command, number, line, columns, delimiter)


def split_record(
    command: str, number: int, line: str, columns: Sequence[str], delimiter: str
) -> Record | UnreadableLine:
    """One of those lines."""
    cells = line.split(delimiter)
    if len(cells) == len(columns):
        return Record(number, dict(zip(columns, cells, strict=True)))
    where = columns[min(len(cells), len(columns)) - 1]
    return UnreadableLine(
        command, number, where, f"{len(cells)} cells instead of {len(columns)}: {quoted(line)}"
    )


def read_rows(
    command: str,
    found: Iterator[Record | UnreadableLine],
    reader: Callable[[dict[str, str]], T | None],
) -> ParsedRows[T]:
    """The records as values. One that cannot be read is told with its field; one for which the reader answers None is not wanted."""
    rows: list[T] = []
    unreadable: list[UnreadableLine] = []
    for each in found:
        if isinstance(each, UnreadableLine):
            unreadable.append(each)
            continue
        try:
            value = reader(each.cells)
        except Malformed as bad:
            unreadable.append(UnreadableLine(command, each.line, bad.field or "", bad.message))
        else:
            rows += [] if value is None else [value]
    return ParsedRows(tuple(rows), tuple(unreadable))
