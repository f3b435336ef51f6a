"""Messages of the core to a node, as requests of the protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.job_start import StartDetails, bound_cpus, start_message
from fairbank.wlm.core.effects import (
    ChangeLimit,
    DropRun,
    EndRun,
    Message,
    NotifyRun,
    SignalRun,
    StartRun,
)
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.settings import WlmSettings
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol import messages as wire

TIME_LIMIT = "time limit"
"""Reason of a request that sets a time limit."""


async def node_request(runner: CoreRunner, node: str, message: Message) -> wire.Message | None:
    """Return the request for a message of the core; None if it is of no use any more.

    Raises:
        FairbankError: a run cannot be started.
    """
    match message:
        case StartRun():
            return start_message(message, node, await _details(runner, message))
        case EndRun(run=run):
            job = runner.state.jobs.get(run.job_id)
            end = "" if job is None or job.run is None or job.run.run != run else job.run.end
            return wire.EndJob(run=run, reason=end or "ended by the controller")
        case SignalRun(run=run, signal=number, script_only=script_only):
            return wire.SignalJob(run=run, number=number, only_script=script_only)
        case NotifyRun(run=run, text=text):
            return wire.NotifyJob(run=run, text=text)
        case ChangeLimit(run=run, seconds=seconds):
            job = runner.state.job_of(run)
            started = None if job is None or job.run is None else job.run.started
            if started is not None and seconds is not None:
                seconds = max(seconds - (runner.now().mono - started.mono), 0)
            return wire.EndJob(run=run, seconds=seconds, reason=TIME_LIMIT)
        case DropRun(run=run):
            return wire.ForgetRun(run=run)
    return None


def remaining_limit(job: WlmJob, settings: WlmSettings) -> ChangeLimit:
    """Return the message with the limit of a running job, which may have changed meanwhile."""
    return ChangeLimit(
        job.identity(settings.cluster.cluster_name), settings.run_seconds(job.request.limit)
    )


async def _details(runner: CoreRunner, start: StartRun) -> StartDetails:
    submission = start.submission
    script = await runner.script(submission.script)
    environment = await runner.script(submission.environment) if submission.environment else b""
    rules = runner.state.partitions.get(start.run.allocation.partition)
    wanted = start.request.wanted
    return StartDetails(
        script,
        environment,
        wanted if rules is None else rules.with_default_memory(wanted),
        array_tasks(runner.state, start.request.array),
        bound_cpus(start, runner.settings.nodes, host_cpus())
        if runner.settings.scheduling.affinity
        else (),
        appends=runner.settings.jobs.job_file_append,
        now=runner.now().wall,
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
