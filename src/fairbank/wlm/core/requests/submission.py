"""Submission of jobs: sizes, rights, defaults. `acceptance` has the tests of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from fairbank.cluster.dependency import Dependencies
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import Busy, Forbidden, InvalidInput
from fairbank.core.slurm_numbers import PRIORITY_MAX
from fairbank.core.time import MINUTE
from fairbank.jobqueue.dependencies import accept_dependencies
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.ends import test_dependencies
from fairbank.wlm.core.events import Caller, SubmitJob
from fairbank.wlm.core.factors.priorities import rank_jobs
from fairbank.wlm.core.factors.usage import note_association
from fairbank.wlm.core.jobs import ExpectedStart, HeldBy, WlmJob
from fairbank.wlm.core.requests.acceptance import check_job_name, check_limits, check_request
from fairbank.wlm.core.requests.known_names import check_known
from fairbank.wlm.core.requests.rights import is_operator
from fairbank.wlm.core.snapshot import expected_start
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition

FIRST_PRIORITY = PRIORITY_MAX // 2
"""Priority of the first job; each later one has one less (priority/basic)."""


class JobAccepted(NamedTuple):
    """Result of a submission: the id of the job, and with --test-only its expected start.

    `reason` is why none is expected, or empty.
    """

    number: int
    expected: ExpectedStart | None = None
    reason: str = ""


def submit(tx: Transition, caller: Caller, body: SubmitJob) -> JobAccepted:
    """Accept a job, or refuse it.

    Args:
        tx: the transition.
        caller: user who submits it.
        body: the job.

    Raises:
        FairbankError: the first reason for which it is refused.
    """
    state = tx.state
    _check_size(state, body)
    if caller.uid != body.submission.uid and not is_operator(state.settings, caller):
        raise Forbidden(
            "a job can be submitted for another user by operators only",
            field="uid",
            remedy="submit it as yourself",
        )
    request = _with_defaults(tx, caller, body)
    check_request(state, request)
    tasks = 1 if body.array is None else len(body.array.numbers)
    check_limits(state, request, tasks, tx.now)
    job = _new_job(tx, body, request)
    if body.test_only:
        return _tested(tx, job)
    job = tx.put_job(job)
    note_association(tx, job)
    rank_jobs(tx, [job])
    test_dependencies(tx, state.jobs[job.number])
    tx.request_plan()
    return JobAccepted(job.number)


def _new_job(tx: Transition, body: SubmitJob, request: PendingJob) -> WlmJob:
    """Return the job of a request that is accepted. Raises FairbankError for its dependencies."""
    number, array = tx.next_id(), body.array
    request = msgspec.structs.replace(
        request,
        number=number,
        array=None if array is None else number,
        submitted=tx.now.wall,
        throttle=None if array is None else array.throttle,
    )
    job = WlmJob(
        request=request,
        submission=body.submission,
        tasks=() if array is None else array.numbers,
        held_by=HeldBy.USER if body.held and not body.test_only else None,
        has_fixed_priority=bool(body.job.priority),
        owner=body.owner,
    )
    if body.dependencies is None:
        return job
    on = accept_dependencies(
        body.dependencies, job.for_dependencies(), tx.state.index, lambda _: ()
    )
    return msgspec.structs.replace(job, dependencies=on)


def _tested(tx: Transition, job: WlmJob) -> JobAccepted:
    """Return when a job would start whose hold, begin time and dependencies were over by then.

    The caller takes the changes back.
    """
    begin = job.request.eligible
    request = msgspec.structs.replace(job.request, eligible=tx.now.wall)
    job = tx.put_job(msgspec.structs.replace(job, request=request, dependencies=Dependencies()))
    note_association(tx, job)
    rank_jobs(tx, [job])
    expected = expected_start(tx.state, job.number, tx.now)
    if isinstance(expected, str):
        return JobAccepted(job.number, reason=expected)
    return JobAccepted(job.number, expected._replace(at=max(expected.at, begin)))


def _check_size(state: CoreState, body: SubmitJob) -> None:
    cluster, tasks = state.settings.cluster, () if body.array is None else body.array.numbers
    if body.array is not None and (not tasks or tasks[-1] >= cluster.max_array_size):
        raise InvalidInput(
            f"task {max(tasks, default=0)} is beyond MaxArraySize",
            field="array",
            remedy=f"numbers from 0 to {cluster.max_array_size - 1}",
        )
    if len(state.jobs) >= cluster.max_job_count:
        raise Busy(
            f"the cluster has {len(state.jobs):,} jobs, the most that it keeps (MaxJobCount)"
        )
    check_job_name(body.submission.name)


def _with_defaults(tx: Transition, caller: Caller, body: SubmitJob) -> PendingJob:
    """Return the request with the default partition, time limit, priority and TRES."""
    state, job = tx.state, body.job
    names = tuple(name for name in job.partitions if name) or default_partition(state.partitions)
    for name in names:
        check_known("partition", name, state.partitions)
    if (job.priority or body.submission.nice < 0) and not is_operator(state.settings, caller):
        raise Forbidden(
            "only operators may set a priority, or a negative nice value",
            field="priority",
            remedy="leave it out, or lower the priority with --nice",
        )
    limit = state.partitions[names[0]].default_seconds if job.limit is None else job.limit
    check_least_time(job.time_min, limit)
    wanted = _with_least_nodes(job.wanted, [state.partitions[name] for name in names])
    return msgspec.structs.replace(
        job,
        partitions=names,
        wanted=wanted,
        limit=limit or None,
        qos_flags=state.settings.accounting.qos_flags.get(job.qos, frozenset()),
        is_privileged=is_operator(state.settings, caller),
        priority=job.priority
        or max(tx.count("priority", FIRST_PRIORITY, -1) - body.submission.nice, 1),
        tres={**job.tres, **requested_tres(wanted)},
    )


def _with_least_nodes(wanted: ResourceRequest, rules: list[PartitionRules]) -> ResourceRequest:
    """Return the request with the lowest MinNodes of its partitions, if its maximum allows it."""
    least = min(one.min_nodes for one in rules)
    if wanted.nodes >= least or (wanted.max_nodes is not None and wanted.max_nodes < least):
        return wanted
    return msgspec.structs.replace(wanted, nodes=least)


def requested_tres(wanted: ResourceRequest) -> dict[str, int]:
    """Return the CPUs, nodes and GPUs that limits count before the job has nodes."""
    gpus = {"gres/gpu": wanted.gpu_count} if wanted.gpu_count else {}
    return {"cpu": wanted.cpus, "node": wanted.nodes, **gpus}


def check_least_time(time_min: int | None, limit: int | None) -> None:
    """Raise InvalidInput if a job accepts no limit as short as its own."""
    if time_min is not None and limit is not None and time_min > limit:
        raise InvalidInput(
            f"the least time of {time_min // MINUTE} minutes is above the limit of"
            f" {limit // MINUTE}",
            field="time-min",
            remedy="give a least time up to the time limit",
        )


def default_partition(partitions: Mapping[str, PartitionRules]) -> tuple[str, ...]:
    """Return the partition of jobs that name none. Raises InvalidInput if there is none."""
    for rules in partitions.values():
        if rules.is_default:
            return (rules.name,)
    raise InvalidInput(
        "no partition is named, and none is the default",
        field="partition",
        remedy=f"name one of: {', '.join(sorted(partitions))}",
    )
