"""Answers in columns: `--parsable2` with a delimiter that nobody types. A line is a record; what is no record is told and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers.values import ParsedRows, Unreadable
from fairbank.slurm.parsers.words import shown

DELIMITER = "\x1f"
PIPE = "|"
"""What sacctmgr parts its columns with: it knows no other."""

T = TypeVar("T")


class Record(NamedTuple):
    """One line: its number in the answer, and its cells by the names of their columns."""

    line: int
    cells: dict[str, str]


def records(
    command: str, text: str, columns: Sequence[str], delimiter: str = DELIMITER
) -> Iterator[Record | Unreadable]:
    """Each line as a record. A line with too few or too many cells is none: where somebody's text broke a line in two, neither half is
    guessed at, for whoever wrote the text could write a whole record into it."""
    for number, line in enumerate(text.split("\n"), 1):
        if line:
            yield record(command, number, line, columns, delimiter)


def record(
    command: str, number: int, line: str, columns: Sequence[str], delimiter: str
) -> Record | Unreadable:
    """One of those lines."""
    cells = line.split(delimiter)
    if len(cells) == len(columns):
        return Record(number, dict(zip(columns, cells, strict=True)))
    where = columns[min(len(cells), len(columns)) - 1]
    return Unreadable(
        command, number, where, f"{len(cells)} cells instead of {len(columns)}: {shown(line)}"
    )


def read(
    command: str, found: Iterator[Record | Unreadable], reader: Callable[[dict[str, str]], T | None]
) -> ParsedRows[T]:
    """The records as values. One that cannot be read is told with its field; one for which the reader answers None is not wanted."""
    rows: list[T] = []
    unreadable: list[Unreadable] = []
    for each in found:
        if isinstance(each, Unreadable):
            unreadable.append(each)
            continue
        try:
            value = reader(each.cells)
        except InvalidInput as bad:
            unreadable.append(Unreadable(command, each.line, bad.field or "", bad.message))
        else:
            rows += [] if value is None else [value]
    return ParsedRows(tuple(rows), tuple(unreadable))
