"""Accrue times of pending jobs under the limits on jobs that age at once (slurm-rules.md,
"Priority factors").
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fairbank.priority.associations import AssociationKey, account_chain, own_association
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord
from fairbank.priority.multifactor.accrual import (
    NONE,
    NOT_YET,
    AccrualLimits,
    AccrualQueue,
    Integers,
    accrue,
)
from fairbank.priority.settings import Flag
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition


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
    now = tx.now.wall
    for job in [job for job in tx.state.jobs.values() if job.state.is_waiting and job.accrued]:
        if job.hold_reason is not None:
            tx.put_job(job, accrued=NOT_YET)
    jobs = sorted((job for job in tx.state.jobs.values() if job.state.is_waiting), key=_rank)
    records = tx.state.accounts.associations
    begun = accrue(
        _queue(tx.state, jobs, [*records]),
        _limits(tx.state, [*records.values()], [*records]),
        flags=frozenset(),
        limits_enforced=True,
        now=now,
    )
    for job, at, places in zip(jobs, begun.at.tolist(), begun.tasks.tolist(), strict=True):
        if at == NOT_YET:
            continue
        if places >= len(job.tasks):
            tx.put_job(job, accrued=at)
            continue
        for task in job.tasks[:places]:
            tx.put_job(tx.split_task(tx.state.jobs[job.number], task), accrued=at)


def _rank(job: WlmJob) -> tuple[int, int, int]:
    return -job.request.priority, job.request.submitted, job.number


def _queue(state: CoreState, jobs: list[WlmJob], keys: list[AssociationKey]) -> AccrualQueue:
    """Return the waiting jobs. The row after the last association is that of jobs without any."""
    rows = {key: row for row, key in enumerate(keys)}
    names = {key: key for key in keys}
    qos = {name: row for row, name in enumerate(state.settings.accounting.qos)}

    def association(job: WlmJob) -> int:
        request = job.request
        place = request.account, request.user, request.partitions[0]
        key = own_association(names, *place)
        return len(keys) if key is None else rows[key]

    accounts = [job.request.account for job in jobs]
    users = [job.request.user for job in jobs]
    return AccrualQueue(
        user=np.array(_numbers(users), dtype=np.intp),
        account=np.array(_numbers(accounts), dtype=np.intp),
        association=np.array([association(job) for job in jobs], dtype=np.intp),
        qos=np.array([qos.get(job.request.qos, NONE) for job in jobs], dtype=np.intp),
        submitted_at=_column(job.request.submitted for job in jobs),
        eligible_at=_column(max(job.request.eligible, job.eligible_since) for job in jobs),
        accrued_at=_column(job.accrued for job in jobs),
        ready=np.array([job.hold_reason is None for job in jobs], dtype=np.bool_),
        tasks=_column(max(len(job.tasks), 1) for job in jobs),
    )


def _limits(
    state: CoreState, records: list[LimitRecord], keys: list[AssociationKey]
) -> AccrualLimits:
    rows = {key: row for row, key in enumerate(keys)}
    parents = [rows.get((record.parent, "", ""), NONE) for record in records]
    qos = [one.limits for one in state.settings.accounting.qos.values()]
    own = [record.limits for record in records]
    inherited = [_inherited(state, record) for record in records]
    return AccrualLimits(
        parent=np.array([*parents, NONE], dtype=np.intp),
        group=_of_kind([*own, AssociationLimits()], LimitKind.GRP_JOBS_ACCRUE),
        each=_of_kind([*inherited, AssociationLimits()], LimitKind.MAX_JOBS_ACCRUE),
        qos_group=_of_kind(qos, LimitKind.GRP_JOBS_ACCRUE),
        qos_per_account=_of_kind(qos, LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT),
        qos_per_user=_of_kind(qos, LimitKind.MAX_JOBS_ACCRUE_PER_USER),
    )


def _inherited(state: CoreState, record: LimitRecord) -> AssociationLimits:
    """Return the limits of an association, or of the first account above with MaxJobsAccrue."""
    chain = (record, *account_chain(state.accounts.associations, record.parent))
    limits = (one.limits for one in chain)
    return next((one for one in limits if LimitKind.MAX_JOBS_ACCRUE in one.jobs), record.limits)


def _of_kind(limits: Iterable[AssociationLimits], kind: LimitKind) -> Integers:
    return _column(one.jobs.get(kind, NONE) for one in limits)


def _column(values: Iterable[int]) -> Integers:
    return np.array([*values], dtype=np.int64)


def _numbers(names: list[str]) -> list[int]:
    """Return a number for each distinct name."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]
