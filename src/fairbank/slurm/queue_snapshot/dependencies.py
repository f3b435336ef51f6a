"""Open dependencies of a job of a live Slurm, with the states of the jobs that it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairbank.cluster.dependency import Dependency
from fairbank.scheduling.explain.dependencies import JobStates, OpenDependencies
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.parsers.job_lines import EndedJob
from fairbank.slurm.parsers.jobs import SlurmJob


def open_dependencies(
    job: PendingJob, slurm_jobs: Mapping[int, SlurmJob], ended: Iterable[EndedJob]
) -> OpenDependencies:
    """Return the dependencies of a pending job.

    `slurm_jobs` has each pending task of an array; `ended` are jobs that are known to be over.
    """
    slurm_job, ended_jobs = slurm_jobs[job.number], tuple(ended)
    jobs = tuple({other.job_id: other for other in slurm_jobs.values()}.values())
    dependencies = msgspec.structs.replace(
        slurm_job.dependencies,
        items=tuple(
            _for_task(dependency, job, jobs, ended_jobs)
            for dependency in slurm_job.dependencies.items
        ),
    )
    return OpenDependencies(
        dependencies,
        tuple(
            _job_states(dependency, slurm_job, jobs, ended_jobs)
            for dependency in dependencies.items
        ),
    )


def _for_task(
    dependency: Dependency,
    job: PendingJob,
    jobs: Iterable[SlurmJob],
    ended_jobs: Iterable[EndedJob],
) -> Dependency:
    """Return the dependency for one task: `aftercorr` waits for the task of the same number, if
    any.
    """
    if dependency.kind != "aftercorr" or not dependency.all_tasks or job.task < 0:
        return dependency
    for_task = dependency._replace(task=job.task, all_tasks=False)
    exists = any(_matching_names(for_task, other) for other in jobs) or any(
        _is_over(for_task, other) for other in ended_jobs
    )
    return for_task if exists else dependency


def _job_states(
    dependency: Dependency, own: SlurmJob, jobs: Iterable[SlurmJob], ended_jobs: Iterable[EndedJob]
) -> JobStates:
    is_singleton = dependency.kind == "singleton"
    matching = [
        (name, slurm_job)
        for slurm_job in jobs
        for name in (
            _singleton_names(own, slurm_job)
            if is_singleton
            else _matching_names(dependency, slurm_job)
        )
    ]
    running = [pair for pair in matching if not pair[1].is_pending]
    waiting = [pair for pair in matching if pair[1].is_pending]
    ends = [slurm_job.ends for _, slurm_job in running]
    return JobStates(
        running=tuple(name for name, _ in running),
        began=max(
            (slurm_job.started for _, slurm_job in running if slurm_job.started is not None),
            default=None,
        ),
        ends=None if None in ends else max(filter(None, ends), default=None),
        waiting=tuple(name for name, _ in waiting),
        reason=waiting[0][1].reason if waiting else "",
        ended=()
        if is_singleton
        else tuple(ended.state for ended in ended_jobs if _is_over(dependency, ended)),
    )


def _matching_names(dependency: Dependency, slurm_job: SlurmJob) -> list[str]:
    """Return the names of this job, or of its unstarted tasks, that the dependency is about."""
    if dependency.task is None:
        return _names(slurm_job) if dependency.job in (slurm_job.job_id, slurm_job.array) else []
    if dependency.job != slurm_job.array:
        return []
    return (
        [f"{slurm_job.array}_{dependency.task}"]
        if dependency.task == slurm_job.task or dependency.task in slurm_job.tasks
        else []
    )


def _singleton_names(own: SlurmJob, other: SlurmJob) -> list[str]:
    """Return jobs of the same name and user that run or were submitted before."""
    is_same = (other.name, other.user) == (own.name, own.user) and other.job_id != own.job_id
    return _names(other) if is_same and (not other.is_pending or other.job_id < own.job_id) else []


def _names(slurm_job: SlurmJob) -> list[str]:
    return [f"{slurm_job.array}_{task}" for task in slurm_job.tasks] or [slurm_job.squeue_name]


def _is_over(dependency: Dependency, ended: EndedJob) -> bool:
    return (
        dependency.job == ended.array and dependency.task == ended.task
        if dependency.task is not None
        else dependency.job in (ended.job_id, ended.array)
    )
