"""Priority of jobs: the sum of weighted factors, rounded as Slurm does (slurm-rules.md,
"Job priority").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor import factors
from fairbank.priority.multifactor.pending_jobs import FactorScale, Floats, PendingColumns
from fairbank.priority.multifactor.settings import MultifactorSettings

Priorities = npt.NDArray[np.uint32]

LOWEST = 1

# The weight of a TRES may be as large as a double can be. What is past that is infinite, and cut to
# the highest priority.
_past_doubles = np.errstate(over="ignore")

_BLOCK = (
    32_768  # rows at a time, so that what lies between two steps stays in the processor's cache
)


class PriorityTerms(NamedTuple):
    """Term of each factor in the priorities of jobs: the factor times its weight. `site` is added
    and `nice` subtracted.
    """

    age: Floats
    association: Floats
    fairshare: Floats
    job_size: Floats
    partition: Floats
    qos: Floats
    tres: tuple[Floats, ...]
    """One column for each TRES of the scale."""
    site: Floats
    nice: Floats


@_past_doubles
def weighted(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings, now: int
) -> PriorityTerms:
    """Return the term of each factor, as sprio lists it. A factor without weight adds nothing.

    Args:
        jobs: pending jobs.
        scale: scale of the factors.
        settings: weights and flags.
        now: time in seconds since 1970.
    """
    weights, nothing = settings.counted, np.zeros_like(jobs.nice)
    return PriorityTerms(
        age=(
            factors.age(jobs.accrued_at, now, settings.max_age_seconds) * weights.age
            if weights.age
            else nothing
        ),
        association=(
            factors.association(jobs.association, scale, settings) * weights.association
            if weights.association
            else nothing
        ),
        fairshare=jobs.fairshare * weights.fairshare if weights.fairshare else nothing,
        job_size=(
            factors.job_size(jobs, scale, settings) * weights.job_size
            if weights.job_size
            else nothing
        ),
        partition=(
            (factors.partition(scale, settings) * weights.partition).take(jobs.partition)
            if weights.partition
            else nothing
        ),
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
    """Return the priority of each job, in one partition and with one QOS: never below 1, because 0
    means held.

    Raises InvalidInput for a weight of a TRES that the scale does not have.

    Args:
        jobs: pending jobs.
        scale: scale of the factors.
        settings: weights and flags.
        now: time in seconds since 1970.
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
    """Return the sum from left to right: another order would round otherwise."""
    found = _sum(*terms[:6], _of_tres(terms), terms.site)
    found -= terms.nice
    return found


def _of_tres(terms: PriorityTerms) -> Floats:
    return _sum(np.zeros_like(terms.nice), *terms.tres)


def _sum(first: Floats, *others: Floats) -> Floats:
    """Return the sum from left to right, in one new column. A column for each step would take half
    the time again.
    """
    found = first.copy()
    for column in others:
        found += column
    return found


def cut(sums: Floats) -> Priorities:
    """Return integers of 32 bits, at least 1: fractions are truncated."""
    return sums.clip(float(LOWEST), float(U32_MAX)).astype(np.uint32)


# ---------------------------------------------------------------- as sprio has it


@_past_doubles
def shown(terms: PriorityTerms) -> Floats:
    """Return the sums of sprio, not truncated. sprio adds TRES last, so the last digit may differ
    from the priority.
    """
    first = _sum(*terms[:6], terms.site) - terms.nice
    return np.maximum(_sum(first, *terms.tres), float(LOWEST))


def _check(scale: FactorScale, settings: MultifactorSettings) -> None:
    if strange := [name for name in settings.weights.tres if name not in scale.tres]:
        remedy = "take it out, or put it into AccountingStorageTRES"
        raise InvalidInput(
            f"{strange[0]} is weighted, and the cluster has no such TRES",
            field="PriorityWeightTRES",
            remedy=remedy,
        )
