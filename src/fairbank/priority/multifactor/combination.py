"""From factors to the whole number by which jobs are ranked, added up and cut as Slurm does (facts, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor import factors
from fairbank.priority.multifactor.pending_jobs import FactorScale, Floats, Indexes, PendingColumns
from fairbank.priority.multifactor.settings import Flag, MultifactorSettings

Priorities = npt.NDArray[np.uint32]

HELD, LOWEST = 0, 1

# The weight of a TRES may be as large as a double can be. What is past that is infinite, and cut to the highest priority.
_past_doubles = np.errstate(over="ignore")

_BLOCK = (
    32_768  # rows at a time, so that what lies between two steps stays in the processor's cache
)


class PriorityTerms(NamedTuple):
    """What each factor adds to the priorities of jobs: the factor times its weight. `site` is added and `nice` taken away."""

    age: Floats
    association: Floats
    fairshare: Floats
    job_size: Floats
    partition: Floats
    qos: Floats
    tres: tuple[Floats, ...]
    """One for each TRES of the scale."""
    site: Floats
    nice: Floats


@_past_doubles
def weighted(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings, now: int
) -> PriorityTerms:
    """What each factor adds, as sprio lists it. A factor of no weight adds nothing."""
    weights, nothing = settings.counted, np.zeros_like(jobs.nice)
    return PriorityTerms(
        age=factors.age(jobs.accrued_at, now, settings.max_age_seconds) * weights.age
        if weights.age
        else nothing,
        association=factors.association(jobs.association, scale, settings) * weights.association
        if weights.association
        else nothing,
        fairshare=jobs.fairshare * weights.fairshare if weights.fairshare else nothing,
        job_size=factors.job_size(jobs, scale, settings) * weights.job_size
        if weights.job_size
        else nothing,
        partition=(factors.partition(scale, settings) * weights.partition).take(jobs.partition)
        if weights.partition
        else nothing,
        qos=(factors.qos(scale, settings) * weights.qos)[jobs.qos] if weights.qos else nothing,
        tres=tuple(_weighted_tres(jobs, scale, settings)),
        site=jobs.site,
        nice=jobs.nice,
    )


def _weighted_tres(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings
) -> Iterable[Floats]:
    weights = settings.weights.tres
    for row, name in enumerate(scale.tres):
        if weight := weights.get(name, 0.0):
            yield factors.tres(jobs.tres[row], scale.totals[row], jobs.partition, settings) * weight
        else:
            yield np.zeros_like(jobs.nice)


@_past_doubles
def priorities(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings, now: int
) -> Priorities:
    """The priority of each job, in the one partition and with the one QOS that it has here: never below 1, as 0 means held.

    Raises InvalidInput when a TRES is weighted that the scale does not know.
    """
    _check(scale, settings)
    if len(jobs.nice) <= _BLOCK:
        return cut(_added(weighted(jobs, scale, settings, now)))
    found = np.empty(len(jobs.nice), dtype=np.uint32)
    for start in range(0, len(found), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = cut(_added(weighted(jobs.rows(block), scale, settings, now)))
    return found


def _added(terms: PriorityTerms) -> Floats:
    """From left to right: another order would round otherwise."""
    found = _sum(*terms[:6], _of_tres(terms), terms.site)
    found -= terms.nice
    return found


def _of_tres(terms: PriorityTerms) -> Floats:
    return _sum(np.zeros_like(terms.nice), *terms.tres)


def _sum(first: Floats, *others: Floats) -> Floats:
    """From left to right, into one new column: a column for each step would take half the time again."""
    found = first.copy()
    for column in others:
        found += column
    return found


def cut(sums: Floats) -> Priorities:
    """A whole number of 32 bits, from 1 up: what lies behind the point is dropped."""
    return sums.clip(float(LOWEST), float(U32_MAX)).astype(np.uint32)


# ---------------------------------------------------------------- several partitions, several QOS


class Pairs(NamedTuple):
    """The places of jobs that asked for several: for each the row of its job, the partition and the QOS.

    Partitions in the order of the job's list, within each the QOS in theirs.
    """

    job: Indexes
    partition: Indexes
    qos: Indexes


@_past_doubles
def pair_priorities(
    jobs: PendingColumns, pairs: Pairs, scale: FactorScale, settings: MultifactorSettings, now: int
) -> Priorities:
    """The priority of each pair: Slurm adds the partition last here. A QOS of priority 0 counts as the job's own."""
    _check(scale, settings)
    there = jobs.rows(pairs.job)
    qos = np.where(scale.qos_priorities[pairs.qos] == 0, there.qos, pairs.qos)
    here = weighted(there._replace(partition=pairs.partition, qos=qos), scale, settings, now)
    rest = (
        _sum(
            here.age,
            here.association,
            here.fairshare,
            here.job_size,
            here.qos,
            _of_tres(here),
            here.site,
        )
        - here.nice
    )
    return cut(rest + here.partition)


# ---------------------------------------------------------------- as sprio has it


@_past_doubles
def shown(terms: PriorityTerms) -> Floats:
    """The sums that sprio makes of the terms, uncut. It adds TRES after all else, so the last digit may differ from the priority."""
    first = _sum(*terms[:6], terms.site) - terms.nice
    return np.maximum(_sum(first, *terms.tres), float(LOWEST))


def normalised(
    terms: PriorityTerms, scale: FactorScale, settings: MultifactorSettings
) -> PriorityTerms:
    """The factors themselves, as sprio makes them from the terms: 0 where the weight is. Site and nice are as they were."""
    weights = settings.counted
    by_weight = (
        weights.age,
        weights.association,
        weights.fairshare,
        weights.job_size,
        weights.partition,
        weights.qos,
    )
    factors_of = [
        column / (weight or 1) for column, weight in zip(terms[:6], by_weight, strict=True)
    ]
    of_tres = tuple(
        column / (settings.weights.tres.get(name) or 1.0)
        for column, name in zip(terms.tres, scale.tres, strict=True)
    )
    return PriorityTerms._make([*factors_of, of_tres, terms.site, terms.nice])


# ---------------------------------------------------------------- from one reckoning to the next


def settled(
    computed: Priorities,
    before: Priorities,
    by_hand: npt.NDArray[np.bool_],
    settings: MultifactorSettings,
) -> Priorities:
    """The priorities that jobs go on with: a held one (0) stays held, and one that an administrator gave stays as it is.

    INCR_ONLY: none falls.
    """
    found = np.maximum(computed, before) if Flag.INCR_ONLY in settings.flags else computed
    return np.where(by_hand | (before == HELD), before, found)


def _check(scale: FactorScale, settings: MultifactorSettings) -> None:
    if strange := [name for name in settings.weights.tres if name not in scale.tres]:
        remedy = "take it out, or put it into AccountingStorageTRES"
        raise InvalidInput(
            f"{strange[0]} is weighted, and the cluster has no such TRES",
            field="PriorityWeightTRES",
            remedy=remedy,
        )


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
