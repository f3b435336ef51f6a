"""Pending jobs as columns, and the scale of their factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX, U32_MAX

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]
Numbers = npt.ArrayLike

NO_QOS = -1


class FactorScale(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Scale of the factors. Made by `scale`."""

    nodes: int
    """Active nodes of the cluster; Slurm 22.05 counts all that it has."""
    cpus: int
    association_max: float
    """Highest priority of an association."""
    partition_factors: Floats
    """PriorityJobFactor of each partition."""
    qos_priorities: Floats
    """Priority of each QOS, and a 0 at the end for jobs without one."""
    tres: tuple[str, ...]
    """TRES that count, in the order of Slurm's ids: sums of floats depend on it."""
    totals: Floats
    """Amount of each TRES (row) in each partition (column), or in the cluster."""


class PendingColumns(NamedTuple):
    """Columns with one row for each job. Made by `pending`, which checks them.

    `accrued_at`: time since when age accrues, 0 if it does not yet. `nodes` is the least number
    that the job takes. `cpus`: allocated or tested CPUs, else the most it takes, else the least.
    `limit_minutes`: the partition's if the job has none. `tres` has a row for each of the scale's:
    allocated, else requested.
    """

    accrued_at: Floats
    association: Floats
    fairshare: Floats
    nodes: Floats
    cpus: Floats
    limit_minutes: Floats
    nice: Floats
    site: Floats
    partition: Indexes
    qos: Indexes
    tres: Floats

    def rows(self, which: slice | Indexes) -> PendingColumns:
        """Return some of the jobs."""
        return PendingColumns._make(column[..., which] for column in self)


def scale(
    *,
    nodes: int,
    cpus: int,
    partition_factors: Sequence[int] = (1,),
    qos_priorities: Sequence[int] = (),
    association_max: int = 0,
    totals: Mapping[str, Numbers] | None = None,
) -> FactorScale:
    """Return the scale of a cluster. Raises InvalidInput.

    Args:
        nodes: active nodes.
        cpus: CPUs.
        partition_factors: PriorityJobFactor of each partition.
        qos_priorities: priority of each QOS.
        association_max: highest priority of an association.
        totals: amount of each TRES in each partition, by TRES in Slurm's order.
    """
    totals = totals or {}
    several = len(partition_factors)
    filled = [
        _column(f"totals[{name}]", amounts, several, 0.0, 2.0**64)
        for name, amounts in totals.items()
    ]
    return FactorScale(
        nodes=_whole("nodes", nodes),
        cpus=_whole("cpus", cpus),
        association_max=_whole("association_max", association_max),
        partition_factors=_column("partition_factors", partition_factors, several, 0, 65_535),
        qos_priorities=np.append(
            _column("qos_priorities", qos_priorities, len(qos_priorities), 0, U32_MAX), 0.0
        ),
        tres=tuple(totals),
        totals=np.array(filled, dtype=np.float64).reshape(len(totals), several),
    )


def pending(
    factor_scale: FactorScale,
    count: int,
    *,
    accrued_at: Numbers = 0,
    association: Numbers = 0,
    fairshare: Numbers = 0.0,
    nodes: Numbers = 1,
    cpus: Numbers = 1,
    limit_minutes: Numbers = 1,
    nice: Numbers = 0,
    site: Numbers = 0,
    partition: Numbers = 0,
    qos: Numbers = NO_QOS,
    tres: Mapping[str, Numbers] | None = None,
) -> PendingColumns:
    """Return `count` jobs. Each column is a value for each job, or one for all.

    Raises InvalidInput, naming the column and the row, for what Slurm does not hold: NaN, infinity,
    an unknown partition.

    Args:
        factor_scale: scale of the cluster.
        count: number of jobs.
    """
    tres = tres or {}
    if strange := [name for name in tres if name not in factor_scale.tres]:
        raise _wrong(
            "tres",
            f"{strange[0]} is not among the cluster's TRES",
            f"one of {', '.join(factor_scale.tres) or '(none)'}",
        )
    names, last = factor_scale.tres, len(factor_scale.partition_factors) - 1
    tres_columns = [
        _column(f"tres[{name}]", tres.get(name, 0), count, 0, 2.0**64) for name in names
    ]
    return PendingColumns(
        accrued_at=_column("accrued_at", accrued_at, count, 0, 2.0**53),
        association=_column("association", association, count, 0, factor_scale.association_max),
        fairshare=_column("fairshare", fairshare, count, 0, 1),
        nodes=_column("nodes", nodes, count, 0, U32_MAX),
        cpus=_column("cpus", cpus, count, 0, U32_MAX),
        limit_minutes=_column("limit_minutes", limit_minutes, count, 1, U32_MAX),
        nice=_column("nice", nice, count, -NICE_MAX, NICE_MAX),
        site=_column("site", site, count, -NICE_MAX, NICE_MAX),
        partition=_column("partition", partition, count, 0, last).astype(np.intp),
        qos=_column("qos", qos, count, NO_QOS, len(factor_scale.qos_priorities) - 2).astype(
            np.intp
        ),
        tres=np.array(tres_columns, dtype=np.float64).reshape(len(names), count),
    )


def _whole(field: str, value: int) -> int:
    if not 0 <= value <= U32_MAX or value % 1:
        raise _wrong(field, f"{value!r} is out of range", f"a whole number from 0 to {U32_MAX}")
    return value


def _column(field: str, numbers: Numbers, count: int, low: float, high: float) -> Floats:
    try:
        column = np.ascontiguousarray(
            np.broadcast_to(np.asarray(numbers, dtype=np.float64), (count,))
        )
    except (ValueError, TypeError, OverflowError) as bad:
        raise _wrong(
            field,
            f"this is not a column of {count} numbers",
            "give one number, or one for each row",
        ) from bad
    if count and not (column.min() >= low and column.max() <= high):  # NaN is in no range
        row = int(np.argmax(~((column >= low) & (column <= high))))
        raise _wrong(
            f"{field}[{row}]",
            f"{column[row]:.17g} is out of range",
            f"from {low:.17g} to {high:.17g}",
        )
    return column


def _wrong(field: str, message: str, remedy: str) -> InvalidInput:
    return InvalidInput(message, field=field, remedy=remedy)
