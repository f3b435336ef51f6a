"""File patterns: paths of a job's input and output, with symbols such as %j for the job id.

Source: sbatch(1), "filename pattern".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NO_VAL

OUTPUT, ARRAY_OUTPUT = "slurm-%j.out", "slurm-%A_%a.out"
"""Patterns of the output of a job, and of a task of an array, that names none."""

WIDTH_MAX = 10
_SYMBOL = re.compile(r"%([0-9]{0,9})([%AabJjNnstux])")
Symbols = dict[str, int | str]


def job_symbols(job: int, user: str, name: str, array: int | None, task: int | None) -> Symbols:
    """Return the values that a job has for the symbols of its files and those of its steps.

    `array` None: it is no task of an array. `task` None: the number of the task is not known yet.
    """
    symbols: Symbols = {"A": array or job, "j": job, "u": user, "x": name}
    if array is None:
        return symbols | {"a": NO_VAL}
    return symbols if task is None else symbols | {"a": task}


def task_symbols(
    job: int, step: int | None = None, node: str = "", node_index: int = 0, rank: int = 0
) -> Symbols:
    """Return the values of the other symbols, for a task of a step or, without one, the script."""
    return {
        "J": job if step is None else f"{job}.{step}",
        "N": node.partition(".")[0],
        "n": node_index,
        "s": "batch" if step is None else step,
        "t": rank,
    }


def expand_pattern(pattern: str, values: Mapping[str, int | str], *, field: str) -> str:
    """Return the path that a pattern stands for.

    A number between the sign and the letter fills whole numbers up with zeros. A pattern with a
    backslash is a path without symbols, from which the backslashes are removed.

    Args:
        pattern: such as `out/%x-%4j.txt`.
        values: by letter: A and a of an array, J job and step, j job, N and n name and number of
            the node, s step, t task, u user, x name of the job. Symbols without a value stay as
            they are; b is the last digit of a.
        field: name of the option for the error.

    Raises:
        InvalidInput: a value has a slash, so that the file would be in another directory.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    by_letter: dict[str, int | str] = {"%": "%", **values}
    if "a" in by_letter:
        by_letter["b"] = int(by_letter["a"]) % 10

    def symbol(match: re.Match[str]) -> str:
        width, letter = match.groups()
        value = by_letter.get(letter, match[0])
        if isinstance(value, int):
            return f"{value:0{min(int(width or 0), WIDTH_MAX)}}"
        if "/" in value:
            raise InvalidInput(
                f"%{letter} stands for {value[:40]!a}, which has a slash",
                field=field,
                remedy=f"write a path without %{letter}, or choose another name",
            )
        return value

    return _SYMBOL.sub(symbol, pattern)
