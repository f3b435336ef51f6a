"""Snapshot of a live Slurm: nodes, running and pending jobs, and the rules of the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairbank.cluster.partition_rules import AccessList, PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import FairbankError, list_some
from fairbank.jobqueue.limits import CountedJob, LimitInputs, QueueLimits
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitUsage, QosLimits
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.machines.partition_access import CONFIG
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.slurm.parsers.config import read_billing_rule
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.answers import QueueAnswers
from fairbank.slurm.queue_snapshot.jobs import pending_jobs, running_job
from fairbank.slurm.queue_snapshot.settings import (
    PARAMETERS,
    preemption,
    scheduler_parameters,
    select_settings,
    unsupported_notes,
)

ACCOUNTS_BELOW = (23, 2)
"""Release from which partitions accept also the accounts below those that they name, and test
groups together with access.
"""

RUN_MINUTES_TESTED = (24, 5)
"""Release from which slurmctld tests the limits of a QOS on the minutes that the running jobs of a
user or account may still take. Earlier ones only store them.
"""
_RUN_MINUTES = frozenset(
    {LimitKind.MAX_TRES_RUN_MINS_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT}
)


class LiveQueue(NamedTuple):
    """Queue of a live Slurm.

    `slurm_jobs` are the jobs as slurmctld has them, by their number here, of which each array task
    has one. `notes` are sentences on what differs from slurmctld.
    """

    now: int
    snapshot: OnNodes
    parameters: SchedulerParameters
    slurm_jobs: Mapping[int, SlurmJob]
    notes: Sequence[str]


def build_queue(answers: QueueAnswers) -> LiveQueue:
    """Build the queue.

    Raises InvalidInput if the output contradicts itself, as for unknown nodes.
    """
    notes = [
        *unsupported_notes(answers.config, answers.least_loaded),
        *simplification_notes(answers.jobs),
        *_unread_node_notes(answers),
    ]
    settings = select_settings(answers.config, answers.qos)
    partitions = [_with_access(rules, answers) for rules in answers.partitions]
    cluster = NodeTable(answers.nodes, partitions)
    reservations = {reservation.name: reservation for reservation in answers.reservations}
    jobs = [
        with_one_reservation(slurm_job, reservations, answers.now) for slurm_job in answers.jobs
    ]
    slurm_jobs = {slurm_job.job_id: slurm_job for slurm_job in jobs}
    pending: list[PendingJob] = []
    for slurm_job in jobs:
        if slurm_job.is_pending:
            groups = answers.groups.get(slurm_job.user, ())
            fair_share = answers.fair_shares.get(slurm_job.job_id)
            tasks = list(pending_jobs(slurm_job, settings, groups, fair_share))
            slurm_jobs.update((job.number, slurm_job) for job in tasks)
            pending += tasks
    active: list[Active] = []
    for slurm_job in jobs:
        if not slurm_job.is_pending:
            try:
                active.append(running_job(slurm_job, cluster, settings, answers.unread_nodes))
            except FairbankError as error:
                notes.append(f"job {slurm_job.squeue_name} is left out: {error.message}")
    parameters = scheduler_parameters(answers.config.get(PARAMETERS, ""), notes)
    nodes = Nodes(
        cluster,
        reservations=answers.reservations,
        preemption=preemption(answers.config, answers.qos),
        limits=QueueLimits(_limit_inputs(answers, jobs)),
    )
    return LiveQueue(
        answers.now,
        node_snapshot(nodes, pending=pending, running=active),
        parameters,
        slurm_jobs,
        notes,
    )


def _with_access(rules: PartitionRules, answers: QueueAnswers) -> PartitionRules:
    """Return the rules, with the accounts below those that the partition names, and with the
    reasons that this release gives (slurm-rules.md, "Partitions").
    """
    is_recent = _release(answers.config) >= ACCOUNTS_BELOW
    enforced = answers.config.get("EnforcePartLimits", "NO") != "NO"
    accounts = rules.accounts
    if is_recent and answers.config.get("AccountingStorageEnforce", "none").lower() == "none":
        accounts = None
    elif accounts is not None and is_recent:
        parents = {record.name: record.parent for record in answers.associations if not record.user}
        below = frozenset(name for name in parents if {*_above(name, parents)} & {*accounts.names})
        accounts = msgspec.structs.replace(accounts, below=below)
    return msgspec.structs.replace(
        rules,
        accounts=_tested_early(accounts, early=enforced),
        qos=_tested_early(rules.qos, early=enforced),
        groups=_tested_early(rules.groups, early=enforced or not is_recent),
    )


def _tested_early(access: AccessList | None, *, early: bool) -> AccessList | None:
    """Return the list; `early`: with the reason that slurmctld gives if it tests the list with the
    limits of the partition.
    """
    return access and msgspec.structs.replace(access, reason=CONFIG) if early else access


def _tested_limits(limits: AssociationLimits, config: Mapping[str, str]) -> AssociationLimits:
    """Return the limits of a QOS without those that slurmctld of this release does not test."""
    if _release(config) >= RUN_MINUTES_TESTED:
        return limits
    tres = {kind: counts for kind, counts in limits.tres.items() if kind not in _RUN_MINUTES}
    return msgspec.structs.replace(limits, tres=tres)


def _release(config: Mapping[str, str]) -> tuple[int, ...]:
    """Return the release as numbers; none if it is unknown."""
    return tuple(
        int(part) for part in config.get("SLURM_VERSION", "").split(".") if part.isdecimal()
    )


def _above(account: str, parents: Mapping[str, str]) -> Iterator[str]:
    """Yield the accounts above one."""
    seen = {account}
    while (account := parents.get(account, "")) and account not in seen:
        yield account
        seen.add(account)


def _limit_inputs(answers: QueueAnswers, jobs: Iterable[SlurmJob]) -> LimitInputs:
    used = {record.name: record.used for record in answers.qos_usage}
    return LimitInputs(
        enforced=Enforced.parse(answers.config.get("AccountingStorageEnforce", "")),
        running={job.job_id: _counted(job, answers.now) for job in jobs if not job.is_pending},
        associations={
            (record.name, record.user, record.partition): record for record in answers.associations
        },
        qos={
            qos.name: QosLimits(
                name=qos.name,
                limits=_tested_limits(qos.limits, answers.config),
                used=used.get(qos.name, LimitUsage()),
                usage_factor=qos.usage_factor,
                usage_factor_safe="UsageFactorSafe" in qos.flags,
                over_partition="OverPartQOS" in qos.flags,
                limit_factor=qos.limit_factor,
            )
            for qos in answers.qos
        },
        partitions={rules.name: rules for rules in answers.partitions},
        billing_rule=read_billing_rule(answers.config.get("PriorityFlags", "")),
        licenses={record.name: record for record in answers.licenses},
        nodes=[node.name for node in answers.nodes],
    )


def _counted(slurm_job: SlurmJob, now: int) -> CountedJob:
    """Return a running job as limits count it, with its billing units if they are printed."""
    billing = {} if slurm_job.billing is None else {"billing": slurm_job.billing}
    return CountedJob(
        account=slurm_job.account,
        user=slurm_job.user,
        qos=slurm_job.qos,
        partition=slurm_job.partitions[0],
        tres={**slurm_job.tres, **billing},
        array=slurm_job.array,
        nodes=frozenset(name for share in slurm_job.allocated for name in share.nodes),
        seconds=max((slurm_job.ends or now) - now, 0),
    )


def with_one_reservation(
    slurm_job: SlurmJob, reservations: Mapping[str, Reservation], now: int
) -> SlurmJob:
    """Return the job in the reservation in which it may start soonest; of several, the first to
    begin.

    slurmctld has an entry in its queue for each reservation; here one stands for all.

    Args:
        slurm_job: the job. If it names at most one reservation, it is returned unchanged.
        reservations: all reservations of the cluster, by name; an unknown one comes last.
        now: the time, in seconds since 1970, that decides which are active or over.
    """
    names = _reservation_names(slurm_job)
    if len(names) < 2:
        return slurm_job
    return msgspec.structs.replace(
        slurm_job,
        reservation=min(names, key=lambda name: _rank(reservations.get(name), slurm_job, now)),
    )


def _rank(reservation: Reservation | None, slurm_job: SlurmJob, now: int) -> tuple[int, int]:
    """Rank reservations: usable now, to come, over, for others, unknown."""
    if reservation is None:
        return 4, 0
    if not reservation.is_for(slurm_job.user, slurm_job.account):
        return 3, reservation.begin
    if reservation.is_over(now):
        return 2, reservation.begin
    return 0 if reservation.is_active(now) or reservation.flexible else 1, reservation.begin


def simplification_notes(jobs: Iterable[SlurmJob]) -> Iterator[str]:
    """Yield sentences on pending jobs that the passes treat otherwise than slurmctld does: of their
    QOS or reservations only one counts here.
    """
    waiting = [slurm_job for slurm_job in jobs if slurm_job.is_pending]
    yield from _job_note(
        "of several QOS only the first counts here",
        [slurm_job for slurm_job in waiting if slurm_job.other_qos],
    )
    yield from _job_note(
        "of several reservations only one counts here, the soonest",
        [slurm_job for slurm_job in waiting if len(_reservation_names(slurm_job)) > 1],
    )


def _unread_node_notes(answers: QueueAnswers) -> Iterator[str]:
    """Yield a sentence on running jobs of which the nodes that were not read do not count here."""
    unread = frozenset(answers.unread_nodes)
    yield from _job_note(
        "the nodes of running jobs whose lines were not read do not count here",
        [
            slurm_job
            for slurm_job in answers.jobs
            if any(unread.intersection(part.nodes) for part in slurm_job.allocated)
        ],
    )


def _reservation_names(slurm_job: SlurmJob) -> list[str]:
    return (slurm_job.reservation or "").split(",")


def _job_note(sentence: str, jobs: list[SlurmJob]) -> Iterator[str]:
    if jobs:
        yield f"{sentence}: job {list_some([slurm_job.squeue_name for slurm_job in jobs])}"
