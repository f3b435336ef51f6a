"""Array expressions: the task numbers of `sbatch --array`, and how many of them run at once."""

from __future__ import annotations

import re
from itertools import chain
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import TASKS_MAX

_BRACKETS = re.compile(r"\[([^][]+)\](%\d{1,10})?", re.ASCII)
_FORM = re.compile(r"([^][%]+)(?:%(\d{1,10}))?", re.ASCII)
_PART = re.compile(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", re.ASCII)
_REMEDY = "write numbers and ranges, such as 1,5-8, 0-15:4 or 1-100%10"


class ArrayTasks(NamedTuple):
    """Tasks of an array, as ranges of their numbers; at most `throttle` of them run at once."""

    ranges: tuple[range, ...]
    throttle: int | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Number of each task once, ascending."""
        return tuple(sorted(set(chain.from_iterable(self.ranges))))

    def __str__(self) -> str:
        """Return the expression, which `parse_array` reads as the same tasks."""
        tasks = ",".join(map(_range_text, self.ranges))
        return tasks if self.throttle is None else f"{tasks}%{self.throttle}"


def parse_array(text: str, *, field: str, remedy: str = _REMEDY) -> ArrayTasks:
    """Parse `1-5,7,10-20:2%3`; brackets around it or its tasks are allowed.

    Raises InvalidInput, with this remedy, if the text is invalid or has too many tasks.
    """
    bracketed = _BRACKETS.fullmatch(text)
    match = _FORM.fullmatch(bracketed[1] + (bracketed[2] or "") if bracketed else text)
    ranges = parse_ranges(match[1]) if match else None
    if match is None or ranges is None:
        raise InvalidInput(f"{text[:40]!a} are no tasks of an array", field=field, remedy=remedy)
    if sum(map(len, ranges)) > TASKS_MAX:
        raise InvalidInput(f"{text[:40]!a} are too many tasks", field=field, remedy=remedy)
    return ArrayTasks(ranges, int(match[2]) if match[2] else None)


def parse_ranges(text: str) -> tuple[range, ...] | None:
    """Return numbers and ranges such as `1,5-8,10-20:2`; None if the text is something else."""
    ranges = [_range(part) for part in text.split(",")]
    known = tuple(part for part in ranges if part is not None)
    return known if len(known) == len(ranges) else None


def _range(text: str) -> range | None:
    match = _PART.fullmatch(text)
    first, last, step = map(int, match.groups(default="0")) if match else (0, 0, 0)
    if match is None or (match[3] and not step) or (match[2] and last < first):
        return None
    return range(first, (last if match[2] else first) + 1, step or 1)


def _range_text(numbers: range) -> str:
    if len(numbers) == 1:
        return f"{numbers[0]}"
    step = f":{numbers.step}" if numbers.step > 1 else ""
    return f"{numbers[0]}-{numbers[-1]}{step}"
