"""Jobs of the core as squeue and scontrol show them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import PurePosixPath
from typing import NamedTuple

from fairbank.cluster.dependency import Dependencies, Dependency
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import compress
from fairbank.core.submission.arrays import ArrayTasks
from fairbank.core.submission.file_patterns import ARRAY_OUTPUT, OUTPUT, expand_pattern
from fairbank.core.tres import BillingRule, billing
from fairbank.jobqueue.arrays import task_ranges
from fairbank.report.slurm.job_rows import NO_LIMIT, JobLine, JobShare
from fairbank.report.slurm.notation import shortened
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.jobs import HeldBy, Moment, NodeGrant, Submission, WlmJob
from fairbank.wlm.core.state import CoreState

DEFAULT_QOS = "normal"
"""QOS of a job that names none."""
GroupName = Callable[[int], str]
"""Function from a gid to the name of the group."""


class Files(NamedTuple):
    """Paths of the input, output and errors of a job."""

    input: str
    output: str
    error: str


def job_line(state: CoreState, job: WlmJob, now: Moment, group: GroupName) -> JobLine:
    """Return the line of a job, or of the tasks of an array that have not started.

    Args:
        state: the state of the cluster.
        job: one of its jobs.
        now: the current time.
        group: function from a gid to the name of the group.
    """
    request, submission, run = job.request, job.submission, job.run
    waits = job.state.base == "PENDING"
    shown_run = None if waits else run
    where = request.partitions[0] if shown_run is None else shown_run.allocation.partition
    rules = state.partitions.get(where)
    wanted = with_defaults(request.wanted, rules)
    rule = state.settings.billing_rule
    allocation = None if shown_run is None else shown_run.allocation
    nodes = () if allocation is None else allocation.nodes
    expected = state.expected_starts.get(job.number) if waits else None
    started = shown_run.started.wall if shown_run is not None and shown_run.started else None
    start = expected.at if expected is not None else started
    ended = None if job.ended is None else job.ended.wall
    files = job_files(request, submission, nodes[0] if nodes else "")
    is_held_by_bank = waits and job.held_by is HeldBy.BANK
    return JobLine(
        job_id=job.number,
        name=submission.name,
        user=request.user,
        uid=submission.uid,
        group=group(submission.gid),
        gid=submission.gid,
        account=request.account or None,
        partition=",".join(request.partitions) if allocation is None else allocation.partition,
        qos=request.qos or DEFAULT_QOS,
        priority=0 if waits and job.held_by is not None else request.priority,
        nice=submission.nice,
        state=job.state.base,
        flag=job.state.shown if job.state.shown != job.state.base else "",
        reason="JobHeldAdmin" if is_held_by_bank else job.shown_reason(now.wall),
        description=job.reason if is_held_by_bank else "",
        dependency=dependency_text(job.dependencies) or None,
        array_job=request.array,
        task=request.task if request.task >= 0 else None,
        tasks_left=str(ArrayTasks(task_ranges(job.tasks), request.throttle)) if job.tasks else "",
        throttle=request.throttle,
        submitted=request.submitted,
        eligible=max(request.eligible, request.submitted),
        accrued=max(request.eligible, request.submitted) if request.eligible <= now.wall else None,
        started=start,
        ends=ended or (start + request.limit if start and request.limit else None),
        deadline=request.deadline,
        elapsed=_elapsed(job, now),
        waited=max((started or ended or now.wall) - request.submitted, 0),
        limit=_limit(state, job),
        least_limit=request.time_min,
        nodes=compress(nodes),
        planned_nodes=None if expected is None else compress(expected.nodes),
        required_nodes=compress(wanted.required) or None,
        excluded_nodes=compress(wanted.excluded) or None,
        batch_host=nodes[0] if nodes else None,
        submit_host=request.submit_host or None,
        node_count=len(nodes) or wanted.nodes,
        most_nodes=0 if nodes else wanted.max_nodes or 0,
        cpus=wanted.cpus if allocation is None else sum(g.cpus for g in allocation.grants),
        tasks=wanted.least_tasks,
        cpus_per_task=wanted.cpus_per_task,
        tasks_per_node=wanted.tasks_per_node or 0,
        least_cpus=max(wanted.cpus_per_node, wanted.cpus_per_task),
        least_memory=wanted.memory_per_cpu or wanted.memory_per_node or 0,
        memory_is_per_cpu=wanted.memory_per_cpu is not None,
        least_tmp=wanted.tmp,
        requested_tres=tres_text(requested_counts(wanted), rules, rule),
        allocated_tres=None if allocation is None else tres_text(allocation.tres, rules, rule),
        shares=() if allocation is None else tuple(map(_share, allocation.grants)),
        features=wanted.constraint or None,
        preferred_features=wanted.prefer or None,
        reservation=request.reservation,
        licenses=",".join(f"{name}:{count}" for name, count in request.licences.items()) or None,
        sharing="NO" if wanted.exclusive else "YES" if wanted.shared else "OK",
        contiguous=wanted.contiguous,
        requeue=submission.may_requeue,
        restarts=job.restarts,
        exit_code=exit_code(0 if shown_run is None else shown_run.status),
        command=submission.command or None,
        work_dir=submission.directory,
        std_in=files.input,
        std_out=files.output,
        std_err=files.error,
        comment=submission.comment or None,
        admin_comment=job.admin_comment or None,
        extra=submission.extra or None,
        wckey=submission.wckey or None,
        mail_user=(submission.mail_user or request.user) if submission.mail_types else None,
        mail_type=",".join(sorted(submission.mail_types)) or None,
    )


def split_tasks(job: WlmJob, line: JobLine) -> Iterator[JobLine]:
    """Yield the line as one for each task of its array that has not started."""
    if not job.tasks:
        yield line
    for task in job.tasks:
        yield line._replace(task=task, tasks_left="")


def with_defaults(wanted: ResourceRequest, rules: PartitionRules | None) -> ResourceRequest:
    """Return the request with the default memory of its partition."""
    return wanted if rules is None else rules.with_default_memory(wanted)


def dependency_text(dependencies: Dependencies) -> str:
    """Return the dependencies that are not met, such as `afterok:7(unfulfilled)`."""
    return ("?" if dependencies.any_of else ",").join(map(_term, dependencies.open))


def _term(item: Dependency) -> str:
    if item.job is None:
        return f"{item.kind}({item.state.value})"
    task = "_*" if item.all_tasks else "" if item.task is None else f"_{item.task}"
    delay = f"+{item.minutes}" if item.minutes else ""
    return f"{item.kind}:{item.job}{task}{delay}({item.state.value})"


def requested_counts(wanted: ResourceRequest) -> dict[str, int]:
    """Return the TRES that a job requests, without memory that is all of a node."""
    nodes, cpus = wanted.nodes, wanted.cpus
    memory = (wanted.memory_per_node or 0) * nodes + (wanted.memory_per_cpu or 0) * cpus
    return {"cpu": cpus, "mem": memory, "node": nodes}


def tres_text(counts: Mapping[str, int], rules: PartitionRules | None, rule: BillingRule) -> str:
    """Return TRES with their billing units, such as `cpu=4,mem=8G,node=1,billing=4`, but no zeros.

    Args:
        counts: the TRES, memory in MiB.
        rules: the partition, for its weights.
        rule: rule that combines the weighted TRES.
    """
    exact = {name: Fraction(count) for name, count in counts.items()}
    billed = int(billing(exact, None if rules is None else rules.weights, rule))
    shown = {
        name: shortened(count, unit="M") if name == "mem" else str(count)
        for name, count in {**counts, "billing": billed}.items()
        if count
    }
    return ",".join(f"{name}={count}" for name, count in shown.items())


def exit_code(status: int) -> tuple[int, int]:
    """Return exit code and signal of a status of wait(2)."""
    return status >> 8, status & 0x7F


def job_files(request: PendingJob, submission: Submission, node: str) -> Files:
    """Return the files of a job, with the symbols of their patterns as far as they are known.

    Args:
        request: the job.
        submission: facts of its submission.
        node: its first node; empty: it has none.
    """
    values: dict[str, int | str] = {
        "A": request.array or request.number,
        "j": request.number,
        "x": submission.name,
        "u": request.user,
    }
    if request.task >= 0:
        values["a"] = request.task
    if node:
        values["N"] = node

    def path(pattern: str) -> str:
        with suppress(InvalidInput):  # a name with a slash: the start says so
            pattern = expand_pattern(pattern, values, field="output")
        return str(PurePosixPath(submission.directory, pattern))

    default = OUTPUT if request.array is None else ARRAY_OUTPUT
    output = path(submission.output or default)
    error = path(submission.error) if submission.error else output
    return Files(path(submission.input or "/dev/null"), output, error)


def _elapsed(job: WlmJob, now: Moment) -> int:
    run = job.run
    if job.state.base == "PENDING" or run is None or run.started is None:
        return 0
    return run.elapsed if run.ended is not None else now.mono - run.started.mono


def _limit(state: CoreState, job: WlmJob) -> int | None:
    """Return the time limit; None: that of the partition, which the job gets when it starts."""
    limit = job.request.limit
    if limit is not None:
        return limit
    rules = (state.partitions.get(name) for name in job.request.partitions)
    has_most = any(one is not None and one.max_seconds for one in rules)
    return None if has_most and job.state.base == "PENDING" else NO_LIMIT


def _share(grant: NodeGrant) -> JobShare:
    cores = compress(map(str, grant.binding.cores)).strip("[]")
    return JobShare(grant.binding.node, cores, grant.memory)
