"""Trace from the output of `sacct --parsable2` or `--parsable`.

The header line names the columns, in any order, and gives the delimiter. Each execution is a job of
its own; `--duplicates` lists the executions of requeued jobs. The records of a resized job are one
execution. Steps are left out. Numbers stand for the names of users, accounts (as groups) and
partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.fast_reader import (
    FastLine,
    FastTrace,
    ReaderNotes,
    TraceNames,
    UserNumbers,
)
from fairbank.simulator.traces.header import Header
from fairbank.slurm.parsers.columns import split_record
from fairbank.slurm.parsers.traces.execution import (
    FORMAT,
    Execution,
    is_step,
    missing_information,
    read_execution,
)
from fairbank.slurm.parsers.words import quote_unknown

WINDOW = 1 << 15
"""Jobs that are held back to sort them: Slurm lists array tasks and requeued jobs late."""

_HEADER = re.compile(r"([A-Za-z]\w*)(\W+)(?:[A-Za-z]\w*\2)*[A-Za-z]\w*(\2)?", re.ASCII)
_COMMAND_HINT = f"run: sacct --allusers --allocations --duplicates --parsable2 --format={FORMAT}"

STEP = "steps of jobs: left out"
SUSPENDED = "suspended for a while: simulated without the pause"
RESIZED = "resized while they ran: simulated with the largest size all the time"
TWICE = "the same execution once more"


class TraceHeader(NamedTuple):
    """Header line: columns, delimiter, and whether it also ends each line (`--parsable`)."""

    line: str
    columns: tuple[str, ...]
    delimiter: str
    ending: bool


def is_accounting(line: bytes) -> bool:
    """Return True if the line begins output of sacct: a header, perhaps incomplete, or a job."""
    if line.lstrip().startswith((b";", b"#")):
        return False
    return b"|" in line or not set(re.split(r"\W+", line.decode("utf-8", "replace"))).isdisjoint(
        ("JobID", "JobIDRaw", "Submit", "State")
    )


def read_accounting_trace(numbered: Iterator[tuple[int, bytes]]) -> FastTrace:
    """Read the jobs in the order of submission, then of the file.

    A line that cannot be read is left out and noted with its number, since a user's text may have
    broken it in two. Raises InvalidInput with the line for an insufficient header and, while jobs
    are read, for a job that comes too late to be sorted.
    """
    header = _read_header(*next(numbered, (1, b"")))
    notes, names = ReaderNotes(), TraceNames(UserNumbers(), UserNumbers(), UserNumbers())
    executions = _executions(numbered, header, notes)
    return FastTrace(
        Header(), _skim(_in_order(executions, header, notes), notes, names), notes, names
    )


def _read_header(number: int, line: bytes) -> TraceHeader:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    match = _HEADER.fullmatch(text)
    if match is None:
        message = f"line {number}: {quote_unknown(text)}, expected the names of columns"
        raise InvalidInput(message, remedy=f"leave --noheader out; {_COMMAND_HINT}")
    columns = tuple(text.removesuffix(match[2]).split(match[2]))
    if len(set(columns)) < len(columns):
        raise InvalidInput(f"line {number}: a column is listed twice", remedy=_COMMAND_HINT)
    if (missing := missing_information(columns)) is not None:
        raise InvalidInput(f"line {number}: no column has {missing}", remedy=_COMMAND_HINT)
    return TraceHeader(text, columns, match[2], match[3] is not None)


_Placed = tuple[int, int, Execution]
"""Submission, line and job, in the order of the queue."""


def _executions(
    numbered: Iterator[tuple[int, bytes]], header: TraceHeader, notes: ReaderNotes
) -> Iterator[_Placed]:
    for number, line in numbered:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if (
            not text or text == header.line
        ):  # the header again: files of several months, one after the other
            continue
        if header.ending:
            text = text.removesuffix(header.delimiter)
        record = split_record("sacct", number, text, header.columns, header.delimiter)
        if isinstance(record, UnreadableLine):
            notes.omit(number, "number of cells differs from the header")
        elif is_step(record):
            notes.correct(STEP)
        else:
            try:
                execution = read_execution(record)
            except InvalidInput as error:
                notes.omit(
                    number, f"{error.field} cannot be read" if error.field else error.message
                )
            else:
                yield execution.submitted, number, execution


class _HeldJobs:
    """Jobs that are held back to sort them, and to join the records of resized ones.

    Each is in `_heap`, and in `_by_name` unless it was joined to another.
    """

    def __init__(self, notes: ReaderNotes) -> None:
        self._notes = notes
        self._heap: list[_Placed] = []
        self._by_name: dict[str, list[_Placed]] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, placed: _Placed) -> None:
        heappush(self._heap, placed)
        self._by_name.setdefault(placed[2].name, []).append(placed)

    def pop(self) -> _Placed | None:
        """Return the first job with all its records; None if it was joined to another."""
        placed = heappop(self._heap)
        submitted, line, job = placed
        records = self._by_name.get(job.name, [])
        if placed not in records:
            return None
        records.remove(placed)
        while rest := [record for record in records if job.is_continued_by(record[2])]:
            # Files of two months may have a record twice, first as running.
            rest.sort(key=lambda record: record[2].elapsed is None)
            for record in rest:
                records.remove(record)
            for record in rest[1:]:
                self._notes.omit(record[1], TWICE)
            job = job.joined_with(rest[0][2])
            if not job.resized and job.elapsed is not None:
                self._notes.correct(RESIZED)
        if not records:
            del self._by_name[job.name]
        return submitted, line, job


def _in_order(
    executions: Iterator[_Placed], header: TraceHeader, notes: ReaderNotes
) -> Iterator[_Placed]:
    """Sort the jobs, with no more than WINDOW of them in memory."""
    held = _HeldJobs(notes)
    latest = 0
    for placed in executions:
        if placed[0] < latest:
            place = header.columns.index("Submit") + 1
            message = (
                f"line {placed[1]}: submitted before a job that stands more than {WINDOW} lines"
                " ahead, expected submit times in order"
            )
            command = (
                f"(head -n 1 FILE; tail -n +2 FILE | sort -s -t {quote_unknown(header.delimiter)}"
                f" -k {place},{place})"
            )
            raise InvalidInput(message, field="Submit", remedy=f"sort the jobs: {command}")
        held.push(placed)
        if len(held) > WINDOW and (first := held.pop()) is not None:
            latest = first[0]
            yield first
    while held:
        if (first := held.pop()) is not None:
            yield first


def _skim(
    executions: Iterator[_Placed], notes: ReaderNotes, names: TraceNames
) -> Iterator[FastLine]:
    """Yield the jobs.

    An execution that starts at the same time under the same id occurs in two files.
    """
    second, seen = -1, set[tuple[str, int | None]]()
    for submitted, line, job in executions:
        if submitted != second:
            second = submitted
            seen.clear()
        if job.start is not None and job.start < submitted:
            notes.omit(line, "started before it was submitted")
            continue
        if job.elapsed is not None:
            if (job.name, job.start) in seen:
                notes.omit(line, TWICE)
                continue
            if job.resized:
                notes.omit(line, "resized, and the record of the rest is missing")
                continue
            seen.add((job.name, job.start))
            if job.suspended:
                notes.correct(SUSPENDED)
        # A job of Slurm has whole cores or nodes: its allocation counts if known, not its request.
        requested = job.allocated or job.requested or -1
        sizes = (job.allocated or -1, requested, job.limit or -1)
        numbers = (
            names.users.number(job.user),
            names.groups.number(job.account),
            names.partitions.number(job.partition),
        )
        yield (job.job, submitted, -1 if job.elapsed is None else job.elapsed, *sizes, -1, *numbers)
