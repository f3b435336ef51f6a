"""Changes of a job by `scontrol update`: which fields, of which jobs, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from fairbank.cluster.dependency import Dependencies
from fairbank.core.errors import Conflict, Forbidden
from fairbank.jobqueue.dependencies import accept_dependencies
from fairbank.wlm.core.ends import release_job, test_dependencies
from fairbank.wlm.core.events import Caller, UpdateJob
from fairbank.wlm.core.factors.priorities import rank_jobs
from fairbank.wlm.core.factors.usage import note_association
from fairbank.wlm.core.jobs import HeldBy, WlmJob
from fairbank.wlm.core.requests.acceptance import check_job_name, check_limits, check_request
from fairbank.wlm.core.requests.job_requests import open_jobs
from fairbank.wlm.core.requests.rights import is_operator
from fairbank.wlm.core.requests.submission import check_least_time, requested_tres
from fairbank.wlm.core.starts import send_limit_to
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition


class _Field(NamedTuple):
    """Field of a change: its name in scontrol, and the record that has it.

    `while_running`: it can change then, too. `by_operators`: only they may change it. `is_counted`:
    limits of accounting are checked as at submission.
    """

    keyword: str
    record: Literal["request", "submission", "job"]
    while_running: bool = False
    by_operators: bool = False
    is_counted: bool = False


_FIELDS = {
    "account": _Field("Account", "request", is_counted=True),
    "deadline": _Field("Deadline", "request"),
    "eligible": _Field("StartTime", "request"),
    "licenses": _Field("Licenses", "request"),
    "limit": _Field("TimeLimit", "request", while_running=True, is_counted=True),
    "partitions": _Field("Partition", "request", is_counted=True),
    "qos": _Field("QOS", "request", is_counted=True),
    "reservation": _Field("ReservationName", "request"),
    "throttle": _Field("ArrayTaskThrottle", "request", while_running=True),
    "time_min": _Field("TimeMin", "request"),
    "wanted": _Field("the request of resources", "request", is_counted=True),
    "comment": _Field("Comment", "submission", while_running=True),
    "directory": _Field("WorkDir", "submission"),
    "error": _Field("StdErr", "submission"),
    "extra": _Field("Extra", "submission", while_running=True),
    "mail_types": _Field("MailType", "submission", while_running=True),
    "mail_user": _Field("MailUser", "submission", while_running=True),
    "may_requeue": _Field("Requeue", "submission", while_running=True),
    "name": _Field("JobName", "submission", while_running=True),
    "nice": _Field("Nice", "submission", while_running=True),
    "output": _Field("StdOut", "submission"),
    "site_factor": _Field("SiteFactor", "submission", while_running=True, by_operators=True),
    "admin_comment": _Field("AdminComment", "job", while_running=True, by_operators=True),
    "dependencies": _Field("Dependency", "job"),
    "priority": _Field("Priority", "job", while_running=True, by_operators=True),
}


def update(tx: Transition, caller: Caller, body: UpdateJob) -> None:
    """Change a job, or the tasks of an array whose states allow it: all fields of all, or nothing.

    Args:
        tx: the transition.
        caller: user who makes the request.
        body: the changes.

    Raises:
        FairbankError: the state of a job forbids a change, or the caller may not make it.
    """
    fields = msgspec.structs.asdict(body)
    changes = {
        name: value for name, value in fields.items() if name != "jobs" and value is not UNSET
    }
    jobs = open_jobs(tx, caller, body.jobs, "changed")
    refusals = [_refusal(job, changes) for job in jobs]
    if None not in refusals:
        raise next(filter(None, refusals))
    for job in (job for job, refusal in zip(jobs, refusals, strict=True) if refusal is None):
        _check_rights(tx, caller, job, changes)
        _apply(tx, caller, job, changes)
    tx.request_plan()


def _refusal(job: WlmJob, changes: dict[str, Any]) -> Conflict | None:
    """Return why the state of a job forbids a change; None if it allows all of them."""
    refused = sorted(_FIELDS[name].keyword for name in changes if not _FIELDS[name].while_running)
    if job.state.base == "PENDING" or not refused:
        return None
    possible = sorted(field.keyword for field in _FIELDS.values() if field.while_running)
    return Conflict(
        f"{', '.join(refused)} of job {job.name} cannot change: the job is {job.state.shown}",
        field="started",
        remedy=f"of such a job, only these can: {', '.join(possible)}",
    )


def _check_rights(tx: Transition, caller: Caller, job: WlmJob, changes: dict[str, Any]) -> None:
    """Check what only an operator may change.

    That is the priority, but 0, which holds the job; and a longer limit, but that of a pending job
    up to the limit of its partition.
    """
    if is_operator(tx.state.settings, caller):
        return
    before = job.request.limit
    for name in changes:
        value = changes[name]
        raises_limit = name == "limit" and before is not None and (value is None or value > before)
        if raises_limit and job.state.base == "PENDING":
            most = _longest_limit(tx.state, changes.get("partitions", job.request.partitions))
            raises_limit = most is not None and (value is None or value > most)
        holds = name == "priority" and value == 0
        is_negative = name == "nice" and value < 0
        if raises_limit or is_negative or (_FIELDS[name].by_operators and not holds):
            raise Forbidden(
                f"only operators may {'raise' if raises_limit else 'set'} {_FIELDS[name].keyword}"
                f" of job {job.name} like this",
                field="user",
                remedy="ask an operator of the cluster",
            )


def _longest_limit(state: CoreState, partitions: Sequence[str]) -> int | None:
    """Return the longest limit that a partition of a job allows; None: there is no limit."""
    limits = [state.partitions[name].max_seconds for name in partitions if name in state.partitions]
    known = [limit for limit in limits if limit]
    return max(known) if known and len(known) == len(limits) else None


def _apply(tx: Transition, caller: Caller, job: WlmJob, changes: dict[str, Any]) -> None:
    def of(record: str) -> dict[str, Any]:
        return {name: changes[name] for name in changes if _FIELDS[name].record == record}

    request = msgspec.structs.replace(job.request, **of("request"))
    if "qos" in changes:
        flags = tx.state.settings.accounting.qos_flags.get(request.qos, frozenset())
        request = msgspec.structs.replace(request, qos_flags=flags)
    if "wanted" in changes:
        tres = {**request.tres, **requested_tres(request.wanted)}
        request = msgspec.structs.replace(request, tres=tres)
    if "nice" in changes and not tx.state.settings.priority.by_factors:
        priority = request.priority - changes["nice"] + job.submission.nice
        request = msgspec.structs.replace(request, priority=max(priority, 1))
    if priority := changes.get("priority"):
        request = msgspec.structs.replace(request, priority=priority)
    submission = msgspec.structs.replace(job.submission, **of("submission"))
    if {"partitions", "wanted", "reservation", "account", "qos", "limit"} & changes.keys():
        check_request(tx.state, request)
    if "name" in changes:
        check_job_name(submission.name)
    if {"limit", "time_min"} & changes.keys():
        check_least_time(request.time_min, request.limit)
    if job.state.is_waiting and any(_FIELDS[name].is_counted for name in changes):
        tx.put("jobs", job.number, None)  # the limits count the other jobs
        check_limits(tx.state, request, max(len(job.tasks), 1), tx.now)
        tx.put("jobs", job.number, job)
    before = job.request.limit
    job = tx.put_job(
        job,
        request=request,
        submission=submission,
        has_fixed_priority=job.has_fixed_priority or bool(changes.get("priority")),
        admin_comment=changes.get("admin_comment", job.admin_comment),
        reason=job.reason if job.held_by is HeldBy.BANK else "None",
    )
    if changes.get("priority") == 0 and job.held_by is None:
        by_operator = is_operator(tx.state.settings, caller)
        job = tx.put_job(job, held_by=HeldBy.ADMIN if by_operator else HeldBy.USER)
    if "dependencies" in changes:
        job = _with_dependencies(tx, job, changes["dependencies"])
    if job.held_by is HeldBy.RESERVATION and "reservation" in changes:
        release_job(tx, job)
        job = tx.state.jobs[job.number]
    if job.state.is_waiting:
        note_association(tx, job)
        rank_jobs(tx, [job])
    elif request.limit != before:
        _send_limit(tx, job)


def _with_dependencies(tx: Transition, job: WlmJob, expression: Any) -> WlmJob:
    """Replace the dependencies of a pending job; None takes them away."""
    on = Dependencies()
    if expression is not None:
        on = accept_dependencies(
            expression, job.for_dependencies(), tx.state.index, lambda number: _parents(tx, number)
        )
    job = tx.put_job(job, dependencies=on)
    test_dependencies(tx, job)
    return tx.state.jobs[job.number]


def _parents(tx: Transition, number: int) -> list[int]:
    """Return the numbers of the jobs on which a job, or a task of an array, still depends."""
    jobs = [tx.state.jobs[other.number] for other in tx.state.index.with_id(number)]
    return [item.job for job in jobs for item in job.dependencies.open if item.job is not None]


def _send_limit(tx: Transition, job: WlmJob) -> None:
    """Tell nodes and agent the new limit of a run."""
    run = job.active_run
    if run is not None and run.is_allowed:
        for node in run.left:
            send_limit_to(tx, job, run, node)
        tx.send_to_agent("limit", job, run)
