"""Traces in the Standard Workload Format, version 2.2: one job a line, 18 columns, `;` before a
comment.

The format is the Parallel Workloads Archive's (D. G. Feitelson,
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html). This module opens no file: `read` takes
any stream of bytes, and its memory does not grow with the stream.
"""

from __future__ import annotations

import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain
from typing import NamedTuple, Protocol

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.header import Header, header_lines, parse_header
from fairbank.simulator.traces.job_line import SwfJob, is_like_a_job, judge, parse_job

LINE_LIMIT = 16_384
"""Maximum length of a line in bytes. 18 numbers need about 200, a long comment 1,000."""

REMARK_LIMIT = 1 << 18
"""Maximum bytes of comments and blank lines: a stream of them only would never end."""


_OLD_LINE_END = re.compile(rb"\r[ \t]*[;\d]")
"""Carriage return between two lines, as old Macs wrote it."""


class Trace(NamedTuple):
    """The header, already read, and the jobs, read as they are asked for, once."""

    header: Header
    jobs: Iterator[SwfJob]


class JobStream(Iterator[SwfJob]):
    """Jobs of a stream; `line` is the line number of the last one that was read."""

    def __init__(self, numbered: Iterator[tuple[int, SwfJob]]) -> None:
        self._numbered, self.line = numbered, 0

    def __next__(self) -> SwfJob:
        self.line, job = next(self._numbered)
        return job


class ByteStream(Protocol):
    """Methods of a stream that the reader needs: a file, a gzip file, bytes in memory."""

    def readline(self, size: int, /) -> bytes: ...

    def read1(self, size: int, /) -> bytes: ...


def read(stream: ByteStream) -> Trace:
    """Read a trace: the header at once, the jobs lazily.

    A job is a line of exactly 18 columns of integers. Times and memory may have decimals, as the
    standard allows, and are rounded to the nearest integer. A wait, run or think time below -1 is
    read as -1. Submit times never decrease: the standard sorts by them, and sorting here would need
    the whole trace in memory. Comments after the first job are ignored.

    Raises InvalidInput with the line, what was expected and the remedy, here or while the jobs are
    read. Damaged compression is InvalidInput, too; errors of the disk are passed on.
    """
    numbered = Remarks().bounded(NumberedLines(stream))
    header, first = head_of(numbered)
    return Trace(header, JobStream(_jobs(chain(first, numbered), header.unix_start_time or 0)))


def head_of(numbered: Iterator[tuple[int, bytes]]) -> tuple[Header, list[tuple[int, bytes]]]:
    """Return the header, and the first line that is not a comment, if there is one.

    Raises InvalidInput if that line is not like a job.
    """
    first: list[tuple[int, bytes]] = []

    def comments() -> Iterator[tuple[int, bytes]]:
        for number, line in numbered:
            if not is_remark(line):
                if not is_like_a_job(line):
                    raise InvalidInput(
                        f"line {number} is not a job: this is not a trace",
                        field="FILE",
                        remedy="name a trace in the Standard Workload Format",
                    )
                first.append((number, line))
                return
            yield number, line

    return parse_header(comments()), first


class NumberedLines(Iterator[tuple[int, bytes]]):
    """Numbered lines of at most `limit` bytes, without a byte order mark; one by one, or many in a
    block.

    Raises InvalidInput for a longer line, and if compressed data end early or are damaged.
    """

    def __init__(self, stream: ByteStream, limit: int = LINE_LIMIT) -> None:
        self._stream, self._limit = stream, limit
        self._number, self._again = 1, b""

    def __next__(self) -> tuple[int, bytes]:
        line = self._again or self._read(self._stream.readline, self._limit + 1)
        if not line:
            raise StopIteration
        number, self._number, self._again = self._number, self._number + 1, b""
        return number, self._checked(number, line)

    def put_back(self, line: bytes) -> None:
        """Put back the last line, which is not empty."""
        self._number, self._again = self._number - 1, line

    def blocks(self, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of about `size` bytes with the number of their first line."""
        while block := self._again + self._read(self._stream.read1, size):
            number, self._again = self._number, b""
            self._number += block.count(b"\n")
            if not block.endswith(b"\n"):
                block += self._read(self._stream.readline, self._limit + 1)
                self._number += 1
            yield number, block.removeprefix(BOM_UTF8) if number == 1 else block

    def each_of(self, number: int, block: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a block, the first of which has this number."""
        for at, line in enumerate(BytesIO(block), number):
            yield at, self._checked(at, line)

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except (EOFError, zlib.error, BadGzipFile) as bad:
            what = (
                f"line {self._number}: the compressed data end here, too early, or are damaged"
                f" ({bad})"
            )
            raise InvalidInput(what, remedy="fetch the file again; gzip -t tests it") from bad

    def _checked(self, number: int, line: bytes) -> bytes:
        if number == 1 and _OLD_LINE_END.search(line):
            raise InvalidInput(
                "line 1 has carriage returns between lines, expected newlines",
                field="FILE",
                remedy="convert the file: tr '\\r' '\\n' < FILE > CONVERTED",
            )
        if len(line) > self._limit:
            what = (
                f"line {number}: longer than {self._limit} bytes, expected one job or one comment"
            )
            raise InvalidInput(
                what, remedy="give a trace in the Standard Workload Format: text, one job a line"
            )
        return line.removeprefix(BOM_UTF8) if number == 1 else line


def write(header: Header, jobs: Iterable[SwfJob]) -> Iterator[str]:
    """Yield the lines of a trace, each with its newline; `read` returns the same header and jobs.

    Raises InvalidInput for what `read` would refuse.
    """
    head = list(header_lines(header))
    yield from head
    before = 0
    for number, job in enumerate(jobs, start=len(head) + 1):
        judge(job, number, before, header.unix_start_time or 0)
        before = job.submit_time
        yield " ".join(map(str, job)) + "\n"


def _jobs(
    numbered: Iterator[tuple[int, bytes]], unix_start_time: int
) -> Iterator[tuple[int, SwfJob]]:
    before, line_before = 0, b""
    for number, line in numbered:
        if not is_remark(line):
            job = parse_job(line, number)
            judge(job, number, before, unix_start_time, (line_before, line))
            before, line_before = job.submit_time, line
            yield number, job


def is_remark(line: bytes) -> bool:
    """Return True for a comment or a blank line."""
    return line.lstrip()[:1] in (b";", b"")


class Remarks:
    """Counter of comments and blank lines. Raises InvalidInput above REMARK_LIMIT."""

    def __init__(self) -> None:
        self._bytes = 0

    def take(self, number: int, line: bytes) -> None:
        """Take a comment or blank line. Raises InvalidInput if there are too many."""
        self._bytes += len(line)
        if self._bytes > REMARK_LIMIT:
            what = (
                f"line {number}: more than {REMARK_LIMIT} bytes of comments and blank lines,"
                " expected jobs"
            )
            raise InvalidInput(what, remedy="remove comments")

    def bounded(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Yield the same lines, with the remarks among them counted."""
        for number, line in numbered:
            if is_remark(line):
                self.take(number, line)
            yield number, line
