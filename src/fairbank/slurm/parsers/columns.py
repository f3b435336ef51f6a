"""Output in columns: cells between delimiters, of fixed width, or written as `Key=value`.

A line is a record. A line that is no record is reported and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.report.slurm import notation
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.parsers.words import Reader, quote_unknown
from fairbank.slurm.parsers.words import job_id as job_number

DELIMITER = "\x1f"
"""Unit separator, which no user types; sacct and squeue take any delimiter."""
PIPE = notation.PIPE
"""Delimiter of sacctmgr, sshare and sprio."""

_WORD = re.compile(r"\S+")

T = TypeVar("T")
V = TypeVar("V")


class Cells(dict[str, str]):
    """Cells of a line by column, and the number of the line in the output."""

    def __init__(self, line: int, cells: Mapping[str, str]) -> None:
        super().__init__(cells)
        self.line = line

    def read(self, field: str, reader: Reader[V], default: str | None = None) -> V:
        """Read a cell. Raises InvalidInput, naming the column.

        The default is the text if there is no such cell; None if there must be one.
        """
        text = self.get(field, default)
        if text is None:
            raise InvalidInput("is not there", field=field)
        return reader(text, field)


Records = Iterator[Cells | UnreadableLine]


def read_rows(command: str, records: Records, reader: Callable[[Cells], T | None]) -> ParsedRows[T]:
    """Convert records to values.

    Args:
        command: the command that printed them, for errors.
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
            value = reader(record)
        except InvalidInput as error:
            unreadable.append(unreadable_line(command, record, error))
        else:
            rows += [] if value is None else [value]
    return ParsedRows(tuple(rows), tuple(unreadable))


_JOB_COLUMNS = ("JobIDRaw", "JobID", "JobId")
_ENTITY_COLUMNS = ("NodeName", "PartitionName")


def unreadable_line(command: str, cells: Cells, error: InvalidInput) -> UnreadableLine:
    """Return the report of a line that could not be read, with its job, node or partition."""
    text = next((cells[name] for name in _JOB_COLUMNS if name in cells), "")
    try:
        job_id = job_number(text, "") if text else None
    except InvalidInput:
        job_id = None
    entity = next((cells[name] for name in _ENTITY_COLUMNS if name in cells), "")
    return UnreadableLine(command, cells.line, error.field or "", error.message, job_id, entity)


class Table(msgspec.Struct, Generic[T], frozen=True):
    """Columns that a command prints with a delimiter between them, and the reader of a line."""

    command: str
    columns: Sequence[str]
    reader: Callable[[Cells], T | None]
    delimiter: str = DELIMITER

    def read(self, text: str) -> ParsedRows[T]:
        """Read the output, without a header."""
        records = split_records(self.command, text, self.columns, self.delimiter)
        return read_rows(self.command, records, self.reader)


def table_of(
    command: str,
    record: Callable[..., T],
    readers: Mapping[str, Reader[object]],
    delimiter: str = DELIMITER,
) -> Table[T]:
    """Return the table whose columns are the fields of a record.

    The readers of the columns are in the order of the fields.
    """

    def read(cells: Cells) -> T:
        return record(*(cells.read(column, reader) for column, reader in readers.items()))

    return Table(command, tuple(readers), read, delimiter)


def split_records(
    command: str, text: str, columns: Sequence[str], delimiter: str = DELIMITER
) -> Records:
    """Split lines into records.

    A line with too few or too many cells is no record. If a user's text broke a line in two,
    neither half is guessed, since the user could have written a whole record into the text.

    Where the first column is the job id, such a line names its job. One without a job id is the
    rest of the broken line before it (docs/decisions/0044-broken-lines.md).

    Args:
        command: the command that printed the lines, for the reports of unreadable ones.
        text: its output, without a header line. Empty lines are skipped.
        columns: names of the columns, in their order.
        delimiter: the text between the cells of a line.
    """
    broken: int | None = None  # the job of the line before, if that is no record
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        record = split_record(command, number, line, columns, delimiter)
        if isinstance(record, Cells):
            broken = None
        elif record.job_id is not None:
            broken = record.job_id
        else:
            record = msgspec.structs.replace(record, job_id=broken)
        yield record


def split_record(
    command: str, number: int, line: str, columns: Sequence[str], delimiter: str
) -> Cells | UnreadableLine:
    """Split one line with these columns, in their order."""
    texts = line.split(delimiter)
    if len(texts) == len(columns):
        return Cells(number, dict(zip(columns, texts, strict=True)))
    where = columns[min(len(texts), len(columns)) - 1]
    why = f"{len(texts)} cells instead of {len(columns)}: {quote_unknown(line)}"
    return unreadable_line(
        command, Cells(number, {columns[0]: texts[0]}), InvalidInput(why, field=where)
    )


def fixed_width_records(text: str, widths: Mapping[str, int]) -> Iterator[Cells]:
    """Yield the lines of columns with these widths in bytes, as `squeue --Format` prints them."""
    ends = list(accumulate(widths.values()))
    parts = [(name, end - widths[name], end) for name, end in zip(widths, ends, strict=True)]
    for number, line in enumerate(text.splitlines(), 1):
        if line.isascii():  # characters are bytes; twice as fast
            yield Cells(number, {name: line[begin:end].strip() for name, begin, end in parts})
            continue
        packed = line.encode(errors="replace")
        yield Cells(
            number,
            {
                name: packed[begin:end].decode(errors="replace").strip()
                for name, begin, end in parts
            },
        )


def pairs_of(text: str) -> dict[str, str]:
    """Return the cells of `Key=value Key=value`.

    A word without a sign continues the value before it, such as `Account=dept bio`. Of equal keys
    the first is Slurm's; a reason at the end of the line may contain anything.
    """
    cells: dict[str, str] = {}
    last, begin = "", 0  # key and place of the value that a word without a sign continues
    for word in _WORD.finditer(text):
        name, sign, _ = word[0].partition("=")
        if sign:
            last, begin = "" if name in cells else name, word.start() + len(name) + 1
        if last:
            cells[last] = text[begin : word.end()]
    return cells


def key_value_records(command: str, text: str, key: str) -> Records:
    """Yield records of `Key=value Key=value`; each line must have the key."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells = pairs_of(line)
        if key in cells:
            yield Cells(number, cells)
        else:
            yield UnreadableLine(command, number, key, f"is not there: {quote_unknown(line)}")
