"""Accounting as a trace: what `sacct --parsable2` (or `--parsable`) printed, as a simulation reads it.

The line of heads says which columns there are, in any order, and what parts them. Each execution is a job of its own: what was requeued ran
as often as `--duplicates` tells. Steps are passed over. Numbers stand for the names of users, accounts (as groups) and partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush, heappushpop
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.fast_reader import FastLine, FastTrace, ReaderNotes, TraceNames
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.user_numbers import UserNumbers
from fairbank.slurm.parsers.delimited import record
from fairbank.slurm.parsers.execution import FORMAT, Execution, is_step, missing, read_execution
from fairbank.slurm.parsers.values import Unreadable
from fairbank.slurm.parsers.words import shown

WINDOW = 1 << 15
"""So many jobs are held back to be put in order: Slurm tells tasks of arrays and what was requeued late."""

_HEADS = re.compile(r"([A-Za-z]\w*)(\W+)(?:[A-Za-z]\w*\2)*[A-Za-z]\w*(\2)?", re.ASCII)
_ASK = f"ask so: sacct --allusers --allocations --duplicates --parsable2 --format={FORMAT}"

STEP = "steps of jobs: passed over"
SUSPENDED = "suspended for a while: simulated without the pause"


class TraceHeader(NamedTuple):
    """The line of heads: the columns, what parts them, and whether it also ends each line (`--parsable`)."""

    line: str
    columns: tuple[str, ...]
    delimiter: str
    ending: bool


def is_accounting(line: bytes) -> bool:
    """Whether a file that begins with this line is accounting: heads, perhaps not enough of them, or a job without any."""
    if line.lstrip().startswith(b";"):
        return False
    return b"|" in line or not set(re.split(r"\W+", line.decode("utf-8", "replace"))).isdisjoint(
        ("JobID", "JobIDRaw", "Submit", "State")
    )


def skim_accounting(numbered: Iterator[tuple[int, bytes]]) -> FastTrace:
    """The jobs, in the order of their submission, then of the file.

    A line that cannot be read is left out, and noted with its number: somebody's text may have broken it in two. Raises InvalidInput with the
    line, here for heads that do not tell enough, and while the jobs are read for one that comes too late to be put in order.
    """
    number, first = next(numbered, (1, b""))
    heads, notes, people = (
        _heads(number, first),
        ReaderNotes(),
        TraceNames(UserNumbers(), UserNumbers(), UserNumbers()),
    )
    found = _executions(numbered, heads, notes)
    return FastTrace(Header(), _skimmed(_in_order(found, heads), notes, people), notes, people)


def _heads(number: int, line: bytes) -> TraceHeader:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    match = _HEADS.fullmatch(text)
    if match is None:
        what = f"line {number}: {shown(text)}, expected the heads of columns"
        raise InvalidInput(what, remedy=f"leave --noheader out; {_ASK}")
    columns = tuple(text.removesuffix(match[2]).split(match[2]))
    if len(set(columns)) < len(columns):
        raise InvalidInput(f"line {number}: a column is there twice", remedy=_ASK)
    if (lacking := missing(columns)) is not None:
        raise InvalidInput(f"line {number}: no column tells {lacking}", remedy=_ASK)
    return TraceHeader(text, columns, match[2], match[3] is not None)


_Placed = tuple[int, int, Execution]
"""When it was submitted, in which line it stands, and itself: in the order of the queue."""


def _executions(
    numbered: Iterator[tuple[int, bytes]], heads: TraceHeader, notes: ReaderNotes
) -> Iterator[_Placed]:
    for number, line in numbered:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if (
            not text or text == heads.line
        ):  # heads once more: files of several months, one after the other
            continue
        if heads.ending:
            text = text.removesuffix(heads.delimiter)
        found = record("sacct", number, text, heads.columns, heads.delimiter)
        if isinstance(found, Unreadable):
            notes.omit(number, "another number of cells than heads")
        elif is_step(found.cells):
            notes.correct(STEP)
        else:
            try:
                execution = read_execution(found.cells)
            except InvalidInput as bad:
                notes.omit(number, f"{bad.field} cannot be read" if bad.field else bad.message)
            else:
                yield execution.submitted, number, execution


def _in_order(found: Iterator[_Placed], heads: TraceHeader) -> Iterator[_Placed]:
    """Sorted, as far as that takes no more than WINDOW of them in memory."""
    held: list[_Placed] = []
    before = 0
    for each in found:
        if each[0] < before:
            place = heads.columns.index("Submit") + 1
            what = f"line {each[1]}: submitted before a job that stands more than {WINDOW} lines ahead, expected submit times in order"
            how = f"(head -n 1 FILE; tail -n +2 FILE | sort -s -t {shown(heads.delimiter)} -k {place},{place})"
            raise InvalidInput(what, field="Submit", remedy=f"sort the jobs: {how}")
        if len(held) < WINDOW:
            heappush(held, each)
        else:
            out = heappushpop(held, each)
            before = out[0]
            yield out
    while held:
        yield heappop(held)


def _skimmed(
    found: Iterator[_Placed], notes: ReaderNotes, people: TraceNames
) -> Iterator[FastLine]:
    """What ran at the same time under the same id is the same: files that overlap have it twice."""
    second, seen = -1, set[tuple[str, int | None]]()
    for submitted, line, job in found:
        if submitted != second:
            second = submitted
            seen.clear()
        if job.elapsed is not None:
            if (job.name, job.start) in seen:
                notes.omit(line, "the same execution once more")
                continue
            seen.add((job.name, job.start))
            if job.suspended:
                notes.correct(SUSPENDED)
        # A job of Slurm has whole cores, or whole nodes: what it was given counts, where that is known, not what it asked for.
        requested = job.allocated or job.requested or -1
        sizes = (job.allocated or -1, requested, job.limit or -1)
        who = (
            people.users.number(job.user),
            people.groups.number(job.account),
            people.partitions.number(job.partition),
        )
        yield (job.job, submitted, -1 if job.elapsed is None else job.elapsed, *sizes, -1, *who)
