"""Usage of associations and QOS: raw usage, TRES and wall time (slurm-rules.md, "Usage").

Slurm keeps usage in C's long double, and so does this module (`columns`). Rows are associations or
QOS; QOS have no parents. The tables are large, so functions that say that they change the usage do
(`add`); all others return new arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long, Longs
from fairbank.priority.fairshare.tree import DEPTH_MAX


class DecayedUsage(NamedTuple):
    """Usage of each row.

    `raw`: billing-seconds by the billable double, which fair share reads. `tres`: seconds of each
    TRES, billing by its whole count, which GrpTRESMins limits. `wall`: seconds that jobs ran.
    """

    raw: Longs
    tres: Longs
    wall: Doubles


class Costs(NamedTuple):
    """Cost of jobs, to add to each figure of the rows that pay; a row for each job."""

    raw: Doubles
    wall: Doubles
    tres: Longs


def nothing_used(rows: int, tres: int) -> DecayedUsage:
    """Return zero usage of `rows` associations or QOS and `tres` TRES."""
    wide = np.zeros(rows, Long), np.zeros((rows, tres), Long)
    return DecayedUsage(*wide, np.zeros(rows))


def copy_usage(usage: DecayedUsage) -> DecayedUsage:
    """Return a copy."""
    return DecayedUsage(usage.raw.copy(), usage.tres.copy(), usage.wall.copy())


def decay_usage(usage: DecayedUsage, remaining: float, spared: Bools | None = None) -> DecayedUsage:
    """Return decayed usage.

    Args:
        usage: usage before; it stays as it is.
        remaining: part that is left, from 0 to 1.
        spared: rows that keep their usage (QOS with NoDecay); None: there are none.
    """
    if remaining == 1:
        return copy_usage(usage)
    left = remaining if spared is None else np.where(spared, 1.0, remaining)
    by_row = left if isinstance(left, float) else left[:, None]
    return DecayedUsage(usage.raw * left, usage.tres * by_row, usage.wall * left)


class ChargeRows(NamedTuple):
    """Pairs of job and row: job `job[i]` is charged to row `row[i]`. Jobs are in order, each with
    its rows up to the root.
    """

    job: Ints
    row: Ints

    def only(self, which: Bools) -> ChargeRows:
        """Return some of the pairs."""
        return ChargeRows(self.job[which], self.row[which])


def lines(rows: Ints, parent: Ints | None = None) -> ChargeRows:
    """Return the own row of each job (-1: none) and, by `parent`, every row above it.

    Raises InvalidInput, naming the row, for parents that do not lead to a root. `parent`: the row
    of each row's parent, -1 for the root.
    """
    climbed = [rows]
    while (
        parent is not None
        and ((above := np.where(climbed[-1] >= 0, parent[climbed[-1]], -1)) >= 0).any()
    ):
        climbed.append(above)
        if len(climbed) > DEPTH_MAX + 1:  # the row itself is the first
            lost = rows[np.flatnonzero(above >= 0)[0]]
            raise InvalidInput(
                f"row {lost}: {DEPTH_MAX} parents above it and no root",
                field="parent",
                remedy="correct the parents, which form a circle",
            )
    table = np.stack(climbed, axis=1)
    return ChargeRows(np.nonzero(table >= 0)[0], table[table >= 0])


def add(usage: DecayedUsage, to: ChargeRows, costs: Costs, *, limits: bool) -> None:
    """Add the costs of jobs to `usage`, in place.

    Args:
        usage: usage to change.
        to: pairs of job and row.
        costs: cost of each job.
        limits: limits are enforced. Otherwise TRES are not counted, as in Slurm.
    """
    # In the order of the jobs, as in Slurm: sums differ in the last bit.
    np.add.at(usage.raw, to.row, costs.raw[to.job].astype(Long))
    np.add.at(usage.wall, to.row, costs.wall[to.job])
    if limits:
        np.add.at(
            usage.tres.reshape(-1),
            cells(to.row, usage.tres.shape[1]),
            costs.tres[to.job].reshape(-1),
        )


def cells(rows: Ints, columns: int) -> Ints:
    """Return the cells of `rows` in a flat table. Adding by cells takes half the time of rows."""
    cells: Ints = (rows[:, None] * columns + np.arange(columns)).reshape(-1)
    return cells
