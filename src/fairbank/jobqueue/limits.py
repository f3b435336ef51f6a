"""Limits other than nodes, while jobs start and end one after the other: accounting, array
throttles, licenses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from fairbank.cluster.license import License
from fairbank.cluster.node import gpu_counts
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.slurm_numbers import UNLIMITED_MINUTES
from fairbank.core.tres import BillingRule, billing
from fairbank.priority.associations import AssociationKey, account_chain, own_association
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.start import limit_tests
from fairbank.priority.limits.submission import ending_limit, refusing_limit
from fairbank.priority.limits.usage import (
    Counts,
    LimitedJob,
    LimitRecord,
    LimitTest,
    LimitUsage,
    Link,
    QosLimits,
)
from fairbank.scheduling.machines.nodes import LimitCheck, StartLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import LICENSES

_LimitOwner = tuple[str, ...]


class CountedJob(NamedTuple):
    """Job as limits count it: who has it, and what it takes.

    `tres` of a job that would start has billing units. `nodes` are names; none before they are
    selected. `seconds` is how long it may still run.
    """

    account: str
    user: str
    qos: str
    partition: str
    tres: Counts
    array: int | None = None
    nodes: frozenset[str] = frozenset()
    seconds: int = 0


class LimitInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs that do not change during a pass.

    `running` are the running jobs by number; one without billing units gets those of now. `qos` has
    limits with the usage by ended jobs, by name. `nodes` are names in their order. `billing_rule`
    adds the billing units of a job. `submitted` are numbers of jobs that run or wait, for limits on
    submissions.
    """

    enforced: Enforced
    running: Mapping[int, CountedJob]
    associations: Mapping[AssociationKey, LimitRecord]
    qos: Mapping[str, QosLimits]
    partitions: Mapping[str, PartitionRules]
    billing_rule: BillingRule
    licenses: Mapping[str, License]
    nodes: Sequence[str]
    submitted: Sequence[tuple[CountedJob, int]] = ()


class _LimitUsageTotals:
    """Usage of the running jobs of one owner of limits, and of jobs that ended during the pass.

    Invariant: `places` counts the jobs on each node that has one, and `counts["node"]` is the
    number of these nodes, since GrpTRES counts a node once.
    """

    __slots__ = ("counts", "gone", "jobs", "places", "seconds", "wall")

    def __init__(self) -> None:
        self.jobs = 0
        self.counts = Counter[str]()
        self.seconds = Counter[str]()
        self.places = Counter[str]()
        self.gone: dict[str, float] = {}
        self.wall = 0.0

    def copy(self) -> _LimitUsageTotals:
        other = _LimitUsageTotals()
        other.jobs, other.wall = self.jobs, self.wall
        other.counts, other.seconds = self.counts.copy(), self.seconds.copy()
        other.places, other.gone = self.places.copy(), self.gone.copy()
        return other

    def add(self, job: CountedJob) -> None:
        self._count(job, 1)

    def remove(self, job: CountedJob, charged: float) -> None:
        """Remove an ended job, of which so many seconds are charged."""
        self._count(job, -1)
        for name, count in job.tres.items():
            self.gone[name] = self.gone.get(name, 0.0) + count * charged
        self.wall += charged

    def _count(self, job: CountedJob, sign: int) -> None:
        # Loops: Counter.update would take three times as long for so few keys.
        self.jobs += sign
        places, counts, seconds = self.places, self.counts, self.seconds
        for node in job.nodes:
            places[node] += sign
            if not places[node]:
                del places[node]
        for name, count in job.tres.items():
            counts[name] += sign * count
            seconds[name] += sign * count * job.seconds
        counts["node"] = len(places)


class QueueLimits(StartLimits):
    """Limits of a queue."""

    def __init__(self, inputs: LimitInputs) -> None:
        self._inputs = inputs
        self._tallies: dict[_LimitOwner, _LimitUsageTotals] = {}
        self._running: dict[int, CountedJob] = {}
        self._tasks = Counter[int]()
        # Fractions would take a quarter of the time of a test. Copies share it.
        self._billing: dict[tuple[object, ...], int] = {}
        self._licenses = Counter({name: license.free for name, license in inputs.licenses.items()})
        self._submitted = Counter[_LimitOwner]()
        for job, count in inputs.submitted if inputs.enforced.limits else ():
            self._submitted.update(dict.fromkeys(self._limit_owners(job), count))
        for number, job in inputs.running.items():
            if inputs.enforced.limits and "billing" not in job.tres:
                job = job._replace(tres=self._billed(job.partition, job.tres))
            self._count(number, job)

    def copy(self) -> QueueLimits:
        other = object.__new__(QueueLimits)
        other._inputs, other._billing = self._inputs, self._billing
        other._tallies = {owner: tally.copy() for owner, tally in self._tallies.items()}
        other._running, other._tasks = self._running.copy(), self._tasks.copy()
        other._licenses, other._submitted = self._licenses.copy(), self._submitted
        return other

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        """Yield a check of each limit that the job would have to keep to start."""
        if job.throttle and job.array is not None:
            running = self._tasks[job.array]
            yield LimitCheck(
                "JobArrayTaskLimit" if running >= job.throttle else None,
                f"array {job.array} may run {job.throttle:,} at the same time"
                f" (ArrayTaskThrottle), running now: {running:,}",
            )
        if self._inputs.enforced.limits:
            limited = self._limited_job(job, partition, placement)
            for test in limit_tests(limited, self._inputs.enforced):
                yield LimitCheck(test.reason if test.holds else None, test)
        for name, count in job.licenses.items():
            free, license = self._licenses[name], self._inputs.licenses.get(name)
            yield LimitCheck(
                LICENSES if free < count else None,
                f"{max(free, 0):,} of {0 if license is None else license.total:,} licenses of"
                f" {name} are free; this job asks for {count:,}",
            )

    def refusing_limit(self, job: PendingJob, partition: str, tasks: int) -> LimitTest | None:
        """Return the limit that refuses a job at its submission, or None.

        Args:
            partition: partition in which it would start.
            tasks: number of tasks of an array; 1 for another job.
        """
        limited = self._limited_job(job, partition, None)
        return refusing_limit(limited, self._inputs.enforced, tasks)

    def ending_limit(self, job: PendingJob, minutes: int) -> LimitTest | None:
        """Return the limit that ends a running job, or None.

        Args:
            job: one of the running jobs.
            minutes: minutes that it ran up to now.
        """
        limited = self._with_limits(job, self._running[job.number], is_placed=True)
        return ending_limit(limited, minutes, self._inputs.enforced)

    def record_start(self, job: PendingJob, where: Placement) -> None:
        self._count(job.number, self._counted(job, where.partition, where))
        self._licenses.subtract(job.licenses)

    def record_end(self, job: PendingJob, where: Placement, seconds: int) -> None:
        """Take a job that has run `seconds` off the counts of its limits."""
        counted = self._running.pop(job.number)
        qos = self._inputs.qos.get(counted.qos)
        charged = seconds * (1.0 if qos is None else qos.usage_factor)
        for owner in self._limit_owners(counted):
            self._tallies[owner].remove(counted, charged)
        if counted.array is not None:
            self._tasks[counted.array] -= 1
        self._licenses.update(job.licenses)

    def _count(self, number: int, job: CountedJob) -> None:
        self._running[number] = job
        if job.array is not None:
            self._tasks[job.array] += 1
        for owner in self._limit_owners(job):
            self._tallies.setdefault(owner, _LimitUsageTotals()).add(job)

    def _limit_owners(self, job: CountedJob) -> Iterator[_LimitOwner]:
        """Yield the owners whose limits the job counts against; none if no limits are enforced."""
        if not self._inputs.enforced.limits:
            return
        for record in self._chain(job):
            yield _association_owner(record)
        for name in {job.qos, self._rules(job.partition).partition_qos or job.qos}:
            yield "qos", name
            yield "user", name, job.user
            yield "account", name, job.account

    def association_usage(self, record: LimitRecord) -> LimitUsage:
        """Return the usage that counts against the limits of an association."""
        return self._used(_association_owner(record), record.used)

    def qos_usage(self, name: str) -> LimitUsage:
        """Return the usage that counts against the limits of a QOS."""
        return self._used(("qos", name), self._inputs.qos[name].used)

    def _chain(self, job: CountedJob) -> Iterator[LimitRecord]:
        """Yield the user's association and the accounts above it, up to the root."""
        records = self._inputs.associations
        own = own_association(records, job.account, job.user, job.partition)
        if own is not None:
            yield own
            yield from account_chain(records, own.parent)

    def _limited_job(self, job: PendingJob, partition: str, where: Placement | None) -> LimitedJob:
        """Return the job with its limits and their usage; before its nodes are known, what it
        requests.
        """
        counted = self._counted(job, partition, where)
        return self._with_limits(job, counted, is_placed=where is not None)

    def _with_limits(self, job: PendingJob, counted: CountedJob, *, is_placed: bool) -> LimitedJob:
        rules = self._rules(counted.partition)
        links = []
        for record in self._chain(counted):
            used = self.association_usage(record)
            links.append(Link(name=_association_name(record), limits=record.limits, used=used))
        return LimitedJob(
            counts=counted.tres,
            nodes=counted.nodes,
            is_placed=is_placed,
            chain=tuple(links),
            limit_minutes=None if job.limit is None else job.limit // 60,
            partition_max_minutes=(
                UNLIMITED_MINUTES if rules.max_seconds is None else rules.max_seconds // 60
            ),
            partition_default_minutes=(
                None if rules.default_seconds is None else rules.default_seconds // 60
            ),
            qos=self._qos(job.qos, counted),
            partition_qos=self._qos(rules.partition_qos, counted) if rules.partition_qos else None,
        )

    def _rules(self, partition: str) -> PartitionRules:
        return self._inputs.partitions.get(partition) or PartitionRules(name=partition)

    def _counted(self, job: PendingJob, partition: str, where: Placement | None) -> CountedJob:
        """Return the job on these nodes, or as it requests them."""
        tres, nodes = job.tres, frozenset[str]()
        if where is not None:
            tres = {**tres, **placed_tres(where)}
            nodes = frozenset(self._inputs.nodes[share.place] for share in where.shares)
        tres = self._billed(partition, tres)
        return CountedJob(
            job.account, job.user, job.qos, partition, tres, job.array, nodes, job.limit or 0
        )

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

    def _qos(self, name: str, job: CountedJob) -> QosLimits | None:
        """Return a QOS as the job sees it."""
        qos = self._inputs.qos.get(name)
        if qos is None:
            return None
        return msgspec.structs.replace(
            qos,
            used=self._used(("qos", name), qos.used),
            of_user=self._used(("user", name, job.user), qos.of_user),
            of_account=self._used(("account", name, job.account), qos.of_account),
        )

    def _used(self, owner: _LimitOwner, before: LimitUsage) -> LimitUsage:
        """Return the usage by ended jobs and by those that run and end here."""
        tally, submitted = self._tallies.get(owner), self._submitted[owner]
        if tally is None:
            return msgspec.structs.replace(before, submitted=submitted) if submitted else before
        seconds = before.seconds
        if tally.gone:
            names = seconds.keys() | tally.gone.keys()
            seconds = {name: seconds.get(name, 0.0) + tally.gone.get(name, 0.0) for name in names}
        return LimitUsage(
            jobs=tally.jobs,
            submitted=submitted,
            counts=dict(tally.counts),
            nodes=frozenset(tally.places),
            run_seconds=dict(tally.seconds),
            seconds=seconds,
            wall_seconds=before.wall_seconds + tally.wall,
        )


def placed_tres(where: Placement) -> Counts:
    """Return the TRES of nodes; those of no node stay as requested."""
    return {
        "cpu": where.cpus,
        "mem": sum(share.memory for share in where.shares),
        "node": len(where.shares),
        **gpu_counts(one for share in where.shares for one in share.gpus),
    }


def _association_owner(record: LimitRecord) -> _LimitOwner:
    return ("association", record.name, record.user, record.partition)


def _association_name(record: LimitRecord) -> str:
    """Return whose association it is, for a sentence."""
    if not record.user:
        return f"of account {record.name}"
    partition = f" and partition {record.partition}" if record.partition else ""
    return f"of user {record.user}, account {record.name}{partition}"
