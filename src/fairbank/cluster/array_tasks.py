"""Tasks of a job array, as sbatch's --array and slurmctld write them."""

from __future__ import annotations

import re

from fairbank.core.errors import InvalidInput

TASKS_MAX = 4_000_000
"""Slurm's own limit of MaxArraySize."""
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", re.ASCII)


def parse_array(text: str, *, field: str, remedy: str) -> list[range]:
    """Parse `1-5,7,10-20:2%3`, whose end limits the tasks that run at once.

    Raises:
        InvalidInput: the text is invalid or has too many tasks; the error names `field`.
    """
    parts: list[range] = []
    tasks, has_throttle, throttle = text.partition("%")
    for part in tasks.split(","):
        match = _PART.fullmatch(part) if throttle.isdecimal() or not has_throttle else None
        first, last, step = map(int, match.groups(default="0")) if match else (0, 0, 0)
        if match is None or (match[3] and not step) or (match[2] and last < first):
            raise InvalidInput(
                f"{text[:40]!a} are no tasks of an array", field=field, remedy=remedy
            )
        parts.append(range(first, (last if match[2] else first) + 1, step or 1))
    if sum(map(len, parts)) > TASKS_MAX:
        raise InvalidInput(f"{text[:40]!a} are too many tasks", field=field, remedy=remedy)
    return parts
