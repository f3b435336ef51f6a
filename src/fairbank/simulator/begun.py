"""Who started when, as columns: whatever adds up jobs by the thousand does so much faster than job by job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.simulator.clock import Moment

MOMENTS = 256
"""So many are put into columns together: enough to be fast, and few enough to be no weight in memory."""


class Begun(NamedTuple):
    """The jobs that started, in the order in which they did; `at` is when, the others are columns of `Job`."""

    at: Sequence[int]
    numbers: Sequence[int]
    submitted: Sequence[int]
    processors: Sequence[int]
    runs: Sequence[int]
    names: Sequence[int]
    users: Sequence[int]


def begun(moments: Sequence[Moment]) -> Begun:
    """The columns of some moments: at least one, and at each somebody starts."""
    at = [now for now, starts in moments for _ in starts]
    numbers, submitted, processors, _, runs, _, names, users, _ = zip(*[job for _, starts in moments for job in starts], strict=True)
    return Begun(at, numbers, submitted, processors, runs, names, users)
