"""The first of many, without sorting them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbank.priority.multifactor.pending import Indexes

Column = npt.NDArray[Any]


def best(priorities: Column, count: int, *ties: Column) -> Indexes:
    """The rows of the `count` highest priorities, the highest first. Among equals the lowest of the first of `ties` goes first, then
    of the next one, and at last the lowest row: Slurm has submit time, then job id (facts, section 5.2)."""
    lower_first = (_turned(priorities), *ties)
    chosen = _among(lower_first, min(count, len(priorities)))
    order = np.lexsort((chosen, *(column[chosen] for column in reversed(lower_first))))
    return chosen[order]


def _turned(column: Column) -> Column:
    """The lowest is what was the highest."""
    return ~column if column.dtype.kind == "u" else -column


def _among(columns: tuple[Column, ...], count: int) -> Indexes:
    """Rows of the `count` lowest, in no order: by each column in turn among those that the ones before it leave equal."""
    sure: list[Indexes] = []
    rows: Indexes | None = None
    for column in columns:
        values = column if rows is None else column[rows]
        if count in (0, len(values)):
            break
        edge = np.partition(values, count - 1)[count - 1]
        below, level = (np.flatnonzero(which) for which in (values < edge, values == edge))
        sure.append(below if rows is None else rows[below])
        rows = level if rows is None else rows[level]
        count -= len(below)
    rest = np.arange(len(columns[0])) if rows is None else rows
    return np.concatenate([*sure, rest[:count]])
