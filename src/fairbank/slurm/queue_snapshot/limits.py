"""Limits other than nodes, while jobs start one after the other: accounting, array throttles,
licences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.slurm_numbers import UNLIMITED_MINUTES
from fairbank.core.tres import BillingRule, billing
from fairbank.priority.associations import AssociationKey, account_chain, own_association
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.start import limit_tests
from fairbank.priority.limits.usage import (
    Counts,
    LimitedJob,
    LimitRecord,
    LimitUsage,
    Link,
    QosLimits,
)
from fairbank.scheduling.machines.nodes import LimitCheck, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import LICENCES
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.limits import QosRecord
from fairbank.slurm.parsers.machine import Licence

_LimitOwner = tuple[str, ...]


class LimitInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs that do not change during a pass.

    `jobs` are the running jobs and each pending task, by number. `qos` and `qos_usage` have the
    limits and the usage by ended jobs, by name. `nodes` are names in their order. `billing_rule`
    adds the billing units of a job.
    """

    enforced: Enforced
    jobs: Mapping[int, SlurmJob]
    associations: Mapping[AssociationKey, LimitRecord]
    qos: Mapping[str, QosRecord]
    qos_usage: Mapping[str, LimitRecord]
    partition_qos: Mapping[str, str]
    partitions: Mapping[str, PartitionRules]
    billing_rule: BillingRule
    licences: Mapping[str, Licence]
    nodes: Sequence[str]


class _RunningUsage(NamedTuple):
    """Usage of a running job: TRES on these nodes, for the coming `seconds`."""

    job: SlurmJob
    partition: str
    tres: Counts
    nodes: frozenset[str]
    seconds: int


class _LimitUsageTotals:
    """Usage of the running jobs of one owner of limits, and of jobs that ended during the pass.

    Invariant: `places` counts the jobs on each node; `nodes` are those with at least one, and
    `counts["node"]` is their number, since GrpTRES counts a node once.
    """

    __slots__ = ("counts", "gone", "jobs", "nodes", "places", "seconds", "wall")

    def __init__(self) -> None:
        self.jobs = 0
        self.counts = Counter[str]()
        self.seconds = Counter[str]()
        self.nodes = frozenset[str]()
        self.places = Counter[str]()
        self.gone: dict[str, float] = {}
        self.wall = 0.0

    def copy(self) -> _LimitUsageTotals:
        other = _LimitUsageTotals()
        other.jobs, other.nodes, other.wall = self.jobs, self.nodes, self.wall
        other.counts, other.seconds = self.counts.copy(), self.seconds.copy()
        other.places, other.gone = self.places.copy(), self.gone.copy()
        return other

    def add(self, job: _RunningUsage) -> None:
        self.jobs += 1
        self.nodes |= job.nodes
        self.places.update(job.nodes)
        self.counts.update(job.tres)
        self.counts["node"] = len(self.nodes)
        self.seconds.update({name: count * job.seconds for name, count in job.tres.items()})

    def remove(self, job: _RunningUsage, charged: float) -> None:
        """Remove an ended job, of which so many seconds are charged."""
        self.jobs -= 1
        self.places.subtract(job.nodes)
        self.nodes -= {name for name in job.nodes if not self.places[name]}
        self.counts.subtract(job.tres)
        self.counts["node"] = len(self.nodes)
        self.seconds.subtract({name: count * job.seconds for name, count in job.tres.items()})
        self.gone.update(
            {name: self.gone.get(name, 0.0) + count * charged for name, count in job.tres.items()}
        )
        self.wall += charged


class SnapshotLimits(StartLimits):
    """Limits of a snapshot."""

    def __init__(self, inputs: LimitInputs, now: int) -> None:
        self._inputs = inputs
        self._tallies: dict[_LimitOwner, _LimitUsageTotals] = {}
        self._running: dict[int, _RunningUsage] = {}
        self._tasks = Counter[int]()
        # Fractions would take a quarter of the time of a test. Copies share it.
        self._billing: dict[tuple[object, ...], int] = {}
        self._licences = Counter({name: licence.free for name, licence in inputs.licences.items()})
        for slurm_job in inputs.jobs.values():
            if not slurm_job.is_pending:
                nodes = frozenset(name for share in slurm_job.allocated for name in share.nodes)
                partition, seconds = slurm_job.partitions[0], max((slurm_job.ends or now) - now, 0)
                tres = self._billed(partition, slurm_job.tres)
                if slurm_job.billing is not None:  # as when it started
                    tres = {**tres, "billing": slurm_job.billing}
                usage = _RunningUsage(slurm_job, partition, tres, nodes, seconds)
                self._count(slurm_job.job_id, usage)

    def copy(self) -> SnapshotLimits:
        other = object.__new__(SnapshotLimits)
        other._inputs, other._billing = self._inputs, self._billing
        other._tallies = {owner: tally.copy() for owner, tally in self._tallies.items()}
        other._running, other._tasks = self._running.copy(), self._tasks.copy()
        other._licences = self._licences.copy()
        return other

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        slurm_job = self._requested(job)
        if slurm_job.throttle and slurm_job.array is not None:
            running = self._tasks[slurm_job.array]
            yield LimitCheck(
                "JobArrayTaskLimit" if running >= slurm_job.throttle else None,
                f"array {slurm_job.array} may run {slurm_job.throttle:,} at the same time"
                f" (ArrayTaskThrottle), running now: {running:,}",
            )
        limited = self._limited_job(slurm_job, job, partition, placement)
        for test in limit_tests(limited, self._inputs.enforced):
            yield LimitCheck(test.reason if test.holds else None, test)
        for name, count in slurm_job.licences.items():
            free, licence = self._licences[name], self._inputs.licences.get(name)
            yield LimitCheck(
                LICENCES if free < count else None,
                f"{max(free, 0):,} of {0 if licence is None else licence.total:,} licences of"
                f" {name} are free; this job asks for {count:,}",
            )

    def record_start(self, job: PendingJob, where: Placement) -> None:
        slurm_job = self._requested(job)
        tres, nodes = self._usage(slurm_job, where), self._names(where)
        usage = _RunningUsage(slurm_job, where.partition, tres, nodes, job.limit or 0)
        self._count(job.number, usage)
        self._licences.subtract(slurm_job.licences)

    def record_end(self, job: PendingJob, where: Placement, seconds: int) -> None:
        counted = self._running.pop(job.number)
        slurm_job, qos = counted.job, self._inputs.qos.get(counted.job.qos)
        charged = seconds * (1.0 if qos is None else qos.usage_factor)
        for owner in self._limit_owners(slurm_job, counted.partition):
            self._tallies[owner].remove(counted, charged)
        if slurm_job.array is not None:
            self._tasks[slurm_job.array] -= 1
        self._licences.update(slurm_job.licences)

    def _requested(self, job: PendingJob) -> SlurmJob:
        """Return the job as slurmctld has it, but with this request, which advice may change."""
        slurm_job = self._inputs.jobs[job.number]
        if job.tres is slurm_job.tres and job.qos == slurm_job.qos:
            return slurm_job
        return msgspec.structs.replace(slurm_job, tres=job.tres, qos=job.qos)

    def _names(self, where: Placement) -> frozenset[str]:
        return frozenset(self._inputs.nodes[share.place] for share in where.shares)

    def _count(self, number: int, job: _RunningUsage) -> None:
        self._running[number] = job
        if job.job.array is not None:
            self._tasks[job.job.array] += 1
        for owner in self._limit_owners(job.job, job.partition):
            self._tallies.setdefault(owner, _LimitUsageTotals()).add(job)

    def _limit_owners(self, slurm_job: SlurmJob, partition: str) -> Iterator[_LimitOwner]:
        """Yield the owners whose limits the job counts against."""
        for record in self._chain(slurm_job, partition):
            yield ("association", record.name, record.user, record.partition)
        for name in {slurm_job.qos, self._inputs.partition_qos.get(partition, slurm_job.qos)}:
            yield "qos", name
            yield "user", name, slurm_job.user
            yield "account", name, slurm_job.account

    def _chain(self, slurm_job: SlurmJob, partition: str) -> Iterator[LimitRecord]:
        """Yield the user's association and the accounts above it, up to the root."""
        records = self._inputs.associations
        own = own_association(records, slurm_job.account, slurm_job.user, partition)
        if own is not None:
            yield own
            yield from account_chain(records, own.parent)

    def _limited_job(
        self, slurm_job: SlurmJob, job: PendingJob, partition: str, where: Placement | None
    ) -> LimitedJob:
        """Return the job with its limits and their usage; before its nodes are known, what it
        requests.
        """
        inputs = self._inputs
        partition_qos = inputs.partition_qos.get(partition)
        links = []
        for record in self._chain(slurm_job, partition):
            used = self._used(("association", record.name, record.user, record.partition), record)
            links.append(Link(name=_association_name(record), limits=record.limits, used=used))
        rules = inputs.partitions.get(partition, PartitionRules(name=partition))
        return LimitedJob(
            counts=(
                self._billed(partition, slurm_job.tres)
                if where is None
                else self._usage(slurm_job, where)
            ),
            nodes=frozenset() if where is None else self._names(where),
            is_placed=where is not None,
            chain=tuple(links),
            limit_minutes=None if job.limit is None else job.limit // 60,
            partition_max_minutes=(
                UNLIMITED_MINUTES if rules.max_seconds is None else rules.max_seconds // 60
            ),
            partition_default_minutes=(
                None if rules.default_seconds is None else rules.default_seconds // 60
            ),
            qos=self._qos(slurm_job.qos, slurm_job),
            partition_qos=None if partition_qos is None else self._qos(partition_qos, slurm_job),
        )

    def _usage(self, slurm_job: SlurmJob, where: Placement) -> Counts:
        """Return the TRES on these nodes, and the request for TRES that belong to no node."""
        gpus = sum(count for share in where.shares for _, count in share.gpus)
        placed = {
            "cpu": where.cpus,
            "mem": sum(share.memory for share in where.shares),
            "node": len(where.shares),
        }
        tres = {**slurm_job.tres, **placed} | ({"gres/gpu": gpus} if gpus else {})
        return self._billed(where.partition, tres)

    def _billed(self, partition: str, tres: Counts) -> Counts:
        """Return the TRES with their billing units in a partition, as slurmctld computes them when
        it has selected nodes: whole ones, rounded down (slurm-rules.md, "Billing").
        """
        key = (partition, *tres.items())
        if (units := self._billing.get(key)) is None:
            rules = self._inputs.partitions.get(partition)
            units = self._billing[key] = int(
                billing(
                    {name: Fraction(count) for name, count in tres.items()},
                    None if rules is None else rules.weights,
                    self._inputs.billing_rule,
                )
            )
        return {**tres, "billing": units}

    def _qos(self, name: str, slurm_job: SlurmJob) -> QosLimits | None:
        qos = self._inputs.qos.get(name)
        if qos is None:
            return None
        return QosLimits(
            name=name,
            limits=qos.limits,
            used=self._used(("qos", name), self._inputs.qos_usage.get(name)),
            of_user=self._used(("user", name, slurm_job.user), None),
            of_account=self._used(("account", name, slurm_job.account), None),
            usage_factor=qos.usage_factor,
            usage_factor_safe="UsageFactorSafe" in qos.flags,
            over_partition="OverPartQOS" in qos.flags,
            limit_factor=qos.limit_factor,
        )

    def _used(self, owner: _LimitOwner, record: LimitRecord | None) -> LimitUsage:
        tally = self._tallies.get(owner)
        before = LimitUsage() if record is None else record.used
        if tally is None:
            return before
        seconds = before.seconds
        if tally.gone:
            names = seconds.keys() | tally.gone.keys()
            seconds = {name: seconds.get(name, 0.0) + tally.gone.get(name, 0.0) for name in names}
        return LimitUsage(
            jobs=tally.jobs,
            counts=dict(tally.counts),
            nodes=tally.nodes,
            run_seconds=dict(tally.seconds),
            seconds=seconds,
            wall_seconds=before.wall_seconds + tally.wall,
        )


def _association_name(record: LimitRecord) -> str:
    """Return whose association it is, for a sentence."""
    if not record.user:
        return f"of account {record.name}"
    partition = f" and partition {record.partition}" if record.partition else ""
    return f"of user {record.user}, account {record.name}{partition}"
