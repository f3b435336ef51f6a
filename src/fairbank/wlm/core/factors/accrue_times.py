"""Accrue times of pending jobs under the limits on jobs that age at once (slurm-rules.md,
"Priority factors").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairbank.priority.associations import account_chain, own_association
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.multifactor.accrual import NOT_YET, AccrualJob, AgeScope, accrue, age_scope
from fairbank.priority.settings import Flag
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition

_MOST = LimitKind.MAX_JOBS_ACCRUE


def accrue_time(state: CoreState, job: WlmJob, now: int) -> int:
    """Return the time since when a pending job ages, 0 if it does not yet."""
    request, priority = job.request, state.settings.priority
    if priority.by_factors and Flag.ACCRUE_ALWAYS in priority.factors.flags:
        return request.submitted
    if not job.is_eligible(now):
        return NOT_YET
    return job.accrued if state.limits_accrual else max(request.eligible, job.eligible_since)


def note_accrue_times(tx: Transition) -> None:
    """Let jobs age for which a place is free; those that are held now lose theirs.

    A record of an array that gets fewer places than it has tasks loses as many to jobs of their
    own.
    """
    if not tx.state.limits_accrual:
        return
    for job in [job for job in tx.state.jobs.values() if job.state.is_waiting and job.accrued]:
        if job.hold_reason is not None:
            tx.put_job(job, accrued=NOT_YET)
    jobs = sorted((job for job in tx.state.jobs.values() if job.state.is_waiting), key=_rank)
    for job, aged in zip(jobs, accrue([*_queue(tx.state, jobs)], tx.now.wall), strict=True):
        if aged.at == NOT_YET:
            continue
        if aged.tasks >= len(job.tasks):
            tx.put_job(job, accrued=aged.at)
            continue
        for task in job.tasks[: aged.tasks]:
            tx.put_job(tx.split_task(tx.state.jobs[job.number], task), accrued=aged.at)


def _rank(job: WlmJob) -> tuple[int, int, int]:
    return -job.request.priority, job.request.submitted, job.number


def _queue(state: CoreState, jobs: Iterable[WlmJob]) -> Iterator[AccrualJob]:
    scopes: dict[tuple[str, str, str, str], AgeScope] = {}
    for job in jobs:
        request = job.request
        place = request.account, request.user, request.qos, request.partitions[0]
        if place not in scopes:
            scopes[place] = _scope(state, *place)
        yield AccrualJob(
            scopes[place],
            tasks=max(len(job.tasks), 1),
            eligible_at=max(request.eligible, job.eligible_since),
            accrued_at=job.accrued,
            is_ready=job.hold_reason is None,
        )


def _scope(state: CoreState, account: str, user: str, qos: str, partition: str) -> AgeScope:
    """Return the limits on the age of the jobs of a user in an account. Users inherit
    MaxJobsAccrue of the first account above that has it.
    """
    records, of_qos = state.accounts.associations, state.settings.accounting.qos.get(qos)
    own = own_association(records, account, user, partition)
    rows = () if own is None else (own, *account_chain(records, own.parent))
    chain = [((row.name, row.user, row.partition), row.limits.jobs) for row in rows]
    most = (limits[_MOST] for _, limits in chain if _MOST in limits)
    if (inherited := next(most, None)) is not None:
        chain[0] = (chain[0][0], {**chain[0][1], _MOST: inherited})
    return age_scope(user, account, (qos, of_qos.limits.jobs if of_qos else {}), chain)
