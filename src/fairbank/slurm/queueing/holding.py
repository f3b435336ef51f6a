"""What holds jobs back beside nodes, while one after the other starts: limits of accounting, throttles of arrays, licences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from fairbank.priority.limits.holding import holding
from fairbank.priority.limits.standing import Asking, Counts, Link, Qos, Used
from fairbank.priority.limits.walk import Enforced
from fairbank.scheduling.pending import Pending
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import LICENCES
from fairbank.slurm.answers.bounds import Bound, Quality
from fairbank.slurm.answers.jobs import Told

Payer = tuple[str, str, str]
"""An association: account, user, and the partition, or none where it is for all."""
_Whose = tuple[str, ...]


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """What is told and does not change in a pass. `jobs` by number, those that run and each task; `qualities` by name with their limits,
    `used_by` what of these is used up. `of_partition`: the QOS of a partition. `nodes` in their order."""

    enforced: Enforced
    jobs: Mapping[int, Told]
    associations: Mapping[Payer, Bound]
    qualities: Mapping[str, Quality]
    used_by: Mapping[str, Bound]
    of_partition: Mapping[str, str]
    licences: Mapping[str, int]
    nodes: Sequence[str]


class _Tally:
    """What the running jobs of somebody hold."""

    __slots__ = ("counts", "jobs", "nodes", "seconds")

    def __init__(self) -> None:
        self.jobs = 0
        self.counts = Counter[str]()
        self.seconds = Counter[str]()
        self.nodes = frozenset[str]()

    def copy(self) -> _Tally:
        other = _Tally()
        other.jobs, other.counts, other.seconds, other.nodes = self.jobs, self.counts.copy(), self.seconds.copy(), self.nodes
        return other


class Holding:
    """Keeps to scheduling.rules.Limits."""

    def __init__(self, grounds: Grounds, now: int) -> None:
        self._grounds = grounds
        self._tallies: dict[_Whose, _Tally] = {}
        self._tasks = Counter[int]()
        self._licences = Counter(grounds.licences)
        for told in grounds.jobs.values():
            if not told.waits:
                there = frozenset(name for given in told.given for name in given.nodes)
                self._counts(told, told.partitions[0], told.tres, there, max((told.ends or now) - now, 0))

    def copy(self) -> Holding:
        other = object.__new__(Holding)
        other._grounds = self._grounds
        other._tallies = {whose: tally.copy() for whose, tally in self._tallies.items()}
        other._tasks, other._licences = self._tasks.copy(), self._licences.copy()
        return other

    def holds(self, job: Pending, partition: str, where: Placement | None = None) -> str | None:
        told = self._grounds.jobs[job.number]
        if told.throttle and told.array is not None and self._tasks[told.array] >= told.throttle:
            return "JobArrayTaskLimit"
        found = holding(self._asking(told, job, partition, where), self._grounds.enforced)
        if found is not None:
            return found.reason
        return LICENCES if any(self._licences[name] < count for name, count in told.licences.items()) else None

    def started(self, job: Pending, where: Placement) -> None:
        told = self._grounds.jobs[job.number]
        self._counts(told, where.partition, _taken(told, where), self._names(where), job.limit or 0)
        for name, count in told.licences.items():
            self._licences[name] -= count

    def _names(self, where: Placement) -> frozenset[str]:
        return frozenset(self._grounds.nodes[share.place] for share in where.shares)

    def _counts(self, told: Told, partition: str, tres: Counts, nodes: frozenset[str], seconds: int) -> None:
        if told.array is not None:
            self._tasks[told.array] += 1
        for whose in self._everybody(told, partition):
            tally = self._tallies.setdefault(whose, _Tally())
            tally.jobs += 1
            tally.nodes |= nodes
            tally.counts.update(tres)
            tally.counts["node"] = len(tally.nodes)
            tally.seconds.update({name: count * seconds for name, count in tres.items()})

    def _everybody(self, told: Told, partition: str) -> Iterator[_Whose]:
        """Whose limits the job counts against."""
        for bound in self._chain(told, partition):
            yield ("association", bound.name, bound.user, bound.partition)
        for name in {told.qos, self._grounds.of_partition.get(partition, told.qos)}:
            yield from (("qos", name), ("user", name, told.user), ("account", name, told.account))

    def _chain(self, told: Told, partition: str) -> Iterator[Bound]:
        """The user's association and the accounts above it, up to the root."""
        known = self._grounds.associations
        own = known.get((told.account, told.user, partition)) or known.get((told.account, told.user, ""))
        seen: set[str] = set()
        while own is not None:
            yield own
            seen |= {own.name} if not own.user else set()
            own = None if own.parent in seen else known.get((own.parent, "", ""))

    def _asking(self, told: Told, job: Pending, partition: str, where: Placement | None) -> Asking:
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
        return Asking(
            counts={**told.tres, "node": 0} if where is None else _taken(told, where),
            nodes=frozenset() if where is None else self._names(where),
            chain=links,
            limit_minutes=None if job.limit is None else job.limit // 60,
            qos=self._qos(told.qos, told),
            partition_qos=None if over is None else self._qos(over, told),
        )

    def _qos(self, name: str, told: Told) -> Qos | None:
        quality = self._grounds.qualities.get(name)
        if quality is None:
            return None
        return Qos(
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

    def _used(self, whose: _Whose, bound: Bound | None) -> Used:
        tally = self._tallies.get(whose)
        return Used(
            jobs=0 if tally is None else tally.jobs,
            counts={} if tally is None else dict(tally.counts),
            nodes=frozenset() if tally is None else tally.nodes,
            run_seconds={} if tally is None else dict(tally.seconds),
            seconds={} if bound is None else bound.seconds,
            wall_seconds=0 if bound is None else bound.wall_seconds,
        )


def _taken(told: Told, where: Placement) -> Counts:
    """What it has there, and of what is not of nodes what it asks for."""
    gpus = sum(count for share in where.shares for _, count in share.gpus)
    there = {"cpu": where.cpus, "mem": sum(share.memory for share in where.shares), "node": len(where.shares)}
    return {**told.tres, **there} | ({"gres/gpu": gpus} if gpus else {})
