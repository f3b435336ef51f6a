"""Jobs of a trace as a schedule depends on them. Omitted jobs and corrections are counted."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.snapshot import new_tuple
from fairbank.simulator.traces.fast_reader import FastLine, FastTrace, SeenNumbers
from fairbank.simulator.traces.header import PROCESSORS_MAX


class TraceJob(NamedTuple):
    """Job of the simulation. Only the clock knows `run`: a policy uses `limit`, which is never
    less, because no job is killed.

    Seconds count from the start of the trace. `number` is its position in the queue, by submit
    time, then by line; `name` is its number in the trace. An unknown user or group is -1.
    """

    number: int
    submitted: int
    processors: int
    limit: int
    run: int
    partition: int
    name: int
    user: int
    group: int


class OmittedJob(Enum):
    """Reason why a line of the trace is no job of the simulation."""

    PART = "part of a run that has a line of its own"
    NEVER_RAN = "never ran, or for an unknown time"
    NO_SIZE = "no number of processors"
    TOO_WIDE = "more processors than the machine has"


class Correction(Enum):
    """Value of the trace that is simulated otherwise than written."""

    NO_TIME = "ran for 0 s: simulated as 1 s"
    NO_LIMIT = "without a time limit: the time taken counts as one"
    OVER_LIMIT = "ran longer than the limit: the time taken counts as one"
    SAME_NUMBER = "had the number of an earlier one: simulated all the same"


class Workload:
    """Jobs, read lazily and once. Afterwards the numbers of omitted jobs in the trace, and the
    number of each correction.

    `distinct`: no two jobs have the same number, as the tasks of an array do.
    """

    def __init__(
        self, skimmed: Iterator[FastLine], processors: int, *, distinct: bool = True
    ) -> None:
        self.omitted: dict[OmittedJob, list[int]] = {}
        self.corrections: dict[Correction, int] = dict.fromkeys(Correction, 0)
        self.lines = 0
        self._skimmed, self._size, self._distinct = skimmed, processors, distinct

    def __iter__(self) -> Iterator[TraceJob]:
        """Yield the jobs in the order of the queue. Raises InvalidInput, with the line."""
        number, size = 0, self._size
        read, distinct = self.corrections, self._distinct
        seen, due = SeenNumbers(), 0
        for line in self._skimmed:
            self.lines += 1
            name, submitted, run, allocated, requested, limit, status, user, group, partition = line
            processors = requested if requested > 0 else allocated
            if run < 0 or not 0 < processors <= size or 2 <= status <= 4:
                self.omitted.setdefault(_omission(run, processors, status), []).append(name)
                continue
            if name == due:
                due += 1
            elif distinct:
                read[Correction.SAME_NUMBER] += seen.is_repeated(name, due)
                due = max(due, name + 1)
            if run == 0:
                run = 1
                read[Correction.NO_TIME] += 1
            if limit <= 0:
                limit = run
                read[Correction.NO_LIMIT] += 1
            elif run > limit:
                limit = run
                read[Correction.OVER_LIMIT] += 1
            yield new_tuple(
                TraceJob, (number, submitted, processors, limit, run, partition, name, user, group)
            )
            number += 1


def _omission(run: int, processors: int, status: int) -> OmittedJob:
    if 2 <= status <= 4:
        return OmittedJob.PART
    if run < 0:
        return OmittedJob.NEVER_RAN
    return OmittedJob.NO_SIZE if processors <= 0 else OmittedJob.TOO_WIDE


def size_of(trace: FastTrace, processors: int | None) -> int:
    """Return the number of processors: as given, else as the header says; if that has nodes only,
    one for each.

    Raises InvalidInput if it is unknown.
    """
    size = next(
        (
            count
            for count in (processors, trace.header.max_procs, trace.header.max_nodes)
            if count is not None
        ),
        None,
    )
    if size is None:
        if trace.names is not None:  # a log with names is no trace, and has no header
            raise InvalidInput(
                "accounting does not tell how many processors the machine has",
                field="procs",
                remedy="give the number: --procs N",
            )
        raise InvalidInput(
            "the header of the trace says neither MaxProcs nor MaxNodes",
            field="procs",
            remedy="give the number: --procs N",
        )
    if not 0 < size <= PROCESSORS_MAX:
        raise InvalidInput(
            f"a machine of {size} processors",
            field="procs",
            remedy=f"give a number from 1 to {PROCESSORS_MAX}",
        )
    return size
