"""One line of a trace: a job with 18 columns, parsed and checked."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time import LAST_INSTANT
from fairbank.core.units import AMOUNT_MAX

LARGEST = 2**53 - 1
"""Largest number in any column: the largest that every JSON reader and database stores exactly."""


class Status(IntEnum):
    """Final status of a job. A log with checkpoints has a line for the whole job and one for each
    part of its run.
    """

    UNKNOWN = -1
    FAILED = 0
    COMPLETED = 1
    PART = 2
    LAST_PART_COMPLETED = 3
    LAST_PART_FAILED = 4
    CANCELLED = 5


class SwfJob(NamedTuple):
    """Line of a trace: the 18 columns in their order, as written; -1 means unknown.

    Times are seconds, memory is KiB per processor, submit_time counts from the header's
    unix_start_time. Only number and submit_time are always known. The properties return None, or a
    stated assumption, if a column is -1.
    """

    number: int
    submit_time: int
    wait_time: int
    run_time: int
    allocated_processors: int
    average_cpu_time: int
    used_memory: int
    requested_processors: int
    requested_time: int
    requested_memory: int
    status: int
    user: int
    group: int
    executable: int
    queue: int
    partition: int
    preceding_job: int
    think_time: int

    @property
    def processors(self) -> int | None:
        """Return the requested processors, else the allocated ones; None if the log has neither."""
        return next(
            (n for n in (self.requested_processors, self.allocated_processors) if n > 0), None
        )

    @property
    def time_limit(self) -> int | None:
        """Return the requested time; None if it is unknown or 0."""
        return self.requested_time if self.requested_time > 0 else None

    @property
    def start_time(self) -> int:
        """Return seconds from the start of the log; an unknown wait counts as none."""
        return self.submit_time + max(self.wait_time, 0)

    @property
    def end_time(self) -> int | None:
        """Return seconds from the start of the log; None if it never ran or is unknown."""
        return self.start_time + self.run_time if self.run_time >= 0 else None

    @property
    def is_part(self) -> bool:
        """Return True for a part of a run whose whole has its own line: count one of them."""
        return self.status in (Status.PART, Status.LAST_PART_COMPLETED, Status.LAST_PART_FAILED)


COLUMNS = (
    *(
        "job number",
        "submit time",
        "wait time",
        "run time",
        "allocated processors",
        "average CPU time",
    ),
    *(
        "used memory",
        "requested processors",
        "requested time",
        "requested memory",
        "status",
        "user",
    ),
    *("group", "executable", "queue", "partition", "preceding job", "think time"),
)
_MEASURED = {name for name in COLUMNS if name.endswith(("time", "memory"))}
PLAIN = b"0123456789- \t\r\n"
SORTING = "sort the jobs: (grep '^ *;' FILE; grep -v '^ *;' FILE | sort -s -n -k2,2) > SORTED"
"""Remedy that keeps the header first: its lines may have a number as the second word, too."""
_CORRECT = "correct the line, or remove it; an unknown value is written -1"


_LIKE_A_NUMBER = re.compile(rb"[-+]?\.?\d[\w.+-]*", re.ASCII)


def is_like_a_job(line: bytes) -> bool:
    """Return True if a line may be a job, perhaps a wrong one. False: a line of another format,
    which no correction of columns would make a job.
    """
    words = line.split()
    if line.startswith(b"\x1f\x8b"):  # `parse_job` says that it is compressed
        return True
    judged = words[:1] if len(words) == len(COLUMNS) else words[: len(COLUMNS)]
    return all(map(_LIKE_A_NUMBER.fullmatch, judged))


def parse_job(line: bytes, number: int) -> SwfJob:
    """Read line `number`. Raises InvalidInput unless it has exactly 18 columns of numbers."""
    words = line.split()
    if not line.translate(None, PLAIN) and len(words) == len(COLUMNS):
        try:
            return _forget(SwfJob(*map(int, words)))
        except ValueError:
            # A misplaced "-", or more digits than int() accepts: the slow parser names the column.
            pass
    return _forget(_parse_slowly(line, words, number))


def judge(
    job: SwfJob,
    number: int,
    submitted_before: int,
    unix_start_time: int,
    lines: tuple[bytes, bytes] = (b"", b""),
) -> None:
    """Raise InvalidInput for a job whose numbers are impossible, or that is out of order.

    Args:
        job: parsed job.
        submitted_before: submit time of the job before.
        unix_start_time: begin of the log in seconds since 1970.
        lines: the lines of the job before and of this one, for the message: rounded numbers would
            mislead.
    """
    if job.number < 0 or job.submit_time < 0:
        name, value = next((n, v) for n, v in zip(COLUMNS, job, strict=True) if v < 0)
        remedy = (
            "count from 0, which is UnixStartTime, or leave the job out"
            if name == COLUMNS[1]
            else "number jobs from 0"
        )
        raise _malformed(
            number, f"{name} is {_written(lines[1], name, value)}", "0 or more", remedy, name
        )
    if min(job) < -1 or max(job) > LARGEST:
        name, value = next(
            (n, v) for n, v in zip(COLUMNS, job, strict=True) if not -1 <= v <= LARGEST
        )
        raise _out_of_range(number, name, _written(lines[1], name, value))
    if job.submit_time < submitted_before:
        before, now = (
            _written(lines[0], COLUMNS[1], submitted_before),
            _written(lines[1], COLUMNS[1], job.submit_time),
        )
        what = f"submit time {now} comes after submit time {before}"
        raise _malformed(number, what, "submit times in order", SORTING, COLUMNS[1])
    if unix_start_time + job.start_time + max(job.run_time, job.requested_time, 0) > LAST_INSTANT:
        raise _malformed(
            number,
            "the job ends after the year 9999",
            "times in seconds",
            f"{_CORRECT}; look at UnixStartTime too",
        )
    if (job.processors or 0) * max(job.run_time, job.requested_time) > AMOUNT_MAX * 60:
        name = COLUMNS[7 if job.requested_processors > 0 else 4]
        what = f"{job.processors} processors for {max(job.run_time, job.requested_time)} s"
        raise _malformed(number, what, f"at most {AMOUNT_MAX} processor-minutes", _CORRECT, name)


def _written(line: bytes, column: str, value: int) -> str:
    """Return a number as the line has it, which may be a decimal."""
    return line.split()[COLUMNS.index(column)].decode("ascii")[:40] if b"." in line else str(value)


def _forget(job: SwfJob) -> SwfJob:
    """Return the job with wait, run or think times below -1 as unknown. A log subtracts a time that
    it never had (MetaCentrum's has two).
    """
    if min(job) >= -1:
        return job
    return job._replace(
        wait_time=max(job.wait_time, -1),
        run_time=max(job.run_time, -1),
        think_time=max(job.think_time, -1),
    )


def _parse_slowly(line: bytes, words: list[bytes], number: int) -> SwfJob:
    """Parse a line with decimals, and find exactly what is wrong."""
    if line.startswith(b"\x1f\x8b"):
        raise _malformed(
            number, "this is gzip-compressed", "text", "decompress the file with gunzip"
        )
    if strange := re.search(rb"[^\t\r\n -~]", line):
        what = f"byte 0x{strange[0][0]:02x} at place {strange.start() + 1}"
        raise _malformed(
            number,
            what,
            "plain text",
            "give a trace in the Standard Workload Format; accents may stand in comments only",
        )
    if len(words) < len(COLUMNS):
        raise _malformed(
            number, f"{len(words)} columns", "18", "fill the columns that are unknown with -1"
        )
    if len(words) > len(COLUMNS):
        # Never cut without a message: two lines run together by a lost newline look the same, and
        # a job would be gone.
        raise _malformed(
            number, f"{len(words)} columns", "18", "keep the first 18: awk '/^;/ || NF=18'"
        )
    return SwfJob(
        *(
            _number(word.decode("ascii"), name, number)
            for word, name in zip(words, COLUMNS, strict=True)
        )
    )


def _number(word: str, name: str, number: int) -> int:
    match = re.fullmatch(r"(-?)(\d+)(?:\.(\d*))?", word)
    if match is None or (match[3] is not None and name not in _MEASURED):
        expected = "a number" if name in _MEASURED else "a whole number"
        raise _malformed(number, f"{name} is {word[:40]!r}", expected, _CORRECT, name)
    if len(match[2]) > 20:
        raise _out_of_range(number, name, word[:20] + "...")
    whole = int(match[1] + match[2])
    return whole + 1 if not match[1] and (match[3] or "0")[0] >= "5" else whole


def _out_of_range(number: int, name: str, value: str) -> InvalidInput:
    return _malformed(
        number, f"{name} is {value}", f"-1 (unknown), or 0 to {LARGEST}", _CORRECT, name
    )


def _malformed(
    number: int, what: str, expected: str, remedy: str, field: str | None = None
) -> InvalidInput:
    return InvalidInput(f"line {number}: {what}, expected {expected}", field=field, remedy=remedy)
