"""Cost of running jobs per second, in the doubles that Slurm has (slurm-rules.md, "Billing").

Weights, their suffixes and the rule by which TRES compete are those of `core.tres`, where the bank
prices with exact fractions. Here the same weights are doubles, summed in the order of Slurm's TRES
ids, so that the result is equal to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, BillingRule, Weights, is_max_candidate
from fairbank.priority.fairshare.columns import Doubles, Ints

Wholes = npt.NDArray[np.uint64]

NO_CONSUME = 2**64 - 2
"""Count of a TRES that a job has without using it up."""

_TOO_MUCH: int = 10**300


class BillingPrices(NamedTuple):
    """TRES in Slurm's order, the weight of each in each partition [partitions, TRES], and the rule
    that combines them.
    """

    names: tuple[str, ...]
    weights: Doubles
    adding: BillingRule


def prices(
    names: Sequence[str], partitions: Sequence[Weights | None], adding: BillingRule
) -> BillingPrices:
    """Return the weights of each partition as Slurm's doubles. A partition without weights bills
    CPUs.

    A suffix only divides by powers of two, so one rounding of the exact weight gives what reading
    and dividing doubles gives. Raises InvalidInput for a weight whose TRES is not in `names`, and
    for one beyond the doubles.
    """
    table = np.zeros((len(partitions), len(names)))
    column = {name: place for place, name in enumerate(names)}
    for row, weights in enumerate(partitions):
        for name, weight in (weights or BY_CPU).items():
            if name not in column:
                raise InvalidInput(
                    f"partition row {row} has a weight for {name}, which the cluster does not"
                    " count",
                    field="TRESBillingWeights",
                    remedy=f"add it to AccountingStorageTRES; counted are {', '.join(names)}",
                )
            table[row, column[name]] = _double(weight, row, name)
    return BillingPrices(tuple(names), table, adding)


def _double(weight: Fraction | float, row: int, name: str) -> float:
    double = float(weight) if weight < _TOO_MUCH else math.nan
    if not double >= 0:
        raise InvalidInput(
            f"partition row {row}: {weight!s:.40} is no weight for {name}",
            field="TRESBillingWeights",
            remedy="a number from 0 to 10 to the power of 300",
        )
    return double


def billable(counts: Wholes, partition: Ints, table: BillingPrices) -> Doubles:
    """Return the billing units of each job, never below 0.

    Slurm keeps this double with the job and charges raw usage by it. It shows and limits `whole` of
    it.

    Args:
        counts: TRES of each job [jobs, TRES].
        partition: row of the prices for each job.
        table: prices of the partitions.
    """
    competing, others = np.zeros(len(counts)), np.zeros(len(counts))
    for place, name in enumerate(table.names):
        if name == "billing":
            continue
        held = counts[:, place]
        weighted = np.where(
            held == np.uint64(NO_CONSUME),
            0.0,
            held.astype(np.float64) * table.weights[partition, place],
        )
        if is_max_candidate(name, table.adding):
            np.maximum(competing, weighted, out=competing)
        else:
            others += weighted
    total: Doubles = competing + others
    return total


def allocated(counts: Wholes, units: Doubles, names: Sequence[str]) -> Wholes:
    """Return the counts [jobs, TRES] that usage and limits use: billing as whole units, without
    energy and TRES that are not used up.

    Raises InvalidInput as `whole` does.
    """
    found = np.where(counts == np.uint64(NO_CONSUME), np.uint64(0), counts)
    for place, name in enumerate(names):
        if name == "energy":
            found[:, place] = 0
        elif name == "billing":
            found[:, place] = whole(units)
    return found


def whole(units: Doubles) -> Wholes:
    """Return the billing TRES: the units, truncated. Raises InvalidInput, naming the row, for what
    64 bits do not hold.
    """
    wrong = np.flatnonzero(~((units >= 0) & (units < 2.0**64)))
    if wrong.size:
        raise InvalidInput(
            f"row {wrong[0]} bills {units[wrong[0]]} units, which is no 64-bit count",
            field="billing",
            remedy="use smaller weights",
        )
    return units.astype(np.uint64)
