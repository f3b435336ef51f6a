"""Charges and refusals that Slurm's jobs would have had under the bank. Nothing is posted.

The credit that projects have now counts as if it had existed from the start of the period, with
what the bank has charged or holds for these jobs already. A run that would have been refused costs
nothing, so its credit is left for the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.project import Project
from fairbank.bank.records import BankCluster, BankFunds, BankRun
from fairbank.bank.run import UserSums
from fairbank.cluster.accounting_job import LIMIT_CELL, PRICE_CELLS, AccountingJob, UnreadableLine
from fairbank.core.units import SuMinutes
from fairbank.slurm.parsers.values import ParsedRows, SlurmPartition
from fairbank.slurm.reconcile.prices import ClusterPrices


class ShadowReason(Enum):
    """Reason why a job would have been refused."""

    NO_PROJECT = "no project has this account"
    NO_PRICE = "the bank does not know this partition"
    NO_LIMIT = "it has no finite time limit"
    NO_ALLOCATION = "the project has no allocation of this resource"
    FROZEN = "the allocation is frozen"
    INSUFFICIENT_CREDIT = "there is too little left"


class ShadowRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Job that would have been refused, with its price and the credit at that time (SU-minutes)."""

    job: AccountingJob
    reason: ShadowReason
    requested: int = 0
    available: int = 0


class ShadowAccount(msgspec.Struct, kw_only=True):
    """Result of one account on one resource, in SU-minutes.

    `held` is what its running jobs would hold, `left` the credit that no run would have used.
    """

    account: str
    resource: str
    jobs: int = 0
    charged: int = 0
    held: int = 0
    refused: int = 0
    refused_requested: int = 0
    left: int = 0


class ShadowResult(msgspec.Struct, frozen=True, kw_only=True):
    """Results of all accounts, the refusals, and the cells for which jobs are left out."""

    rows: tuple[ShadowAccount, ...]
    refused: tuple[ShadowRefusal, ...]
    unreadable: tuple[UnreadableLine, ...] = ()


class ShadowInput(msgspec.Struct, frozen=True, kw_only=True):
    """State of the bank at `now`."""

    cluster: BankCluster
    projects: Sequence[Project]
    allocations: Sequence[Allocation]
    now: int
    runs: Sequence[BankRun] = ()
    """Runs of the ledger, each once. What they have used is not used twice."""


def with_partition_limits(
    jobs: Iterable[AccountingJob], partitions: ParsedRows[SlurmPartition]
) -> list[AccountingJob]:
    """Return the jobs, those without a limit of their own with that of their partitions.

    Of several partitions it is the longest, as in the submission policy; there is none if one of
    them has none, or does not exist. A job with a partition that could not be read has a gap
    instead, unless another one has no limit.
    """
    minutes = {partition.name: partition.minutes_without_limit for partition in partitions.rows}
    unread = {line.entity: line for line in partitions.unreadable if line.entity}
    limited = []
    for job in jobs:
        if not job.has_own_limit:
            names = job.partition.split(",")
            known = [minutes.get(name, 0) for name in names if name not in unread]
            gaps = [_limit_gap(job, unread[name]) for name in names if name in unread]
            job = msgspec.structs.replace(
                job,
                limit_seconds=max(known) * 60 if all(known) and not gaps else None,
                gaps=(*job.gaps, *gaps) if all(known) else job.gaps,
            )
        limited.append(job)
    return limited


def _limit_gap(job: AccountingJob, line: UnreadableLine) -> UnreadableLine:
    why = f"job {job.job_id} has the limit of partition {line.entity}, which was not read"
    return msgspec.structs.replace(line, why=why, job_id=job.job_id)


def simulate(jobs: Sequence[AccountingJob], world: ShadowInput) -> ShadowResult:
    """Simulate the starts and ends of jobs in order of time.

    Pending jobs come last, as starting now.
    """
    prices = ClusterPrices(world.cluster)
    jobs = [prices.in_dearest_partition(job) for job in jobs]
    events = list(_events(jobs, world.now))
    shadow = _ShadowBank(_without_runs(world, (job for job, _ in events)))
    for job, is_end in events:
        if is_end:
            shadow.end(job)
        else:
            shadow.start(job)
    return ShadowResult(
        rows=tuple(shadow.rows()),
        refused=tuple(shadow.refused),
        unreadable=tuple(gap for job in jobs if _is_counted(job) for gap in _gaps(job)),
    )


def _is_counted(job: AccountingJob) -> bool:
    """Return True if the job has started or may start; others were cancelled before.

    Old versions of Slurm record the end of such a job as its start, too.
    """
    if job.start is None:
        return job.state == "PENDING"
    return not job.has_ended or bool(job.elapsed or job.tres)


def _gaps(job: AccountingJob) -> tuple[UnreadableLine, ...]:
    """Return the cells for which the job cannot be judged: its hold needs the limit."""
    return job.gaps_in({*PRICE_CELLS, LIMIT_CELL})


def _events(jobs: Sequence[AccountingJob], now: int) -> Iterator[tuple[AccountingJob, bool]]:
    """Yield each job at its start and, with True, at its end, by time."""
    events: list[tuple[int, int, int, AccountingJob]] = []
    for job in {
        (record.job_id, record.submitted, record.start): record for record in jobs
    }.values():
        if _gaps(job) or not _is_counted(job):
            continue
        begins = now if job.start is None else job.start
        events.append((begins, 1, job.job_id, job))
        if job.has_ended and job.end is not None:
            events.append((max(job.end, begins), 0 if job.end > begins else 2, job.job_id, job))
    for _, order, _, job in sorted(events, key=lambda event: event[:3]):
        yield job, order != 1


def _without_runs(world: ShadowInput, jobs: Iterable[AccountingJob]) -> ShadowInput:
    """Return the state as if the bank had neither charged these jobs nor held credit for them."""
    simulated = {(job.job_id, job.submitted) for job in jobs}
    used: Counter[int] = Counter()
    for run in world.runs:
        if (run.job_id, run.submitted) in simulated:
            used[run.allocation] += run.charged - run.refunded + run.held
    allocations = [
        msgspec.structs.replace(
            allocation, deposited=SuMinutes(allocation.deposited + used[allocation.id])
        )
        for allocation in world.allocations
    ]
    return msgspec.structs.replace(world, allocations=allocations)


class _ShadowBank:
    """Credit of the allocations while jobs start and end."""

    def __init__(self, world: ShadowInput) -> None:
        self._world, self._prices = world, ClusterPrices(world.cluster)
        self._funds = BankFunds(world.projects, world.allocations)
        self._left = {
            allocation.id: allocation.available_now(UserSums(), world.now)
            for allocation in world.allocations
        }
        self._holds: dict[AccountingJob, tuple[int, int]] = {}
        self._rows: dict[tuple[str, str], ShadowAccount] = {}
        self.refused: list[ShadowRefusal] = []

    def start(self, job: AccountingJob) -> None:
        reason, allocation, requested, available = self._judge(job)
        row = self._row(job)
        row.jobs += 1
        if reason is not None:
            refusal = ShadowRefusal(
                job=job, reason=reason, requested=requested, available=available
            )
            self.refused.append(refusal)
            row.refused += 1
            row.refused_requested += requested
            return
        self._holds[job] = (allocation, requested)
        self._left[allocation] -= requested
        row.held += requested

    def end(self, job: AccountingJob) -> None:
        if job not in self._holds:
            return
        allocation, requested = self._holds.pop(job)
        cost = self._prices.end_price(job) or 0
        self._left[allocation] += requested - cost
        row = self._row(job)
        row.held -= requested
        row.charged += cost

    def _judge(self, job: AccountingJob) -> tuple[ShadowReason | None, int, int, int]:
        """Return the refusal or the allocation that pays, the price, and the most credit in one
        place.
        """
        price = None if job.limit_seconds is None else self._prices.price(job, job.limit_seconds)
        project = self._funds.by_account.get(job.account)
        resource = self._resource(job)
        if project is None:
            return ShadowReason.NO_PROJECT, 0, price or 0, 0
        if resource is None:
            return ShadowReason.NO_PRICE, 0, 0, 0
        if price is None:
            return ShadowReason.NO_LIMIT, 0, 0, 0
        payers = self._funds.payers(project.id, resource, self._world.now)
        for allocation in payers:
            if allocation.state is AllocationState.ACTIVE and price <= self._left[allocation.id]:
                return None, allocation.id, price, self._left[allocation.id]
        if not payers:
            return ShadowReason.NO_ALLOCATION, 0, price, 0
        # As the ledger, which names the obstacle of the first one.
        is_frozen = payers[0].state is AllocationState.FROZEN
        reason = ShadowReason.FROZEN if is_frozen else ShadowReason.INSUFFICIENT_CREDIT
        return reason, 0, price, self._most_left(payers)

    def _resource(self, job: AccountingJob) -> str | None:
        cluster = self._world.cluster
        known = job.partition in cluster.partitions
        return cluster.resource(job.partition, job.qos) if known else None

    def _row(self, job: AccountingJob) -> ShadowAccount:
        key = (job.account, self._resource(job) or "-")
        return self._rows.setdefault(key, ShadowAccount(account=key[0], resource=key[1]))

    def rows(self) -> Iterator[ShadowAccount]:
        """Yield the results by account and resource, with the credit left for one more job."""
        for (account, resource), row in sorted(self._rows.items()):
            if (project := self._funds.by_account.get(account)) is not None:
                payers = self._funds.payers(project.id, resource, self._world.now)
                row.left = self._most_left(payers)
            yield row

    def _most_left(self, payers: Sequence[Allocation]) -> int:
        return max((self._left[allocation.id] for allocation in payers), default=0)
