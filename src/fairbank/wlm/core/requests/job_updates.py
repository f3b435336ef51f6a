"""Changes of a job by `scontrol update`: which fields, of which jobs, by whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

_OF_REQUEST = (
    "limit", "time_min", "eligible", "deadline", "partitions", "account", "qos", "reservation",
    "throttle", "wanted", "licenses",
)  # fmt: skip
_OF_SUBMISSION = (
    "name", "comment", "may_requeue", "nice", "extra", "output", "error", "directory",
    "mail_types", "mail_user", "site_factor",
)  # fmt: skip
KEYWORDS = {
    "limit": "TimeLimit", "time_min": "TimeMin", "eligible": "StartTime", "deadline": "Deadline",
    "partitions": "Partition", "account": "Account", "qos": "QOS", "licenses": "Licenses",
    "reservation": "ReservationName", "throttle": "ArrayTaskThrottle", "name": "JobName",
    "comment": "Comment", "may_requeue": "Requeue", "nice": "Nice", "extra": "Extra",
    "wanted": "the request of resources", "output": "StdOut", "error": "StdErr",
    "directory": "WorkDir", "mail_types": "MailType", "mail_user": "MailUser",
    "dependencies": "Dependency", "priority": "Priority", "admin_comment": "AdminComment",
    "site_factor": "SiteFactor",
}  # fmt: skip
"""Fields of a change by their names in scontrol, for messages."""
_WHILE_RUNNING = frozenset(
    "admin_comment comment extra limit mail_types mail_user may_requeue name nice priority"
    " site_factor throttle".split()
)
_COUNTED = frozenset({"partitions", "wanted", "account", "qos", "limit"})
"""Changes after which limits of accounting are checked as at submission."""
_BY_OPERATORS = frozenset({"priority", "admin_comment", "site_factor"})


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
    refused = changes.keys() - _WHILE_RUNNING
    if job.state.base == "PENDING" or not refused:
        return None
    fields = ", ".join(sorted({KEYWORDS[field] for field in refused}))
    possible = ", ".join(sorted(KEYWORDS[field] for field in _WHILE_RUNNING))
    return Conflict(
        f"{fields} of job {job.name} cannot change: the job is {job.state.shown}",
        field="started",
        remedy=f"of such a job, only these can: {possible}",
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
        if raises_limit or is_negative or (name in _BY_OPERATORS and not holds):
            raise Forbidden(
                f"only operators may {'raise' if raises_limit else 'set'} {KEYWORDS[name]}"
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
    request = msgspec.structs.replace(
        job.request, **{name: changes[name] for name in _OF_REQUEST if name in changes}
    )
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
    submission = msgspec.structs.replace(
        job.submission, **{name: changes[name] for name in _OF_SUBMISSION if name in changes}
    )
    if {"partitions", "wanted", "reservation", "account", "qos", "limit"} & changes.keys():
        check_request(tx.state, request)
    if "name" in changes:
        check_job_name(submission.name)
    if {"limit", "time_min"} & changes.keys():
        check_least_time(request.time_min, request.limit)
    if job.state.is_waiting and _COUNTED & changes.keys():
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
