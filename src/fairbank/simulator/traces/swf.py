"""Traces in the Standard Workload Format, version 2.2: one job a line, 18 columns, `;` before a comment.

The format is the Parallel Workloads Archive's (D. G. Feitelson, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
Nothing is opened here: `read` takes any stream of bytes, and its memory does not grow with the stream.
"""

from __future__ import annotations

import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain
from typing import NamedTuple, Protocol

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.header import Header, header_lines, parse_header
from fairbank.simulator.traces.job_line import SwfJob, judge, parse_job

LINE_LIMIT = 16_384
"""The longest line, in bytes. 18 numbers need some 200, a wordy comment 1,000."""

REMARK_LIMIT = 1 << 18
"""Comments and blank lines of one trace, in bytes. They are no jobs: a stream of nothing else would never end."""


class Trace(NamedTuple):
    """The header, already read, and the jobs, read as they are asked for, once."""

    header: Header
    jobs: Iterator[SwfJob]


class JobStream(Iterator[SwfJob]):
    """The jobs of a stream; `line` is the number of the line of the last one that was asked for."""

    def __init__(self, numbered: Iterator[tuple[int, SwfJob]]) -> None:
        self._numbered, self.line = numbered, 0

    def __next__(self) -> SwfJob:
        self.line, job = next(self._numbered)
        return job


class ByteStream(Protocol):
    """All that is asked of a stream: a file, a gzip file, bytes in memory."""

    def readline(self, size: int, /) -> bytes: ...

    def read1(self, size: int, /) -> bytes: ...


def read(stream: ByteStream) -> Trace:
    """Read a trace: the header at once, the jobs lazily.

    A job is a line of exactly 18 columns of whole numbers. Times and memory may carry a decimal fraction, as the standard
    allows, and are rounded to the nearest whole. A wait, run or think time below -1 is read as -1. Submit times never fall:
    the standard sorts by them, and to sort here would need the whole trace in memory. Comments after the first job are
    passed over.

    Raises InvalidInput with the line, what was expected and the remedy, here or while the jobs are read. Of the stream's own
    errors, damaged compression is InvalidInput too; a disk that fails is not, and passes.
    """
    numbered = Remarks().bounded(NumberedLines(stream))
    header, first = head_of(numbered)
    return Trace(header, JobStream(_jobs(chain(first, numbered), header.unix_start_time or 0)))


def head_of(numbered: Iterator[tuple[int, bytes]]) -> tuple[Header, list[tuple[int, bytes]]]:
    """The header, and the line behind it: the first that is no comment, where there is one."""
    first: list[tuple[int, bytes]] = []

    def comments() -> Iterator[tuple[int, bytes]]:
        for number, line in numbered:
            if not is_remark(line):
                first.append((number, line))
                return
            yield number, line

    return parse_header(comments()), first


class NumberedLines(Iterator[tuple[int, bytes]]):
    """Numbered lines of at most `limit` bytes, without the mark that some editors begin a file with; one by one, or many in a block.

    Raises InvalidInput for a longer one, and where compressed data end early or are damaged.
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
        """The last line, which has something in it, is to come again."""
        self._number, self._again = self._number - 1, line

    def blocks(self, size: int) -> Iterator[tuple[int, bytes]]:
        """What is left, as whole lines of together some `size` bytes, each time with the number of the first: `each_of` parts them."""
        while block := self._again + self._read(self._stream.read1, size):
            number, self._again = self._number, b""
            self._number += block.count(b"\n")
            if not block.endswith(b"\n"):
                block += self._read(self._stream.readline, self._limit + 1)
                self._number += 1
            yield number, block.removeprefix(BOM_UTF8) if number == 1 else block

    def each_of(self, number: int, block: bytes) -> Iterator[tuple[int, bytes]]:
        """One by one the lines of a block, of which the first has this number."""
        for at, line in enumerate(BytesIO(block), number):
            yield at, self._checked(at, line)

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except (EOFError, zlib.error, BadGzipFile) as bad:
            what = f"line {self._number}: the compressed data end here, too early, or are damaged ({bad})"
            raise InvalidInput(what, remedy="fetch the file again; gzip -t tests it") from bad

    def _checked(self, number: int, line: bytes) -> bytes:
        if len(line) > self._limit:
            what = (
                f"line {number}: longer than {self._limit} bytes, expected one job or one comment"
            )
            raise InvalidInput(
                what, remedy="give a trace in the Standard Workload Format: text, one job a line"
            )
        return line.removeprefix(BOM_UTF8) if number == 1 else line


def write(header: Header, jobs: Iterable[SwfJob]) -> Iterator[str]:
    """The lines of a trace, each with its newline; `read` gives back the same header and the same jobs.

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
    """A comment or a blank line."""
    return line.lstrip()[:1] in (b";", b"")


class Remarks:
    """Counts comments and blank lines.

    Raises InvalidInput where they are more than anybody needs.
    """

    def __init__(self) -> None:
        self._bytes = 0

    def take(self, number: int, line: bytes) -> None:
        self._bytes += len(line)
        if self._bytes > REMARK_LIMIT:
            what = f"line {number}: more than {REMARK_LIMIT} bytes of comments and blank lines, expected jobs"
            raise InvalidInput(what, remedy="remove the comments that nobody needs")

    def bounded(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """The same lines, each remark among them counted."""
        for number, line in numbered:
            if is_remark(line):
                self.take(number, line)
            yield number, line
