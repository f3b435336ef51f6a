"""What holds jobs back beside nodes, while one after the other starts: limits of accounting, throttles of arrays, licences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.start import holding
from fairbank.priority.limits.usage import Counts, LimitedJob, LimitUsage, Link, QosLimits
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import LICENCES
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.limits import Bound, Quality

Payer = tuple[str, str, str]
"""An association: account, user, and the partition, or none where it is for all."""
_Whose = tuple[str, ...]


class LimitInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What is told and does not change in a pass. `jobs` by number, those that run and each task; `qualities` by name with their limits,
    `used_by` what of these is used up. `of_partition`: the QOS of a partition. `nodes` in their order."""

    enforced: Enforced
    jobs: Mapping[int, SlurmJob]
    associations: Mapping[Payer, Bound]
    qualities: Mapping[str, Quality]
    used_by: Mapping[str, Bound]
    of_partition: Mapping[str, str]
    licences: Mapping[str, int]
    nodes: Sequence[str]


class _Counted(NamedTuple):
    """What a job that runs counts for: so much of each TRES on these nodes, for so many seconds to come."""

    told: SlurmJob
    partition: str
    tres: Counts
    nodes: frozenset[str]
    seconds: int


class _Tally:
    """What the running jobs of somebody hold, on how many of them each node is, and what those have used up that ended."""

    __slots__ = ("counts", "gone", "jobs", "nodes", "places", "seconds", "wall")

    def __init__(self) -> None:
        self.jobs = 0
        self.counts = Counter[str]()
        self.seconds = Counter[str]()
        self.nodes = frozenset[str]()
        self.places = Counter[str]()
        self.gone: dict[str, float] = {}
        self.wall = 0.0

    def copy(self) -> _Tally:
        other = _Tally()
        other.jobs, other.counts, other.seconds, other.nodes = (
            self.jobs,
            self.counts.copy(),
            self.seconds.copy(),
            self.nodes,
        )
        other.places, other.gone, other.wall = self.places.copy(), self.gone.copy(), self.wall
        return other

    def add(self, job: _Counted) -> None:
        self.jobs += 1
        self.nodes |= job.nodes
        self.places.update(job.nodes)
        self.counts.update(job.tres)
        self.counts["node"] = len(self.nodes)
        self.seconds.update({name: count * job.seconds for name, count in job.tres.items()})

    def take(self, job: _Counted, charged: float) -> None:
        """It ended, and so many seconds of it are charged."""
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


class SnapshotLimits:
    """Keeps to scheduling.rules.Limits."""

    def __init__(self, grounds: LimitInputs, now: int) -> None:
        self._grounds = grounds
        self._tallies: dict[_Whose, _Tally] = {}
        self._running: dict[int, _Counted] = {}
        self._tasks = Counter[int]()
        self._licences = Counter(grounds.licences)
        for told in grounds.jobs.values():
            if not told.waits:
                there = frozenset(name for given in told.given for name in given.nodes)
                self._count(
                    told.job_id,
                    _Counted(
                        told, told.partitions[0], told.tres, there, max((told.ends or now) - now, 0)
                    ),
                )

    def copy(self) -> SnapshotLimits:
        other = object.__new__(SnapshotLimits)
        other._grounds = self._grounds
        other._tallies = {whose: tally.copy() for whose, tally in self._tallies.items()}
        other._running, other._tasks, other._licences = (
            self._running.copy(),
            self._tasks.copy(),
            self._licences.copy(),
        )
        return other

    def hold_reason(
        self, job: PendingJob, partition: str, where: Placement | None = None
    ) -> str | None:
        told = self._grounds.jobs[job.number]
        if told.throttle and told.array is not None and self._tasks[told.array] >= told.throttle:
            return "JobArrayTaskLimit"
        found = holding(self._asking(told, job, partition, where), self._grounds.enforced)
        if found is not None:
            return found.reason
        return (
            LICENCES
            if any(self._licences[name] < count for name, count in told.licences.items())
            else None
        )

    def record_start(self, job: PendingJob, where: Placement) -> None:
        told = self._grounds.jobs[job.number]
        self._count(
            job.number,
            _Counted(
                told, where.partition, _taken(told, where), self._names(where), job.limit or 0
            ),
        )
        self._licences.subtract(told.licences)

    def record_end(self, job: PendingJob, where: Placement, seconds: int) -> None:
        counted = self._running.pop(job.number)
        told, quality = counted.told, self._grounds.qualities.get(counted.told.qos)
        for whose in self._everybody(told, counted.partition):
            self._tallies[whose].take(
                counted, seconds * (1.0 if quality is None else quality.usage_factor)
            )
        if told.array is not None:
            self._tasks[told.array] -= 1
        self._licences.update(told.licences)

    def _names(self, where: Placement) -> frozenset[str]:
        return frozenset(self._grounds.nodes[share.place] for share in where.shares)

    def _count(self, number: int, job: _Counted) -> None:
        self._running[number] = job
        if job.told.array is not None:
            self._tasks[job.told.array] += 1
        for whose in self._everybody(job.told, job.partition):
            self._tallies.setdefault(whose, _Tally()).add(job)

    def _everybody(self, told: SlurmJob, partition: str) -> Iterator[_Whose]:
        """Whose limits the job counts against."""
        for bound in self._chain(told, partition):
            yield ("association", bound.name, bound.user, bound.partition)
        for name in {told.qos, self._grounds.of_partition.get(partition, told.qos)}:
            yield from (("qos", name), ("user", name, told.user), ("account", name, told.account))

    def _chain(self, told: SlurmJob, partition: str) -> Iterator[Bound]:
        """The user's association and the accounts above it, up to the root."""
        known = self._grounds.associations
        own = known.get((told.account, told.user, partition)) or known.get(
            (told.account, told.user, "")
        )
        seen: set[str] = set()
        while own is not None:
            yield own
            seen |= {own.name} if not own.user else set()
            own = None if own.parent in seen else known.get((own.parent, "", ""))

    def _asking(
        self, told: SlurmJob, job: PendingJob, partition: str, where: Placement | None
    ) -> LimitedJob:
        """Before nodes are known, what it asks for counts, but no nodes: some that others of its group have count once."""
        grounds = self._grounds
        over = grounds.of_partition.get(partition)
        links = tuple(
            Link(
                name=bound.user or bound.name,
                limits=bound.limits,
                used=self._used(("association", bound.name, bound.user, bound.partition), bound),
            )
            for bound in self._chain(told, partition)
        )
        return LimitedJob(
            counts={**told.tres, "node": 0} if where is None else _taken(told, where),
            nodes=frozenset() if where is None else self._names(where),
            chain=links,
            limit_minutes=None if job.limit is None else job.limit // 60,
            qos=self._qos(told.qos, told),
            partition_qos=None if over is None else self._qos(over, told),
        )

    def _qos(self, name: str, told: SlurmJob) -> QosLimits | None:
        quality = self._grounds.qualities.get(name)
        if quality is None:
            return None
        return QosLimits(
            name=name,
            limits=quality.limits,
            used=self._used(("qos", name), self._grounds.used_by.get(name)),
            of_user=self._used(("user", name, told.user), None),
            of_account=self._used(("account", name, told.account), None),
            usage_factor=quality.usage_factor,
            usage_factor_safe="UsageFactorSafe" in quality.flags,
            over_partition="OverPartQOS" in quality.flags,
            limit_factor=quality.limit_factor,
        )

    def _used(self, whose: _Whose, bound: Bound | None) -> LimitUsage:
        tally = self._tallies.get(whose)
        told, wall = ({}, 0.0) if bound is None else (bound.seconds, bound.wall_seconds)
        if tally is None:
            return LimitUsage(seconds=told, wall_seconds=wall)
        return LimitUsage(
            jobs=tally.jobs,
            counts=dict(tally.counts),
            nodes=tally.nodes,
            run_seconds=dict(tally.seconds),
            seconds={
                name: told.get(name, 0.0) + tally.gone.get(name, 0.0)
                for name in {**told, **tally.gone}
            }
            if tally.gone
            else told,
            wall_seconds=wall + tally.wall,
        )


def _taken(told: SlurmJob, where: Placement) -> Counts:
    """What it has there, and of what is not of nodes what it asks for."""
    gpus = sum(count for share in where.shares for _, count in share.gpus)
    there = {
        "cpu": where.cpus,
        "mem": sum(share.memory for share in where.shares),
        "node": len(where.shares),
    }
    return {**told.tres, **there} | ({"gres/gpu": gpus} if gpus else {})
