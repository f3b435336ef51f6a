"""Arrays of jobs: one record stands for all tasks that have not started (slurm-rules.md, "Arrays").

A task gets a job id of its own when it starts; the last one keeps the id of the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import ArrayTasks, parse_ranges
from fairbank.scheduling.pending_job import PendingJob

TASK_STEP = 1 << 32
"""A task without a job id gets that of its record plus this many times its position."""

_JOB = re.compile(r"(\d{1,10})(?:_(?:(\d{1,7})|\[([^][%]+)(?:%\d{1,7})?\]))?", re.ASCII)


class JobSelection(NamedTuple):
    """Job that a request names: all of it, or some tasks of an array."""

    number: int
    tasks: tuple[int, ...] | None = None


def parse_selection(text: str) -> JobSelection:
    """Parse `7`, `7_4` or `7_[1-3,8]`.

    Raises:
        InvalidInput: the text has another form.
    """
    match = _JOB.fullmatch(text)
    ranges = parse_ranges(match[2] or match[3]) if match and (match[2] or match[3]) else ()
    if match is None or ranges is None:
        raise InvalidInput(
            f"{text[:40]!a} is not a job", field="job", remedy="write 7, 7_4 or 7_[1-3,8]"
        )
    return JobSelection(int(match[1]), ArrayTasks(ranges).numbers if ranges else None)


def task_ranges(numbers: Sequence[int]) -> tuple[range, ...]:
    """Return ascending numbers as ranges: one with a step if all distances are equal, else runs."""
    distances = {after - before for before, after in pairwise(numbers)}
    if len(numbers) > 2 and len(distances) == 1:
        return (range(numbers[0], numbers[-1] + 1, distances.pop()),)
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return tuple(runs)


def record_name(array: int, tasks: Sequence[int], throttle: int | None = None) -> str:
    """Return the name of the tasks that have not started, as squeue shows it: `7_[4-9%2]`.

    Args:
        array: job id of the array.
        tasks: numbers of the tasks, ascending.
        throttle: number of tasks that may run at once; None: any number.
    """
    return f"{array}_[{ArrayTasks(task_ranges(tasks), throttle)}]"


def queued_tasks(job: PendingJob, tasks: Sequence[int]) -> Iterator[PendingJob]:
    """Yield the record as one job for each task, with a number that `record_number` reads.

    Args:
        job: the record. Its tasks have its priority.
        tasks: numbers of the tasks that have not started, ascending.
    """
    for position, task in enumerate(tasks):
        number = job.number + position * TASK_STEP
        yield msgspec.structs.replace(job, number=number, task=task)


def record_number(number: int) -> int:
    """Return the job id of the record to which the number of a queued task belongs."""
    return number % TASK_STEP
