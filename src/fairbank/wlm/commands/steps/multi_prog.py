"""Programs of single tasks (--multi-prog), from a file of lines `RANKS PROGRAM ARGUMENTS`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.values import COUNT_MAX

_BYTES_MAX = 1024 * 1024
ALL_OTHERS = "*"


def read_programs(path: str, tasks: int) -> dict[int, Sequence[str]]:
    """Return the program and arguments of each rank.

    `%t` in an argument is the rank, `%o` its place among the ranks of its line.

    Args:
        path: name of the file.
        tasks: number of tasks.

    Raises:
        InvalidInput: the file cannot be read, has a bad line, or no line for a rank.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_BYTES_MAX)
    except OSError as error:
        raise InvalidInput(
            f"{path}: {error.strerror}", field="--multi-prog", remedy="name a file of programs"
        ) from error
    programs: dict[int, Sequence[str]] = {}
    for number, line in enumerate(text.replace("\\\n", " ").split("\n"), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise _bad_line(path, number, str(error)) from error
        if not words:
            continue
        if len(words) < 2:
            raise _bad_line(path, number, "there is no program")
        if words[0] == ALL_OTHERS:
            ranks = [rank for rank in range(tasks) if rank not in programs]
        else:
            ranks = _ranks(path, number, words[0])
        for place, rank in enumerate(ranks):
            if rank in programs:
                raise _bad_line(path, number, f"task {rank} has a program already")
            programs[rank] = [
                word.replace("%t", str(rank)).replace("%o", str(place)) for word in words[1:]
            ]
    missing = next((rank for rank in range(tasks) if rank not in programs), None)
    if missing is not None:
        raise InvalidInput(
            f"{path} has no program for task {missing}",
            field="--multi-prog",
            remedy=f"add a line for it, or one that begins with {ALL_OTHERS}",
        )
    return {rank: programs[rank] for rank in range(tasks)}


def _ranks(path: str, number: int, text: str) -> list[int]:
    ranks: list[int] = []
    for part in text.split(","):
        first, is_range, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not is_range)):
            raise _bad_line(path, number, f"{part[:40]!a} is no task or range of tasks")
        begin, end = int(first[:10]), int((last or first)[:10])
        if end > COUNT_MAX or end - begin > _BYTES_MAX:
            raise _bad_line(path, number, f"{part[:40]!a} are too many tasks")
        ranks += range(begin, end + 1)
    return ranks


def _bad_line(path: str, number: int, what: str) -> InvalidInput:
    return InvalidInput(
        f"{path}, line {number}: {what}",
        field="--multi-prog",
        remedy="write lines such as: 0-2,4 PROGRAM ARGUMENTS",
    )
