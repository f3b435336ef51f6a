"""Priority of jobs: the sum of weighted factors, rounded as Slurm does (slurm-rules.md,
"Job priority", "Priority factors").

Each factor is from 0 to 1, unless a NO_NORMAL flag selects the raw number, or a job requests more
of a TRES than there is. Columns of jobs are in Slurm's doubles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor.pending_jobs import FactorScale, Floats, Indexes, PendingColumns
from fairbank.priority.settings import Flag, MultifactorSettings

Priorities = npt.NDArray[np.uint32]

LOWEST = 1

# The weight of a TRES may be as large as a double can be. What is past that is infinite, and cut to
# the highest priority.
_past_doubles = np.errstate(over="ignore")

# Rows at a time, so that what lies between two steps stays in the processor's cache.
_BLOCK = 32_768


def age_factor(accrued_at: Floats, now: int, max_age_seconds: int) -> Floats:
    """Return the waited part of PriorityMaxAge; 0 before the age accrues, if clocks went back.

    Args:
        accrued_at: time since when the age of each job accrues, 0 if it does not yet.
        now: time in seconds since 1970.
        max_age_seconds: PriorityMaxAge; 0 gives each job whose age accrues the factor 1.
    """
    if not max_age_seconds:
        return np.where(accrued_at != 0, 1.0, 0.0)
    part: Floats = (now - accrued_at).clip(0.0, float(max_age_seconds))
    part /= max_age_seconds
    return part if accrued_at.all() else np.where(accrued_at != 0, part, 0.0)


def association_factor(
    priorities: Floats, scale: FactorScale, settings: MultifactorSettings
) -> Floats:
    """Return the priority of the job's association, relative to the highest.

    Args:
        priorities: priority of each job's association.
        scale: has the highest priority; if that is 0, all factors are 0.
        settings: the settings; with NO_NORMAL_ASSOC the priorities stay as they are.
    """
    if Flag.NO_NORMAL_ASSOC in settings.flags:
        return priorities
    return (
        priorities / scale.association_max if scale.association_max else np.zeros_like(priorities)
    )


def job_size_factor(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings
) -> Floats:
    """Return the size factor: the mean of the parts of the nodes and CPUs that the job requests.

    Args:
        jobs: pending jobs.
        scale: nodes and CPUs of the cluster; if one is 0, all factors are 0.
        settings: with favour_small the parts are those that the job leaves. With
            SMALL_RELATIVE_TO_TIME its CPUs count, as whole nodes if that is more, divided by the
            minutes that it may run.
    """
    if not (scale.nodes and scale.cpus):
        return np.zeros_like(jobs.nodes)
    if Flag.SMALL_RELATIVE_TO_TIME in settings.flags:
        size = _for_each_minute(jobs, scale)
        factor = 1.0 - size if settings.favour_small else size
    elif settings.favour_small:
        factor = _with_cpus(
            (scale.nodes - np.minimum(jobs.nodes, scale.nodes)) / scale.nodes,
            _left(jobs.cpus, scale) / scale.cpus,
            jobs,
        )
    else:
        factor = _with_cpus(jobs.nodes / scale.nodes, jobs.cpus / scale.cpus, jobs)
    return factor.clip(0.0, 1.0)


def partition_factor(scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """Return the factor of each partition: PriorityJobFactor relative to the highest."""
    factors = scale.partition_factors
    return factors if Flag.NO_NORMAL_PART in settings.flags else factors / factors.max(initial=1.0)


def qos_factor(scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """Return the factor of each QOS, relative to the highest. The last is for no QOS."""
    highest = float(scale.qos_priorities.max())
    if Flag.NO_NORMAL_QOS in settings.flags or not highest:
        return scale.qos_priorities
    return scale.qos_priorities / highest


def tres_factor(
    counts: Floats, totals: Floats, partitions: Indexes, settings: MultifactorSettings
) -> Floats:
    """Return the part of one TRES of its partition that each job takes.

    Args:
        counts: amount of each job.
        totals: amount of each partition.
        partitions: partition of each job.
        settings: flags.
    """
    if Flag.NO_NORMAL_TRES in settings.flags:
        return counts
    if totals.all():
        return counts / totals.take(partitions)
    there = totals != 0
    return np.where(
        there.take(partitions), counts / np.where(there, totals, 1.0).take(partitions), 0.0
    )


def _with_cpus(nodes: Floats, cpus: Floats, jobs: PendingColumns) -> Floats:
    mean = (nodes + cpus) / 2
    return mean if jobs.cpus.all() else np.where(jobs.cpus != 0, mean, nodes)


def _left(cpus: Floats, scale: FactorScale) -> Floats:
    """Return the CPUs that the job leaves, in Slurm's unsigned 32 bits: too many wrap around."""
    left = scale.cpus - cpus
    return np.where(left < 0, left + (U32_MAX + 1), left)


def _for_each_minute(jobs: PendingColumns, scale: FactorScale) -> Floats:
    in_nodes = jobs.nodes * scale.cpus / scale.nodes
    return np.maximum(in_nodes, jobs.cpus) / jobs.limit_minutes / scale.cpus


class PriorityTerms(NamedTuple):
    """Factor times weight. `site` is added to the priority and `nice` subtracted."""

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
def weigh_factors(
    jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings, now: int
) -> PriorityTerms:
    """Return the term of each factor, as sprio lists it. A factor without weight adds nothing.

    Args:
        jobs: pending jobs.
        settings: weights and flags.
        now: time in seconds since 1970.
    """
    weights, nothing = settings.counted, np.zeros(len(jobs.nice))
    return PriorityTerms(
        age=(
            age_factor(jobs.accrued_at, now, settings.max_age_seconds) * weights.age
            if weights.age
            else nothing
        ),
        association=(
            association_factor(jobs.association, scale, settings) * weights.association
            if weights.association
            else nothing
        ),
        fairshare=jobs.fairshare * weights.fairshare if weights.fairshare else nothing,
        job_size=(
            job_size_factor(jobs, scale, settings) * weights.job_size
            if weights.job_size
            else nothing
        ),
        partition=(
            (partition_factor(scale, settings) * weights.partition).take(jobs.partition)
            if weights.partition
            else nothing
        ),
        qos=(qos_factor(scale, settings) * weights.qos)[jobs.qos] if weights.qos else nothing,
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
            yield tres_factor(jobs.tres[row], scale.totals[row], jobs.partition, settings) * weight
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
        settings: weights and flags.
        now: time in seconds since 1970.
    """
    _check(scale, settings)
    if len(jobs.nice) <= _BLOCK:
        return cut(_added(weigh_factors(jobs, scale, settings, now)))
    priorities = np.empty(len(jobs.nice), dtype=np.uint32)
    for start in range(0, len(priorities), _BLOCK):
        block = slice(start, start + _BLOCK)
        priorities[block] = cut(_added(weigh_factors(jobs.rows(block), scale, settings, now)))
    return priorities


def _added(terms: PriorityTerms) -> Floats:
    """Return the sum from left to right: another order would round otherwise."""
    priority = _sum(*terms[:6], _of_tres(terms), terms.site)
    priority -= terms.nice
    return priority


def _of_tres(terms: PriorityTerms) -> Floats:
    return _sum(np.zeros(len(terms.nice)), *terms.tres)


def _sum(first: Floats, *others: Floats) -> Floats:
    """Return the sum from left to right. A column for each step would take half the time again."""
    total = first.copy()
    for column in others:
        total += column
    return total


def cut(sums: Floats) -> Priorities:
    """Return integers of 32 bits, at least 1: fractions are truncated."""
    return sums.clip(float(LOWEST), float(U32_MAX)).astype(np.uint32)


# ---------------------------------------------------------------- as sprio has it


@_past_doubles
def sum_as_shown(terms: PriorityTerms) -> Floats:
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
