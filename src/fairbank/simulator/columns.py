"""Who started when, as columns: whatever adds up jobs by the thousand does so much faster than job by job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.simulator.clock import Moment
from fairbank.simulator.jobs import Job


class Columns(NamedTuple):
    """The jobs that started, in the order in which they did; `at` is when, the others are columns of `Job`."""

    at: Sequence[int]
    numbers: Sequence[int]
    submitted: Sequence[int]
    processors: Sequence[int]
    runs: Sequence[int]
    names: Sequence[int]
    users: Sequence[int]
    groups: Sequence[int]


def in_columns(moments: Sequence[Moment]) -> Columns:
    """The columns of some moments: at least one, and at each somebody starts."""
    of = dict(
        zip(
            Job._fields,
            zip(*[job for _, starts in moments for job in starts], strict=True),
            strict=True,
        )
    )
    return Columns(
        at=[now for now, starts in moments for _ in starts],
        numbers=of["number"],
        submitted=of["submitted"],
        processors=of["processors"],
        runs=of["run"],
        names=of["name"],
        users=of["user"],
        groups=of["group"],
    )
