"""Open dependencies of a job of a live Slurm, with the states of the jobs that it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fairbank.cluster.dependency import Dependency
from fairbank.scheduling.explain.dependencies import JobStates, OpenDependencies
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.parsers.scheduler.dependencies import EndedJob
from fairbank.slurm.parsers.scheduler.jobs import SlurmJob


def open_dependencies(
    job: PendingJob, slurm_jobs: Mapping[int, SlurmJob], ended: Iterable[EndedJob]
) -> OpenDependencies:
    """Return the dependencies of a job.

    Args:
        job: that is pending.
        slurm_jobs: by number, each pending task of an array among them.
        ended: jobs that are over, as far as they are known.
    """
    own, over = slurm_jobs[job.number], tuple(ended)
    jobs = tuple({each.job_id: each for each in slurm_jobs.values()}.values())
    depends = msgspec.structs.replace(
        own.dependencies,
        items=tuple(_for_task(each, job, jobs, over) for each in own.dependencies.items),
    )
    return OpenDependencies(
        depends, tuple(_job_states(each, own, jobs, over) for each in depends.items)
    )


def _for_task(
    on: Dependency, job: PendingJob, jobs: Iterable[SlurmJob], over: Iterable[EndedJob]
) -> Dependency:
    """Return the dependency for one task: `aftercorr` waits for the task of the same number, if
    any.
    """
    if on.kind != "aftercorr" or not on.all_tasks or job.task < 0:
        return on
    one = msgspec.structs.replace(on, task=job.task, all_tasks=False)
    there = any(_matching_names(one, each) for each in jobs) or any(
        _is_over(one, each) for each in over
    )
    return one if there else on


def _job_states(
    on: Dependency, own: SlurmJob, jobs: Iterable[SlurmJob], over: Iterable[EndedJob]
) -> JobStates:
    alike = on.kind == "singleton"
    found = [
        (name, each)
        for each in jobs
        for name in (_singleton_names(own, each) if alike else _matching_names(on, each))
    ]
    running = [each for each in found if not each[1].is_pending]
    waiting = [each for each in found if each[1].is_pending]
    ends = [each.ends for _, each in running]
    return JobStates(
        running=tuple(name for name, _ in running),
        began=max((each.started for _, each in running if each.started is not None), default=None),
        ends=None if None in ends else max(filter(None, ends), default=None),
        waiting=tuple(name for name, _ in waiting),
        reason=waiting[0][1].reason if waiting else "",
        ended=() if alike else tuple(each.state for each in over if _is_over(on, each)),
    )


def _matching_names(on: Dependency, told: SlurmJob) -> list[str]:
    """Return the names of this job, or of its unstarted tasks, that the dependency is about."""
    if on.task is None:
        return _names(told) if on.job in (told.job_id, told.array) else []
    if on.job != told.array:
        return []
    return [f"{told.array}_{on.task}"] if on.task == told.task or on.task in told.tasks else []


def _singleton_names(own: SlurmJob, told: SlurmJob) -> list[str]:
    """Return jobs of the same name and user that run or were submitted before."""
    same = (told.name, told.user) == (own.name, own.user) and told.job_id != own.job_id
    return _names(told) if same and (not told.is_pending or told.job_id < own.job_id) else []


def _names(told: SlurmJob) -> list[str]:
    return [f"{told.array}_{task}" for task in told.tasks] or [told.squeue_name]


def _is_over(on: Dependency, ended: EndedJob) -> bool:
    return (
        on.job == ended.array and on.task == ended.task
        if on.task is not None
        else on.job in (ended.job_id, ended.array)
    )
