"""Schedules of several policies as one CSV table: a line for each job under each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fairbank.report.cells import csv_line

LINES = 4_096


class JobRow(NamedTuple):
    """A job that ran. Times are seconds of the trace. A user or group that nobody knows is empty."""

    job: int
    user: str
    group: str
    submitted: int
    started: int
    ended: int
    processors: int


HEADS = ("policy", *JobRow._fields, "wait_seconds")


def schedules_csv(schedules: Iterable[tuple[str, Iterable[JobRow]]]) -> Iterator[str]:
    """The heads, then the jobs of each policy in the order in which they are given. Many lines at a time."""
    yield csv_line(HEADS) + "\n"
    for policy, rows in schedules:
        lines: list[str] = []
        for row in rows:
            lines.append(
                csv_line((policy, *map(str, row), str(row.started - row.submitted))) + "\n"
            )
            if len(lines) == LINES:
                yield "".join(lines)
                lines.clear()
        yield "".join(lines)
