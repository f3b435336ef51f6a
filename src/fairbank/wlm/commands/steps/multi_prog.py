"""Programs of single tasks (--multi-prog), from a file of lines `RANKS PROGRAM ARGUMENTS`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import STEP_TASKS_MAX

_BYTES_MAX = 1024 * 1024
ALL_OTHERS = "*"


def read_programs(path: str, tasks: int, *, is_fixed: bool) -> dict[int, Sequence[str]]:
    """Return the program and arguments of each rank.

    `%t` in an argument is the rank, `%o` its place among the ranks of its line; with `*` among all.

    Args:
        path: name of the file.
        tasks: number of tasks.
        is_fixed: it was requested; else a line of a higher rank raises it, as in Slurm.

    Raises:
        InvalidInput: the file cannot be read, has a bad line, or no line for a rank.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_BYTES_MAX)
    except OSError as error:
        raise InvalidInput(
            f"Could not open multi_prog config file {path}: {error.strerror}", field="program"
        ) from error
    programs: dict[int, Sequence[str]] = {}
    for number, line in enumerate(text.replace("\\\n", " ").split("\n"), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise _bad_line(path, number, str(error)) from error
        if not words:
            continue
        is_rest = words[0] == ALL_OTHERS
        if len(words) < 2:
            raise _bad_line(path, number, "there is no program")
        limit = tasks if is_fixed else max(tasks, STEP_TASKS_MAX)
        ranks = range(tasks) if is_rest else _ranks(path, number, words[0], limit)
        tasks = max([tasks, *(rank + 1 for rank in ranks)])
        is_fixed = is_fixed or is_rest
        for place, rank in enumerate(ranks):
            if rank in programs:
                if is_rest:
                    continue
                raise _bad_line(path, number, f"Duplicate record for task {rank}")
            programs[rank] = [
                word.replace("%t", str(rank)).replace("%o", str(place)) for word in words[1:]
            ]
    missing = next((rank for rank in range(tasks) if rank not in programs), None)
    if missing is not None:
        raise InvalidInput(
            f"Configuration file {path} invalid, no record for task id {missing}",
            field="program",
            remedy=f"add a line for it, or one that begins with {ALL_OTHERS}",
        )
    return {rank: programs[rank] for rank in range(tasks)}


def _ranks(path: str, number: int, text: str, tasks: int) -> Sequence[int]:
    ranks: list[int] = []
    for part in text.split(","):
        first, is_range, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not is_range)):
            raise _bad_line(path, number, f"Invalid task range specification ({part[:40]})")
        begin, end = int(first[:10]), int((last or first)[:10])
        if end >= tasks:
            raise _bad_line(path, number, f"Invalid task id, {end} >= ntasks")
        ranks += range(begin, end + 1)
    return ranks


def _bad_line(path: str, number: int, what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}\nLine {number} of configuration file {path} invalid",
        field="program",
        remedy="write lines such as: 0-2,4 PROGRAM ARGUMENTS",
    )
