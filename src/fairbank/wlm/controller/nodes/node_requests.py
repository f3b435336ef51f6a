"""Requests to a node with what the core does not know: the time, script, environment, CPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.job_environment import run_variables
from fairbank.wlm.controller.nodes.job_start import (
    StartDetails,
    bound_cpus,
    cpus_by_core,
    start_message,
)
from fairbank.wlm.controller.nodes.step_start import start_step_message
from fairbank.wlm.core.effects import ChangeLimit, StartRun, StartTasks
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.messages import TIME_LIMIT, EndJob, StartJob, StartStep


def limit_request(change: ChangeLimit, now: int) -> EndJob:
    """Return the request with the seconds that a run has left at a monotonic time."""
    seconds = change.seconds
    if seconds is not None and change.started is not None:
        seconds = max(change.started + seconds - now, 0)
    return EndJob(run=change.run, seconds=seconds, reason=TIME_LIMIT)


async def start_request(runner: CoreRunner, node: str, start: StartRun) -> StartJob:
    """Return the request that starts a run on a node.

    Raises:
        FairbankError: it cannot be started.
    """
    submission = start.submission
    script = await runner.content(submission.script) if submission.script else b""
    environment = await runner.content(submission.environment) if submission.environment else b""
    details = StartDetails(
        script,
        environment,
        runner.state.wanted_in(start.run.allocation.partition, start.request),
        array_tasks(runner.state, start.request.array),
        bound_cpus(start, runner.settings.nodes, host_cpus())
        if runner.settings.scheduling.affinity
        else (),
        appends=runner.settings.jobs.job_file_append,
        now=runner.now().wall,
        has_memory=runner.settings.scheduling.counts_memory,
    )
    return start_message(start, node, details)


def allocation_variables(runner: CoreRunner, job: WlmJob) -> dict[str, str]:
    """Return the variables of a job that runs, for srun and salloc."""
    if (run := job.active_run) is None:
        return {}
    start = StartRun(run, job.request, job.submission, None)
    tasks = array_tasks(runner.state, job.request.array)
    begun = (run.started or runner.now()).wall
    wanted = runner.state.wanted_in(run.allocation.partition, job.request)
    variables = run_variables(start, wanted, tasks, begun)
    del variables["ENVIRONMENT"]
    return variables


def step_request(
    runner: CoreRunner, node: str, start: StartTasks, *, has_device_groups: bool
) -> StartStep:
    """Return the request that starts the tasks of a step on a node. Raises FairbankError."""
    settings = runner.settings
    by_core = (
        cpus_by_core(node, settings.nodes, host_cpus()) if settings.scheduling.affinity else {}
    )
    job = runner.state.job_of(start.step.run)
    grants = job.run.allocation.grants if job is not None and job.run is not None else ()
    gpus = (one.binding.gpus for one in grants if one.binding.node == node)
    return start_step_message(
        start, node, by_core, next(gpus, ()), counts_own_gpus=has_device_groups
    )


@cache
def host_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may use; those of a core are adjacent."""

    def siblings(cpu: int) -> str:
        try:
            return Path(
                f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
            ).read_text()
        except OSError:  # not in every container
            return str(cpu)

    cpus = sorted(os.sched_getaffinity(0))
    first_of_core: dict[str, int] = {}
    for cpu in cpus:
        first_of_core.setdefault(siblings(cpu), cpu)
    return tuple(sorted(cpus, key=lambda cpu: (first_of_core[siblings(cpu)], cpu)))


def array_tasks(state: CoreState, array: int | None) -> Sequence[int]:
    """Return the numbers of all tasks of an array, ascending; none for a job that is no array."""
    if array is None:
        return ()
    jobs = state.index.with_id(array)
    tasks = {task for job in jobs for task in job.tasks}
    return sorted(tasks | {job.task for job in jobs if job.task is not None})
