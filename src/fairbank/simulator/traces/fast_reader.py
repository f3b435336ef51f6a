"""Skims a trace: of its 18 columns only those that a schedule depends on become numbers.

So a line of plain numbers costs a third of what `job_line` takes to read all of them. Lines are taken many at a time; where one of them is
not plain (a comment, a decimal, a wrong number of columns, in any column a number out of the ordinary), they go to `job_line` one by one,
which reads it or refuses it in the same words as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from fairbank.core.time import LAST_INSTANT
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import COLUMNS, SwfJob, judge, parse_job
from fairbank.simulator.traces.swf import ByteStream, NumberedLines, Remarks, head_of, is_remark
from fairbank.simulator.traces.user_numbers import UserNumbers

BLOCK = 1 << 14
"""So many bytes are looked at together: some 200 lines."""

Skimmed = tuple[int, int, int, int, int, int, int, int, int, int]
"""Of one line: job number, submit time, run time, allocated and requested processors, requested time, status, user, group, partition."""


ROUNDED = "submit time, run time or requested time with decimals: rounded to whole seconds"
_TIMES = ("submit time", "run time", "requested time")


class ReaderNotes:
    """What the reader of another format made of it, told while the jobs are read: of lines that are no jobs their numbers, by the reason;
    of jobs that are read otherwise than they stand there how many, by how they are."""

    def __init__(self) -> None:
        self.left: dict[str, list[int]] = {}
        self.read: dict[str, int] = {}

    def leave(self, line: int, why: str) -> None:
        self.left.setdefault(why, []).append(line)

    def note(self, how: str) -> None:
        self.read[how] = self.read.get(how, 0) + 1


class People(NamedTuple):
    """Who and what is meant by the numbers of users, groups and partitions, where a log has names: each is known once it was seen."""

    users: UserNumbers
    groups: UserNumbers
    partitions: UserNumbers


class FastTrace(NamedTuple):
    """The header, already read, and the lines, skimmed as they are asked for, once. `people`: None where numbers are all there is."""

    header: Header
    jobs: Iterator[Skimmed]
    notes: ReaderNotes
    people: People | None = None


def read_fast(stream: ByteStream) -> FastTrace:
    """Skim a trace: gives what `swf.read` gives, and raises InvalidInput, with the line, for all that it refuses."""
    return skim_lines(NumberedLines(stream))


def skim_lines(lines: NumberedLines) -> FastTrace:
    """The same from lines with their numbers."""
    remarks = Remarks()
    header, first = head_of(remarks.bounded(lines))
    for _, line in first:
        lines.put_back(line)
    notes = ReaderNotes()
    return FastTrace(header, _skimmed(lines, remarks, header.unix_start_time or 0, notes), notes)


def needed(job: SwfJob) -> Skimmed:
    """Of a job those columns that a schedule depends on."""
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


def _known(digits: int) -> bytes:
    return _BLANK + rb"(\d{1,%d}+)" % digits


def _told(digits: int) -> bytes:
    return _BLANK + rb"(-1|\d{1,%d}+)" % digits


def _passed_over(columns: int) -> bytes:
    return (_BLANK + rb"(?:-1|\d{1,9}+)") * columns


# Numbers of so few digits need no second look: no job of them is too large or ends too late, wherever the log begins before _LATE.
_PLAIN = re.compile(
    rb"^[ \t\r]{0,800}+(\d{1,10}+)"  # job number
    + _known(10)  # submit time
    + _passed_over(1)
    + _told(9)  # run time
    + _told(7)  # allocated processors
    + _passed_over(2)
    + _told(7)  # requested processors
    + _told(9)  # requested time
    + _passed_over(1)
    + _told(9) * 3  # status, user, group
    + _passed_over(2)
    + _told(9)  # partition
    + _passed_over(2)
    + rb"[ \t\r]{0,800}+\n",
    re.MULTILINE,
)
_LATE = LAST_INSTANT - 2 * 10**10


def _skimmed(
    lines: NumberedLines, remarks: Remarks, unix_start_time: int, notes: ReaderNotes
) -> Iterator[Skimmed]:
    before, line_before = 0, b""
    for first, block in lines.blocks(BLOCK):
        jobs = _plain(block) if unix_start_time < _LATE else []
        submits = [before, *(job[1] for job in jobs)]
        if len(jobs) == block.count(b"\n") and block.endswith(b"\n") and submits == sorted(submits):
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
                notes.note(ROUNDED)
            yield needed(job)


def _is_rounded(line: bytes) -> bool:
    """Whether a time that a schedule depends on is no whole number of seconds."""
    if b"." not in line:
        return False
    words = line.split()
    return any(words[COLUMNS.index(name)].partition(b".")[2].strip(b"0") for name in _TIMES)


def _plain(block: bytes) -> list[Skimmed]:
    """The jobs of all plain lines."""
    numbers = map(int, chain.from_iterable(_PLAIN.findall(block)))
    return list(zip(*[numbers] * _PLAIN.groups, strict=True))
