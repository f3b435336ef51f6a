"""Starts of jobs as columns, which sum thousands of jobs much faster than one by one."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts
from fairbank.simulator.traces.workload import TraceJob


class StartColumns(NamedTuple):
    """Started jobs, in the order of their starts `at`. The other columns are those of
    `TraceJob`.
    """

    at: Sequence[int]
    numbers: Sequence[int]
    submitted: Sequence[int]
    processors: Sequence[int]
    runs: Sequence[int]
    names: Sequence[int]
    users: Sequence[int]
    groups: Sequence[int]


def in_columns(job_starts: Sequence[JobStarts]) -> StartColumns:
    """Return the columns of some start times, at least one."""
    of = dict(
        zip(
            TraceJob._fields,
            zip(*[job for _, starts in job_starts for job in starts], strict=True),
            strict=True,
        )
    )
    return StartColumns(
        at=[now for now, starts in job_starts for _ in starts],
        numbers=of["number"],
        submitted=of["submitted"],
        processors=of["processors"],
        runs=of["run"],
        names=of["name"],
        users=of["user"],
        groups=of["group"],
    )


LINES = 4_096


class ScheduleStarts:
    """Starts of all jobs, 24 bytes each."""

    def __init__(self) -> None:
        self._numbers, self._names, self._at = array("q"), array("q"), array("q")

    def take(self, started: StartColumns) -> None:
        self._numbers.extend(started.numbers)
        self._names.extend(started.names)
        self._at.extend(started.at)

    def text(self) -> Iterator[str]:
        """Yield lines `job start`, many at a time: the number in the trace, and seconds of the
        trace.
        """
        names, at = self._names, self._at
        order = sorted(range(len(names)), key=self._numbers.__getitem__)
        for begin in range(0, len(order), LINES):
            yield "".join(
                [f"{names[place]} {at[place]}\n" for place in order[begin : begin + LINES]]
            )

    def fingerprint(self) -> str:
        """Return the SHA-256 of the text. Equal schedules have equal ones."""
        # Imported here: it loads OpenSSL, which most simulations do not need.
        from hashlib import sha256  # noqa: PLC0415

        digest = sha256()
        for lines in self.text():
            digest.update(lines.encode("ascii"))
        return digest.hexdigest()


class JobRun(NamedTuple):
    """Job that ran, by its number in the trace, in seconds of the trace. An unknown user or group
    is -1.
    """

    job: int
    user: int
    group: int
    submitted: int
    started: int
    ended: int
    processors: int


class JobRuns:
    """All started jobs, 64 bytes each."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._columns = tuple(array("q") for _ in JobRun._fields)

    def take(self, started: StartColumns) -> None:
        ended = [at + run for at, run in zip(started.at, started.runs, strict=True)]
        told = (
            started.names,
            started.users,
            started.groups,
            started.submitted,
            started.at,
            ended,
            started.processors,
        )
        self._numbers.extend(started.numbers)
        for column, values in zip(self._columns, told, strict=True):
            column.extend(values)

    def __iter__(self) -> Iterator[JobRun]:
        """Yield the jobs by submit time, then by line of the trace."""
        columns = self._columns
        for place in sorted(range(len(self._numbers)), key=self._numbers.__getitem__):
            yield JobRun(*[column[place] for column in columns])
