"""Factors of a priority, for columns of jobs, in Slurm's doubles (slurm-rules.md, "Priority
factors").

Each factor is from 0 to 1, unless a NO_NORMAL flag selects the raw number, or a job requests more
of a TRES than there is.
"""

from __future__ import annotations

import numpy as np

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor.pending_jobs import FactorScale, Floats, Indexes, PendingColumns
from fairbank.priority.multifactor.settings import Flag, MultifactorSettings


def age(accrued_at: Floats, now: int, max_age_seconds: int) -> Floats:
    """Return the waited part of PriorityMaxAge; 0 before the age accrues, if clocks went back."""
    if not max_age_seconds:
        return np.where(accrued_at != 0, 1.0, 0.0)
    part: Floats = (now - accrued_at).clip(0.0, float(max_age_seconds))
    part /= max_age_seconds
    return part if accrued_at.all() else np.where(accrued_at != 0, part, 0.0)


def association(priorities: Floats, scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """Return the priority of the job's association, relative to the highest."""
    if Flag.NO_NORMAL_ASSOC in settings.flags:
        return priorities
    return (
        priorities / scale.association_max if scale.association_max else np.zeros_like(priorities)
    )


def job_size(jobs: PendingColumns, scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """Return the size factor: the mean of the parts of the nodes and CPUs that the job requests, or
    with favour_small of those that it leaves.

    SMALL_RELATIVE_TO_TIME: its CPUs, as whole nodes if that is more, divided by the minutes that it
    may run.
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
    """Return the factor of each partition: PriorityJobFactor relative to the highest."""
    factors = scale.partition_factors
    return factors if Flag.NO_NORMAL_PART in settings.flags else factors / factors.max(initial=1.0)


def qos(scale: FactorScale, settings: MultifactorSettings) -> Floats:
    """Return the factor of each QOS: its priority relative to the highest. The last one is for jobs
    without a QOS.
    """
    highest = scale.qos_priorities.max()
    return (
        scale.qos_priorities
        if Flag.NO_NORMAL_QOS in settings.flags or not highest
        else scale.qos_priorities / highest
    )


def tres(
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
    """Return the CPUs that the job leaves. Slurm counts in unsigned 32 bits: a job that takes more
    than there are seems to leave billions.
    """
    left = scale.cpus - cpus
    return np.where(left < 0, left + (U32_MAX + 1), left)


def _for_each_minute(jobs: PendingColumns, scale: FactorScale) -> Floats:
    in_nodes = jobs.nodes * scale.cpus / scale.nodes
    return np.maximum(in_nodes, jobs.cpus) / jobs.limit_minutes / scale.cpus
