"""Allocations for the history before the bank, so that its charges do not use new credit."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from fairbank.slurm.parsers.values import AccountingJob
from fairbank.slurm.reconcile.bank_records import (
    BankAllocation,
    BankCluster,
    BankFunds,
    BankProject,
)
from fairbank.slurm.reconcile.prices import ClusterPrices


class HistoryAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation to create, of exactly the price of its jobs. Valid at t when start <= t < end."""

    project: int
    account: str
    resource: str
    start: int
    end: int
    amount: int
    jobs: int


def as_bank_allocation(cover: HistoryAllocation) -> BankAllocation:
    """Return the allocation as it will be once it is created. Its number is not known yet."""
    return BankAllocation(
        id=0,
        project=cover.project,
        resource=cover.resource,
        start=cover.start,
        end=cover.end,
        state="active",
        shared=False,
        deposited=cover.amount,
        held=0,
        available=cover.amount,
    )


def plan_allocations(
    jobs: Sequence[AccountingJob],
    projects: Sequence[BankProject],
    allocations: Sequence[BankAllocation],
    cluster: BankCluster,
) -> list[HistoryAllocation]:
    """Plan one allocation for each gap between a project's allocations of a resource.

    Only gaps with jobs that no allocation would pay count. Jobs that cost nothing count too: the
    bank accepts no end without an allocation, not even one of a node failure.

    Args:
        jobs: finished jobs.
        projects: of the bank, perhaps with those that an import will create.
        allocations: that exist.
        cluster: with its prices.
    """
    funds, prices = BankFunds(projects, allocations), ClusterPrices(cluster)
    gaps: dict[tuple[int, str, int], list[tuple[int, int]]] = defaultdict(list)
    for job in {
        (job.job_id, job.submitted, job.start): job for job in jobs if job.has_ended
    }.values():
        project = funds.by_account.get(job.account)
        partition = cluster.partitions.get(job.partition)
        cost = prices.end_price(job)
        if (
            project is None
            or partition is None
            or job.start is None
            or cost is None
            or not job.elapsed
        ):
            continue
        if funds.payers(project.id, partition.resource, job.start):
            continue
        starts = [allocation.start for allocation in funds.own(project.id, partition.resource)]
        gaps[project.id, partition.resource, bisect_right(starts, job.start)].append(
            (job.start, cost)
        )
    accounts = {project.id: project.account for project in projects}
    return [
        HistoryAllocation(
            project=project,
            account=accounts[project],
            resource=resource,
            start=min(start for start, _ in charges),
            end=max(start for start, _ in charges) + 1,
            amount=sum(cost for _, cost in charges),
            jobs=len(charges),
        )
        for (project, resource, _), charges in sorted(gaps.items())
    ]
