"""Billing units in doubles and the jobs that a tick charges, as Slurm computes them from its
records (slurm-rules.md, "Billing"): what the usage of a real slurmctld is compared with.

Weights, their suffixes and the rule by which TRES compete are those of `core.tres`, where the bank
prices with exact fractions. Here the same weights are doubles, summed in the order of Slurm's TRES
ids, so that the result is equal to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, BillingRule, Weights, is_max_candidate
from fairbank.priority.fairshare.columns import Doubles, Ints, Wholes

NO_CONSUME = 2**64 - 2
"""Count of a TRES that a job has without using it up."""

_TOO_MUCH: int = 10**300


class BillingPrices(NamedTuple):
    """TRES in Slurm's order, weights [partitions, TRES], and the rule that combines them."""

    names: tuple[str, ...]
    weights: Doubles
    adding: BillingRule


def prices(
    names: Sequence[str], partitions: Sequence[Weights | None], adding: BillingRule
) -> BillingPrices:
    """Return the weights of each partition as Slurm's doubles.

    A suffix only divides by powers of two, so one rounding of the exact weight gives what reading
    and dividing doubles gives.

    Args:
        names: TRES that the cluster counts, in the order of Slurm's ids.
        partitions: weights of each partition; None bills CPUs.
        adding: rule that combines the weighted TRES.

    Raises:
        InvalidInput: a weight is of a TRES that is not in `names`, or beyond the doubles.
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
            f"partition row {row}: {weight!s:.40} is not a weight for {name}",
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


def limit_counts(counts: Wholes, units: Doubles, names: Sequence[str]) -> Wholes:
    """Return the counts [jobs, TRES] that usage and limits use: without energy and TRES that are
    not used up.

    Args:
        counts: counts [jobs, TRES] as Slurm allocated them.
        units: billing units of each job; truncated, they are the counts of billing.
        names: TRES of the columns.

    Raises:
        InvalidInput: a job has billing units beyond 64 bits.
    """
    limited = np.where(counts == np.uint64(NO_CONSUME), np.uint64(0), counts)
    for place, name in enumerate(names):
        if name == "energy":
            limited[:, place] = 0
        elif name == "billing":
            limited[:, place] = whole(units)
    return limited


def whole(units: Doubles) -> Wholes:
    """Return the units, truncated. Raises InvalidInput, naming the row, above 64 bits."""
    wrong = np.flatnonzero(~((units >= 0) & (units < 2.0**64)))
    if wrong.size:
        raise InvalidInput(
            f"row {wrong[0]} bills {units[wrong[0]]} units, which is no 64-bit count",
            field="billing",
            remedy="use smaller weights",
        )
    return units.astype(np.uint64)


_RUNS = frozenset({"RUNNING", "SUSPENDED", "STOPPED"})
_NOT_YET_OR_NO_MORE = frozenset({"COMPLETING", "POWER_UP_NODE"})


def is_charged(state: Collection[str]) -> bool:
    """Return True if a tick charges a job with this base state and flags, in Slurm's words."""
    return not _RUNS.isdisjoint(state) and _NOT_YET_OR_NO_MORE.isdisjoint(state)


def usage_factors(qos: Ints, factors: Doubles) -> Doubles:
    """Return the usage factor of each job's QOS: 1 if it has none, or a cleared one (-1)."""
    own = np.where(qos >= 0, factors[qos], 1.0) if len(factors) else np.ones(len(qos))
    return np.where(own >= 0, own, 1.0)
