"""Priorities of pending jobs by their factors (priority/multifactor), and fair share.

Fair-share factors follow from the usage and are not stored. The priorities of all pending jobs are
computed at each tick, those of one job when it is submitted, changed or released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from fairbank.cluster.node import total_tres
from fairbank.jobqueue.factors import FactorCluster, FactorJob, FactorPartition
from fairbank.priority.associations import ROOT, AssociationKey
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import (
    ShareAssociation,
    Standings,
    Tree,
    build_tree,
    sum_usage,
)
from fairbank.priority.multifactor.combination import PriorityTerms, priorities, weigh_factors
from fairbank.priority.multifactor.pending_jobs import FactorScale, PendingColumns
from fairbank.priority.settings import Algorithm, MultifactorSettings
from fairbank.wlm.core.events import TimerKind
from fairbank.wlm.core.factors.accrue_times import accrue_time
from fairbank.wlm.core.factors.usage import count_tick, row_association, row_key
from fairbank.wlm.core.jobs import AssociationUsage, WlmJob
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition


class FairShares(NamedTuple):
    """Tree of associations and their standings. The rows are those of sshare."""

    tree: Tree
    standings: Standings

    def factors(self) -> dict[AssociationKey, float]:
        """Return the factor of each user's association."""
        rows, factors = self.tree.rows, self.standings.factor.tolist()
        return {
            (row.account, row.user, row.partition): factor
            for row, factor in zip(rows, factors, strict=True)
            if row.user
        }


JobEntry = tuple[WlmJob, str]
"""Pending job in one of its partitions."""


def fair_shares(state: CoreState) -> FairShares:
    """Return the shares: those of the accounts, and one for each other user who has had a job."""
    rows = dict(state.accounts.shares) or {(ROOT, "", ""): ShareAssociation(ROOT)}
    for used in sorted(state.usage):
        account, user, partition = row_association(used)
        rows.setdefault((account, "", ""), ShareAssociation(account, parent=ROOT))
        own = ShareAssociation(account, user, partition)
        rows.setdefault((account, user, partition), own)
    tree = build_tree([*rows.values()])
    nothing = AssociationUsage()
    billed = [
        state.usage.get(row_key(key), nothing).billing if row.user else 0.0
        for key, row in rows.items()
    ]
    usage = sum_usage(tree, billed)
    share = state.settings.priority.fair_share
    if share.algorithm is Algorithm.FAIR_TREE:
        return FairShares(tree, fair_tree(tree, usage))
    oblivious = share.algorithm is Algorithm.DEPTH_OBLIVIOUS
    standings = classic(tree, usage, dampening=share.dampening, depth_oblivious=oblivious)
    return FairShares(tree, standings)


def factor_terms(
    state: CoreState, settings: MultifactorSettings, jobs: Iterable[WlmJob], now: int
) -> tuple[list[JobEntry], PriorityTerms]:
    """Return the terms of pending jobs as sprio lists them, with the jobs in their order."""
    entries, columns, scale = _columns(state, jobs, now)
    return entries, weigh_factors(columns, scale, settings, now)


def rank_jobs(tx: Transition, jobs: Iterable[WlmJob]) -> None:
    """Store the priorities of pending jobs, but of those that an operator has given one."""
    settings, now = tx.state.settings.priority, tx.now.wall
    if not settings.by_factors:
        return
    jobs = [job for job in jobs if job.state.base == "PENDING" and not job.has_fixed_priority]
    entries, columns, scale = _columns(tx.state, jobs, now)
    ranks = iter(priorities(columns, scale, settings.factors, now).tolist())
    by_job: dict[int, list[int]] = {}
    for (job, _), rank in zip(entries, ranks, strict=True):
        by_job.setdefault(job.number, []).append(rank)
    for number, own in by_job.items():
        job = tx.state.jobs[number]
        several = tuple(own) if len(own) > 1 else ()
        request = replace(job.request, priority=max(own), priorities=several)
        if request != job.request:
            tx.put_job(job, request=request)


def tick(tx: Transition) -> None:
    """Count the usage and compute all priorities, every PriorityCalcPeriod."""
    settings = tx.state.settings.priority
    if not settings.by_factors:
        return
    count_tick(tx)
    rank_jobs(tx, list(tx.state.jobs.values()))
    tx.set_timer(TimerKind.PRIORITY, 0, tx.now.mono + settings.fair_share.tick_seconds)
    tx.request_plan()


def _columns(
    state: CoreState, jobs: Iterable[WlmJob], now: int
) -> tuple[list[JobEntry], PendingColumns, FactorScale]:
    cluster = _cluster(state)
    entries = [
        (job, partition)
        for job in jobs
        for partition in job.request.partitions
        if partition in cluster.partitions
    ]
    scale = cluster.scale()
    rows = [_factor_job(state, job, partition, now) for job, partition in entries]
    return entries, cluster.columns(rows, scale, fair_shares(state).factors()), scale


def _factor_job(state: CoreState, job: WlmJob, partition: str, now: int) -> FactorJob:
    request = job.request
    return FactorJob(
        account=request.account or ROOT,
        user=request.user,
        partition=partition,
        qos=request.qos,
        accrued_at=accrue_time(state, job, now),
        nodes=request.wanted.nodes,
        cpus=request.wanted.cpus,
        limit_minutes=(request.limit or 0) // 60,
        nice=job.submission.nice,
        site=job.submission.site_factor,
        tres={name: float(count) for name, count in request.tres.items()},
    )


def _cluster(state: CoreState) -> FactorCluster:
    nodes, settings = [*state.configured.values()], state.settings
    return FactorCluster(
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        tres=[*settings.priority.factors.weights.tres],
        partitions={
            rules.name: FactorPartition(
                rules.factor,
                (rules.max_seconds or 0) // 60,
                {name: float(count) for name, count in total_tres(state.nodes_in(rules)).items()},
            )
            for rules in state.partitions.values()
        },
        qos={name: rules.priority for name, rules in settings.scheduling.preemption.qos.items()},
        associations={},
    )
