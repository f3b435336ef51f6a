"""Billing units of jobs, and their charge for an interval (slurm-rules.md, "Billing", "Usage").

Weights, their suffixes and the rule by which TRES compete are those of `core.tres`, where the bank
prices with exact fractions. Here the same weights are doubles, summed in the order of Slurm's TRES
ids, so that the result is equal to the last bit.

A suspended job is charged on: Slurm's controller never subtracts the pause. A requeue, a preemption
or a failed node gives nothing back: each run of a job is its own row and stays charged. A job over
its limit is charged to its real end. A resized job is two rows, one until the change and one from
it.

The workload manager makes `ChargedJobs` of its own runs (`wlm/core/factors/usage.py`). What makes
them from Slurm's records has no user in a command.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, BillingRule, Weights, is_max_candidate
from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long, Wholes
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.usage import Costs, check_counted

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


class ChargedJobs(NamedTuple):
    """Jobs with resources, one row each, in the order of Slurm's list.

    `association`, `qos`, `partition_qos`: rows that are charged, -1 for none. `factor`: usage
    factor of the job's own QOS. `start`, `end`: times; `end` is 0 while the job runs. `limit`:
    minutes. `billable`: billing units as a double; `alloc` [jobs, TRES]: counts as
    Slurm allocated them.
    """

    association: Ints
    qos: Ints
    partition_qos: Ints
    factor: Doubles
    start: Ints
    end: Ints
    limit: Ints
    billable: Doubles
    alloc: Wholes

    def only(self, which: Bools | Ints) -> ChargedJobs:
        """Return some of the jobs."""
        return ChargedJobs(
            self.association[which],
            self.qos[which],
            self.partition_qos[which],
            self.factor[which],
            self.start[which],
            self.end[which],
            self.limit[which],
            self.billable[which],
            self.alloc[which],
        )


def usage_factors(qos: Ints, factors: Doubles) -> Doubles:
    """Return the usage factor of each job's QOS: 1 if it has none, or a cleared one (-1)."""
    own = np.where(qos >= 0, factors[qos], 1.0) if len(factors) else np.ones(len(qos))
    return np.where(own >= 0, own, 1.0)


def seconds_run(jobs: ChargedJobs, since: int, now: int) -> Doubles:
    """Return the seconds that each job ran in (`since`, `now`], up to its end if known.

    Args:
        jobs: jobs that have started.
        since: start of the interval in seconds since 1970.
        now: end of the interval in seconds since 1970.
    """
    finish = np.where(jobs.end > 0, np.minimum(jobs.end, now), now)
    seconds: Doubles = np.maximum(finish - np.maximum(jobs.start, since), 0).astype(np.float64)
    return seconds


def costs(jobs: ChargedJobs, seconds: Doubles) -> Costs:
    """Return the cost of `seconds` of each job: decayed, or plain for a QOS with NoDecay."""
    wall = seconds * jobs.factor
    return Costs(
        seconds * jobs.billable * jobs.factor,
        wall,
        wall.astype(Long)[:, None] * jobs.alloc.astype(Long),
    )


def decay_costs(jobs: ChargedJobs, seconds: Doubles, decay: Decay) -> Costs:
    """Return the cost of an interval that just passed if usage decays.

    Args:
        jobs: jobs that ran in it.
        seconds: seconds that each job ran in it.
        decay: half-life; each interval decays by its whole length.
    """
    return costs(jobs, faded(decay, seconds))


def may_use(jobs: ChargedJobs) -> Wholes:
    """Return the run-seconds of each TRES that starting jobs reserve: counts by the whole time
    limit. Raises InvalidInput above 63 bits.
    """
    return _by_counts(jobs, jobs.limit * 60 * jobs.factor)


def gives_back(jobs: ChargedJobs, since: int, now: int, *, over: bool) -> Wholes:
    """Return the run-seconds that each job gives back: its run time within its limit.

    Usage and run-seconds together are therefore constant while a job runs within its limit.

    Args:
        jobs: jobs that run or end.
        since: begin of the interval in seconds since 1970, excluded.
        now: end of the interval, included.
        over: the jobs end: return all of the rest.
    """
    begin, until = np.maximum(jobs.start, since), jobs.start + jobs.limit * 60
    left = np.maximum(until - begin, 0).astype(np.float64)
    return _by_counts(
        jobs, (left if over else np.minimum(left, seconds_run(jobs, since, now))) * jobs.factor
    )


def _by_counts(jobs: ChargedJobs, seconds: Doubles) -> Wholes:
    whole = np.trunc(seconds)
    check_counted(whole[:, None] * jobs.alloc.astype(np.float64), jobs.association)
    return np.minimum(whole, 2.0**62).astype(np.uint64)[:, None] * jobs.alloc


def faded(decay: Decay, seconds: Doubles) -> Doubles:
    """Return seconds as they count: each interval decays by its whole length, as in Slurm."""
    # NumPy's own power differs from the C library's in the last bit; most jobs share one length,
    # so few powers are taken.
    lengths, which = np.unique(seconds, return_inverse=True)
    powers = np.array([math.pow(decay.a_second, length) for length in lengths.tolist()])
    result: Doubles = seconds * powers[which] if len(seconds) else seconds
    return result
