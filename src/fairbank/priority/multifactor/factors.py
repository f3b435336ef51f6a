"""The factors of a priority, each for whole columns of jobs, in Slurm's own doubles.

Every factor is from 0 to 1, unless a NO_NORMAL flag asks for the raw number, or a job asks for more of a TRES than there is.

Source: docs/reference/slurm-rules.md, "Priority factors".
"""

from __future__ import annotations

import numpy as np

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor.pending_jobs import FactorScale, Floats, Indexes, PendingColumns
from fairbank.priority.multifactor.settings import Flag, MultifactorSettings


def age(accrued_at: Floats, now: int, max_age_seconds: int) -> Floats:
    """How much of the age that counts in full a job has waited; nothing before it accrues, should clocks have gone back."""
    if not max_age_seconds:
        return np.where(accrued_at != 0, 1.0, 0.0)
    part: Floats = (now - accrued_at).clip(0.0, float(max_age_seconds))
    part /= max_age_seconds
    return part if accrued_at.all() else np.where(accrued_at != 0, part, 0.0)


def association(priorities: Floats, scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """The priority of the job's association, beside the highest of all."""
    if Flag.NO_NORMAL_ASSOC in settings.flags:
        return priorities
    return (
        priorities / scale.association_max if scale.association_max else np.zeros_like(priorities)
    )


def job_size(jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """How large a job is beside the cluster, or how small: the mean of its parts of the nodes and of the CPUs.

    SMALL_RELATIVE_TO_TIME: its CPUs, counted in whole nodes where that is more, for each minute that it may run.
    """
    if not (scale.nodes and scale.cpus):
        return np.zeros_like(jobs.nodes)
    if Flag.SMALL_RELATIVE_TO_TIME in settings.flags:
        size = _for_each_minute(jobs, scale)
        found = 1.0 - size if settings.favour_small else size
    elif settings.favour_small:
        found = _with_cpus(
            (scale.nodes - np.minimum(jobs.nodes, scale.nodes)) / scale.nodes,
            _left(jobs.cpus, scale) / scale.cpus,
            jobs,
        )
    else:
        found = _with_cpus(jobs.nodes / scale.nodes, jobs.cpus / scale.cpus, jobs)
    return found.clip(0.0, 1.0)


def partition(scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """The factor of each partition: PriorityJobFactor beside the highest."""
    factors = scale.partition_factors
    return factors if Flag.NO_NORMAL_PART in settings.flags else factors / factors.max(initial=1.0)


def qos(scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """The factor of each QOS: its priority beside the highest; the last one is that of jobs without a QOS."""
    highest = scale.qos_priorities.max()
    return (
        scale.qos_priorities
        if Flag.NO_NORMAL_QOS in settings.flags or not highest
        else scale.qos_priorities / highest
    )


def tres(counts: Floats, totals: Floats, where: Indexes, settings: MultifactorSettings) -> Floats:
    """How much of one TRES of its partition a job takes. `totals` are the partitions', `where` says which is the job's."""
    if Flag.NO_NORMAL_TRES in settings.flags:
        return counts
    if totals.all():
        return counts / totals.take(where)
    there = totals != 0
    return np.where(there.take(where), counts / np.where(there, totals, 1.0).take(where), 0.0)


def _with_cpus(nodes: Floats, cpus: Floats, jobs: PendingColumns) -> Floats:
    mean = (nodes + cpus) / 2
    return mean if jobs.cpus.all() else np.where(jobs.cpus != 0, mean, nodes)


def _left(cpus: Floats, scale: FactorScale) -> Floats:
    """CPUs that the job leaves. Slurm counts in 32 bits without a sign: who takes more than there are seems to leave billions."""
    left = scale.cpus - cpus
    return np.where(left < 0, left + (U32_MAX + 1), left)


def _for_each_minute(jobs: PendingColumns, scale: FactorScale) -> Floats:
    in_nodes = jobs.nodes * scale.cpus / scale.nodes
    return np.maximum(in_nodes, jobs.cpus) / jobs.limit_minutes / scale.cpus
