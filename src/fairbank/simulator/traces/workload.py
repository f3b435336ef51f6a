"""What is simulated of a trace: its jobs, as a schedule depends on them. Whatever is left out or read otherwise is counted."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.types import new_tuple
from fairbank.simulator.traces.fast_reader import FastTrace, Skimmed
from fairbank.simulator.traces.user_numbers import SeenNumbers

PROCESSORS_MAX = 1 << 31


class TraceJob(NamedTuple):
    """A job of the simulation. Only the clock knows `run`: a policy goes by `limit`, which is never less, since nobody is killed.

    Seconds count from the start of the trace. `number` is its place in the queue, by submit time, then by line; `name` is its number
    in the trace. A user or group that is unknown is -1.
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
    """Why a line of the trace is no job of the simulation."""

    PART = "part of a run that has a line of its own"
    NEVER_RAN = "never ran, or nobody knows for how long"
    NO_SIZE = "no number of processors"
    TOO_WIDE = "more processors than the machine has"


class Read(Enum):
    """What the trace says of a job that is simulated, and how it is read."""

    NO_TIME = "ran for 0 s: simulated as 1 s"
    NO_LIMIT = "told no limit: the time taken counts as one"
    OVER_LIMIT = "ran longer than the limit: the time taken counts as one"
    SAME_NUMBER = "had the number of an earlier one: simulated all the same"


class Workload:
    """The jobs, read once as they are asked for; and then who was left out, by their numbers in the trace, and how many were read how.
    `distinct`: no number is meant to stand for two jobs, as it is for the tasks of an array."""

    def __init__(
        self, skimmed: Iterator[Skimmed], processors: int, *, distinct: bool = True
    ) -> None:
        self.left: dict[OmittedJob, list[int]] = {}
        self.read: dict[Read, int] = dict.fromkeys(Read, 0)
        self.lines = 0
        self._skimmed, self._size, self._distinct = skimmed, processors, distinct

    def __iter__(self) -> Iterator[TraceJob]:
        """The jobs in the order of the queue. Raises InvalidInput, with the line, for a trace that cannot be read."""
        number, size = 0, self._size
        read, distinct = self.read, self._distinct
        seen, due = SeenNumbers(), 0
        for line in self._skimmed:
            self.lines += 1
            name, submitted, run, allocated, requested, limit, status, user, group, partition = line
            processors = requested if requested > 0 else allocated
            if run < 0 or not 0 < processors <= size or 2 <= status <= 4:
                self.left.setdefault(_why(run, processors, status), []).append(name)
                continue
            if name == due:
                due += 1
            elif distinct:
                read[Read.SAME_NUMBER] += seen.again(name, due)
                due = max(due, name + 1)
            if run == 0:
                run = 1
                read[Read.NO_TIME] += 1
            if limit <= 0:
                limit = run
                read[Read.NO_LIMIT] += 1
            elif run > limit:
                limit = run
                read[Read.OVER_LIMIT] += 1
            yield new_tuple(
                TraceJob, (number, submitted, processors, limit, run, partition, name, user, group)
            )
            number += 1


def _why(run: int, processors: int, status: int) -> OmittedJob:
    if 2 <= status <= 4:
        return OmittedJob.PART
    if run < 0:
        return OmittedJob.NEVER_RAN
    return OmittedJob.NO_SIZE if processors <= 0 else OmittedJob.TOO_WIDE


def size_of(trace: FastTrace, processors: int | None) -> int:
    """How many processors the machine has: as many as asked for, else as the header says; where it tells nodes only, one in each.

    Raises InvalidInput where nobody says.
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
        if trace.people is not None:  # a log with names is no trace, and has no header
            raise InvalidInput(
                "accounting does not tell how many processors the machine has",
                field="procs",
                remedy="say how many: --procs N",
            )
        raise InvalidInput(
            "the header of the trace says neither MaxProcs nor MaxNodes",
            field="procs",
            remedy="say how many: --procs N",
        )
    if not 0 < size <= PROCESSORS_MAX:
        raise InvalidInput(
            f"a machine of {size} processors",
            field="procs",
            remedy=f"give a number from 1 to {PROCESSORS_MAX}",
        )
    return size
