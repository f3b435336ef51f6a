"""priority/basic: first come, first served (facts, section 4.4)."""

from __future__ import annotations

from fairbank.core.slurm_numbers import PRIORITY_MAX

FIRST = 0xFFFF0000 - 1
"""The priority of the first job of all."""


def next_priority(lowest: int | None, nice: int = 0) -> int:
    """The priority of a job that comes now: one less than `lowest`, the lowest that any got so far, minus its nice value; 1 at least."""
    before = FIRST if lowest is None else max(lowest - 1, 1)
    return min(max(before - nice, 1), PRIORITY_MAX)
