"""All jobs of a schedule in the order of the queue, with times and processors."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from fairbank.simulator.results.starts import StartColumns


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
