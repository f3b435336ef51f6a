"""Likely start of a job that is not submitted yet: it joins the queue, which is simulated forward.

It is as uncertain as that of a waiting job (docs/decisions/0030). The site factor of the new job is
unknown, and counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from shutil import which
from typing import NamedTuple

import msgspec

from fairbank.cluster.dependency import Dependencies
from fairbank.cluster.node import Gpus
from fairbank.cluster.resource_request import ALL_MEMORY, ResourceRequest
from fairbank.core.ids import JOB_ID_MAX
from fairbank.core.slurm_numbers import parse_memory
from fairbank.core.submission.values import TaskLayout
from fairbank.scheduling.explain.answer import StartRange
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.scheduling.explain.start_range import RunProgress, SimulatedRuns
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.commands import SlurmCommands, output_of
from fairbank.slurm.explain.queue_input import groups_of_users, read_queue
from fairbank.slurm.output import cluster_differs
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.answers import COMMANDS
from fairbank.slurm.queue_snapshot.run_times import (
    ACCOUNTING_TIMEOUT_SECONDS,
    COMMAND,
    FILE_NAME,
    read_history,
    run_time_history,
)
from fairbank.slurm.queue_snapshot.snapshot import build_queue
from fairbank.slurm.rankings import new_job_priority

CONFIGLESS = Path("/run/slurm/conf/slurm.conf")
"""Settings that slurmd has fetched from slurmctld."""
RUNS = 20
"""Number of simulated runs: fewer than for a waiting job, so that a quote takes few seconds."""
DEFAULT_QOS = "normal"
"""QOS of an association that names none."""


class NewJob(NamedTuple):
    """Job as its owner describes it. `tres` are the totals that it requests."""

    cluster: str
    account: str
    user: str
    qos: str | None
    partitions: tuple[str, ...]
    limit_seconds: int
    tres: Mapping[str, int]
    layout: TaskLayout = TaskLayout()
    reservation: str | None = None


class LikelyStart(NamedTuple):
    """Range of likely starts, as of the time of the queue, and lines that could not be read."""

    as_of: int
    range: StartRange
    unreadable: Sequence[str] = ()


def has_slurm() -> bool:
    """Return True if this host has Slurm's commands and their settings."""
    return which("scontrol") is not None and (SlurmCommands().conf.exists() or CONFIGLESS.exists())


def likely_start(
    job: NewJob, directory: str | None, zone: tzinfo, tick: RunProgress | None = None
) -> LikelyStart | None:
    """Return the likely start of a new job; None if it is unknown.

    Args:
        directory: directory with Slurm's earlier output; None to run Slurm's commands.
        zone: local time of slurmctld, which decides when usage is reset.
        tick: called after each simulated run.

    Raises:
        FairbankError: Slurm does not answer, or is of another cluster.
    """
    source = output_of(directory, ACCOUNTING_TIMEOUT_SECONDS)
    source.require((), {**COMMANDS, FILE_NAME: COMMAND})
    _, answers, lines = read_queue("", directory)
    if (cluster := answers.config.get("ClusterName")) != job.cluster:
        raise cluster_differs(cluster, job.cluster)
    number = min(max((queued.job_id for queued in answers.jobs), default=0) + 1, JOB_ID_MAX)
    factors = _factors(job, number, answers.now)
    priority, more = new_job_priority(source, factors, answers.now, zone)
    # The partitions and nodes are read for both.
    unreadable = tuple(dict.fromkeys((*map(str, lines), *more)))
    answers = msgspec.structs.replace(
        answers, jobs=(*answers.jobs, _slurm_job(job, number, priority, answers.now))
    )
    if directory is None:
        answers = msgspec.structs.replace(answers, groups=groups_of_users(answers, str(number)))
    queue = build_queue(answers)
    plan = run_passes(queue.snapshot, queue.parameters, queue.now)
    if any(start.job.number == number for start in plan.starts):
        now = StartRange(queue.now, queue.now, queue.now, 0, 0)
        return LikelyStart(queue.now, now, unreadable)
    past = read_history(source.text(FILE_NAME, *COMMAND), queue.now)
    if not past.rows:
        return None  # as long as accounting has no run times, there is no range
    likely = explain_on_nodes(
        queue.snapshot,
        queue.parameters,
        number,
        queue.now,
        plan=plan,
        runs=SimulatedRuns(run_time_history(past.rows), RUNS, tick),
        allowed=None,
    ).likely
    unreadable += tuple(map(str, past.unreadable))
    return None if likely is None else LikelyStart(queue.now, likely, unreadable)


def _factors(job: NewJob, number: int, now: int) -> PendingFactors:
    """Return what the priority of the job depends on."""
    return PendingFactors(
        job_id=number,
        user=job.user,
        account=job.account,
        qos=(job.qos or DEFAULT_QOS,),
        partitions=job.partitions,
        priority=1,
        nice=0,
        submitted=now,
        accrued=now,
        limit_minutes=-(-job.limit_seconds // 60),
        nodes=job.tres.get("node", 1),
        cpus=job.tres["cpu"],
        tres=",".join(f"{name}={count}" for name, count in job.tres.items()),
    )


def _slurm_job(job: NewJob, number: int, priority: int, now: int) -> SlurmJob:
    """Return the job as slurmctld would have it just after its submission."""
    return SlurmJob(
        job_id=number,
        name="new",
        state="PENDING",
        user=job.user,
        account=job.account,
        qos=job.qos or DEFAULT_QOS,
        partitions=job.partitions,
        priority=priority,
        submitted=now,
        eligible=now,
        started=None,
        ends=None,
        expected=None,
        limit=job.limit_seconds,
        time_min=None,
        reason="None",
        dependencies=Dependencies(),
        reservation=job.reservation,
        wanted=_wanted(job),
        licenses={},
        tres=job.tres,
    )


def _wanted(job: NewJob) -> ResourceRequest:
    nodes, layout = job.tres.get("node", 1), job.layout
    gpus = {
        name.partition(":")[2]: -(-count // nodes)
        for name, count in job.tres.items()
        if name.startswith("gres/gpu")
    }
    any_type = gpus.pop("", 0) - sum(gpus.values())
    if any_type > 0:
        gpus[""] = any_type
    sizes = {unit: parse_memory(text, field=unit) for unit, text in layout.memory.items()}
    if "mem" in job.tres:
        sizes["mem"] = -(-job.tres["mem"] // nodes)
    if "mem_per_gpu" in sizes:
        sizes["mem"] = sizes["mem_per_gpu"] * sum(gpus.values())
    if sizes.get("mem_per_cpu") == 0:
        sizes = {"mem": ALL_MEMORY}
    cpus = layout.cpus_per_task if layout.tasks else -(-job.tres["cpu"] // nodes)
    return ResourceRequest(
        nodes=nodes,
        tasks=layout.tasks,
        tasks_per_node=layout.tasks_per_node,
        cpus_per_task=cpus,
        memory_per_node=sizes.get("mem"),
        memory_per_cpu=sizes.get("mem_per_cpu"),
        gpus=tuple(Gpus(kind, number) for kind, number in gpus.items()),
        exclusive=layout.exclusive,
    )
