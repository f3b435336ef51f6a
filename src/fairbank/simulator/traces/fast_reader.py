"""Fast reader of traces: of the 18 columns it converts only those that a schedule depends on.

A line of plain numbers takes a third of the time of `job_line`, which reads all columns. Many lines
are read at a time. If one of them is not plain (a comment, a wrong number of columns, an unusual
number in any column), `job_line` reads or refuses them one by one, with its own messages.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import chain
from math import floor
from operator import itemgetter, ne, or_
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import COLUMNS, SwfJob, judge, parse_job
from fairbank.simulator.traces.swf import ByteStream, NumberedLines, Remarks, head_of, is_remark

NAMES_MAX = 1_000_000
"""Maximum number of names, which must fit into memory. No site has more users."""


class UserNumbers:
    """Names in the order of their first use, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def number(self, name: str) -> int:
        """Return the number of a name, new or not; -1 if empty. Raises InvalidInput."""
        if not name:
            return -1
        number = self._numbers.get(name)
        if number is None:
            if len(self._names) == NAMES_MAX:
                raise InvalidInput(
                    f"more than {NAMES_MAX} names, expected those of users or accounts",
                    remedy="look whether the columns are right",
                )
            self._names.append(name)
            number = self._numbers[name] = len(self._names)
        return number

    def name(self, number: int) -> str:
        """Return the name with a number; empty for -1."""
        return self._names[number - 1] if number > 0 else ""


class SeenNumbers:
    """Numbers that were used, mostly ascending. Memory holds gaps and late numbers only."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")
        self._late: set[int] = set()

    def is_repeated(self, number: int, due: int) -> bool:
        """Record a number; return True if it was used. `due`: one above the largest so far."""
        if number >= due:
            if number > due:
                self._begins.append(due)
                self._ends.append(number)
            return False
        place = bisect_right(self._begins, number) - 1
        if place < 0 or number >= self._ends[place] or number in self._late:
            return True
        self._late.add(number)
        return False


BLOCK = 1 << 14
"""Bytes that are read together: about 200 lines."""

FastLine = tuple[int, int, int, int, int, int, int, int, int, int]
"""Columns of a line: job number, submit time, run time, allocated and requested processors,
requested time, status, user, group, partition.
"""


ROUNDED = "submit time, run time or requested time with decimals: rounded to whole seconds"
_TIMES = ("submit time", "run time", "requested time")
_TIME_PLACES = (1, 2, 5)
"""Places of these in a `FastLine`."""


class ReaderNotes:
    """Notes of the reader of another format: numbers of lines that are no jobs, by reason, and
    numbers of jobs that were read otherwise than written, by correction.
    """

    def __init__(self) -> None:
        self.omitted: dict[str, list[int]] = {}
        self.corrections: dict[str, int] = {}

    def omit(self, line: int, why: str) -> None:
        self.omitted.setdefault(why, []).append(line)

    def correct(self, how: str, jobs: int = 1) -> None:
        self.corrections[how] = self.corrections.get(how, 0) + jobs


class TraceNames(NamedTuple):
    """Names behind numbers, if a log has names. Each is known after its first job."""

    users: UserNumbers
    groups: UserNumbers
    partitions: UserNumbers


class FastTrace(NamedTuple):
    """Header, and lines, read lazily and once. `names` None: the trace has numbers only."""

    header: Header
    jobs: Iterator[FastLine]
    notes: ReaderNotes
    names: TraceNames | None = None


class Extent(NamedTuple):
    """Size of a workload. `about` returns the total number of jobs, estimated when so many are
    read. `once`: it cannot be read again.
    """

    about: Callable[[int], int]
    once: bool = False


Source = Callable[[], AbstractContextManager[tuple[FastTrace, Extent]]]
"""Function that opens a workload, from its begin each time."""


def read_fast(stream: ByteStream) -> FastTrace:
    """Read a trace, with the result and the errors of `swf.read`."""
    return read_lines(NumberedLines(stream))


def read_lines(lines: NumberedLines) -> FastTrace:
    """Read a trace from numbered lines."""
    remarks = Remarks()
    header, first = head_of(remarks.bounded(lines))
    for _, line in first:
        lines.put_back(line)
    notes = ReaderNotes()
    return FastTrace(
        header, _read_blocks(lines, remarks, header.unix_start_time or 0, notes), notes
    )


def fast_line(job: SwfJob) -> FastLine:
    """Return the columns of a job that a schedule depends on."""
    sizes = (job.allocated_processors, job.requested_processors, job.requested_time)
    return (
        job.number,
        job.submit_time,
        job.run_time,
        *sizes,
        job.status,
        job.user,
        job.group,
        job.partition,
    )


_BLANK = rb"[ \t\r]{1,800}+"  # so that no line is longer than LINE_LIMIT


# With 10 digits before these, a float is rounded correctly. In all patterns `(?:x|)` and `[0-9]`
# take less time than `(?:x)?` and `\d`, above all on decimals.
_DECIMALS = rb"(?:\.[0-9]{0,4}+|)"


def _optional_number(digits: int) -> bytes:
    return _BLANK + rb"(-1|[0-9]{1,%d}+)" % digits


_OPTIONAL_TIME = _BLANK + rb"(-1|[0-9]{1,9}+%b)" % _DECIMALS
_IGNORED_NUMBER = _BLANK + rb"(?:-1|[0-9]{1,9}+)"
_IGNORED_MEASURE = _BLANK + rb"(?:-1|[0-9]{1,9}+(?:\.[0-9]{0,20}+|))"


# Numbers of so few digits need no second look: no job of them is too large or ends too late,
# wherever the log begins before _LATE.
_PLAIN = re.compile(
    rb"^[ \t\r]{0,800}+([0-9]{1,10}+)"  # job number
    + (_BLANK + rb"([0-9]{1,10}+%b)" % _DECIMALS)  # submit time
    + _IGNORED_MEASURE  # wait time
    + _OPTIONAL_TIME  # run time
    + _optional_number(7)  # allocated processors
    + _IGNORED_MEASURE * 2  # average CPU time, used memory
    + _optional_number(7)  # requested processors
    + _OPTIONAL_TIME  # requested time
    + _IGNORED_MEASURE  # requested memory
    + _optional_number(9) * 3  # status, user, group
    + _IGNORED_NUMBER * 2  # executable, queue
    + _optional_number(9)  # partition
    + _IGNORED_NUMBER  # preceding job
    + _IGNORED_MEASURE  # think time
    + rb"[ \t\r]{0,800}+\n",
    re.MULTILINE,
)
_SHORT = 1_000
_LATE = LAST_INSTANT - 2 * 10**10


def _read_blocks(
    lines: NumberedLines, remarks: Remarks, unix_start_time: int, notes: ReaderNotes
) -> Iterator[FastLine]:
    before, line_before = 0, b""
    for first, block in lines.blocks(BLOCK):
        jobs, rounded = _plain_lines(block) if unix_start_time < _LATE else ([], 0)
        submits = [before, *map(itemgetter(1), jobs)]
        if len(jobs) == block.count(b"\n") and block.endswith(b"\n") and submits == sorted(submits):
            if rounded:
                notes.correct(ROUNDED, rounded)
            yield from jobs
            before, line_before = submits[-1], b""
            continue
        for number, line in lines.each_of(first, block):
            if is_remark(line):
                remarks.take(number, line)
                continue
            job = parse_job(line, number)
            judge(job, number, before, unix_start_time, (line_before, line))
            before, line_before = job.submit_time, line
            if _is_rounded(line):
                notes.correct(ROUNDED)
            yield fast_line(job)


def _is_rounded(line: bytes) -> bool:
    """Return True if a time that a schedule depends on is not an integer."""
    if b"." not in line:
        return False
    words = line.split()
    return any(words[COLUMNS.index(name)].partition(b".")[2].strip(b"0") for name in _TIMES)


def _plain_lines(block: bytes) -> tuple[list[FastLine], int]:
    """Return the jobs of all plain lines, and how many of them have a rounded time."""
    words = list(chain.from_iterable(_PLAIN.findall(block)))
    text = b"[%b]" % b",".join(words)
    numbers = _numbers(text, words)
    rounded = _round_times(numbers) if b"." in text else 0
    return list(zip(*[iter(numbers)] * _PLAIN.groups, strict=True)), rounded


def _numbers(text: bytes, words: list[bytes]) -> list[Any]:
    """Return the numbers of the words. `text` has them as JSON, which takes half of the time that
    `int` takes, for decimals too (`make bench`, simulate).
    """
    if len(text) > _SHORT:
        # Imported here: a simulation of a few jobs takes less time than this import.
        from msgspec import DecodeError  # noqa: PLC0415
        from msgspec.json import decode  # noqa: PLC0415

        with suppress(DecodeError):  # `007` or `10.`, which JSON lacks
            return decode(text, type=list[int | float])
    return [float(word) if b"." in word else int(word) for word in words]


def _round_times(numbers: list[Any]) -> int:
    """Round the times among the columns of all lines half up; return how many lines changed."""
    changes: Iterable[bool] = ()
    for at in _TIME_PLACES:
        times = numbers[at :: _PLAIN.groups]
        if isinstance(sum(times), float):  # quicker than a look at each of them
            whole = [time if type(time) is int else floor(time + 0.5) for time in times]
            numbers[at :: _PLAIN.groups] = whole
            changed = map(ne, times, whole)
            changes = map(or_, changes, changed) if changes else changed
    return sum(changes)
