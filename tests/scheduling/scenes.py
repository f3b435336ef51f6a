"""Scenes: a machine with running and waiting jobs, and the decisions of the passes as short
texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.hostlist import expand
from fairbank.core.time import Instant
from fairbank.scheduling.machines.node_snapshot import OnNodes, node_snapshot
from fairbank.scheduling.machines.nodes import LimitCheck, Nodes, Preemption, StartLimits
from fairbank.scheduling.pending_job import Active, PendingJob, to_running
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.placement.search import PlacementSearch, find_placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.backfill import backfill
from fairbank.scheduling.slurm.main_pass import main_pass
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.scheduling.slurm.queue_order import OrderedEntries, queue_entries

NOW = 1_000_020
"""A whole minute, so that times in minutes from now are steps of backfill."""
_WANTED = frozenset(ResourceRequest.__struct_fields__)


class Scene:
    """Machine at an instant. Times are minutes from now. Jobs have nodes for themselves by
    default.
    """

    def __init__(self, nodes: Sequence[Node], *partitions: PartitionRules) -> None:
        self.cluster = NodeTable(nodes, partitions or (PartitionRules(name="batch"),))
        self.places, self.free = PlacementSearch(self.cluster), FreeResources(self.cluster)
        self.pending: list[PendingJob] = []
        self.running: list[Active] = []
        self.reservations: list[Reservation] = []
        self.preemption = Preemption()
        self.limits = StartLimits()

    def runs(
        self,
        number: int,
        nodes: str,
        minutes: int,
        *,
        since: int = 10,
        partition: str = "batch",
        **options: Any,
    ) -> Scene:
        """Add a job that has these nodes until the given number of minutes from now."""
        requested = {name: options.pop(name) for name in list(options) if name in _WANTED}
        names = tuple(expand(nodes))
        expected = ResourceRequest(
            **{"nodes": len(names), "required": names, "exclusive": True, **requested}
        )
        where = find_placement(
            self.cluster,
            self.free,
            self.places.request(expected, partition),
            self.cluster.all_nodes,
        )
        assert where is not None
        self.free.take(where)
        job = PendingJob(number=number, wanted=expected, partitions=(partition,), **options)
        self.running.append(to_running(job, where, NOW - since * 60, (since + minutes) * 60))
        return self

    def waits(
        self,
        number: int,
        nodes: int = 1,
        minutes: int | None = 60,
        *,
        age: int = 60,
        **options: Any,
    ) -> Scene:
        """Add a job that requests nodes for some minutes and has waited for `age` minutes."""
        requested = {name: options.pop(name) for name in list(options) if name in _WANTED}
        expected = ResourceRequest(**{"nodes": nodes, "exclusive": True, **requested})
        limit = None if minutes is None else minutes * 60
        whole = {"submitted": NOW - age * 60, "eligible": NOW - age * 60, "limit": limit, **options}
        self.pending.append(PendingJob(number=number, wanted=expected, **whole))
        return self

    def reserves(self, name: str, nodes: str, begin: int, end: int, **options: Any) -> Scene:
        """Add a reservation of nodes; begin and end are minutes from now."""
        whole = {"begin": Instant(NOW + begin * 60), "end": Instant(NOW + end * 60), **options}
        self.reservations.append(Reservation(name=name, nodes=tuple(expand(nodes)), **whole))
        return self

    @property
    def snapshot(self) -> OnNodes:
        rules: dict[str, Any] = {
            "reservations": self.reservations,
            "preemption": self.preemption,
            "limits": self.limits,
        }
        return node_snapshot(
            Nodes(self.cluster, search=self.places, **rules),
            pending=self.pending,
            running=self.running,
        )

    def main(self, *, full: bool = False, **parameters: Any) -> PassResult:
        return PassResult(
            self.cluster,
            main_pass(self.snapshot, SchedulerParameters(**parameters), NOW, full=full),
        )

    def backfill(self, **parameters: Any) -> PassResult:
        return PassResult(
            self.cluster, backfill(self.snapshot, SchedulerParameters(**parameters), NOW)
        )

    def both(self, **parameters: Any) -> PassResult:
        return PassResult(
            self.cluster, run_passes(self.snapshot, SchedulerParameters(**parameters), NOW)
        )


def ranked(snapshot: OnNodes, **settings: bool) -> OrderedEntries:
    """Return the entries of the queue, and the reasons of jobs without an entry."""
    return queue_entries(snapshot.machine, snapshot.queue.jobs(), NOW, **settings)


class OneEach(StartLimits):
    """Limit of one running job per user in each of these partitions."""

    def __init__(self, *partitions: str, there: frozenset[tuple[str, str]] = frozenset()) -> None:
        self.partitions, self.there = partitions, there

    def copy(self) -> OneEach:
        return OneEach(*self.partitions, there=self.there)

    def checks(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> Iterator[LimitCheck]:
        is_there = (partition, job.user) in self.there
        yield LimitCheck("QOSMaxJobsPerUserLimit" if is_there else None, "one job of each user")

    def record_start(self, job: PendingJob, where: Placement) -> None:
        if where.partition in self.partitions:
            self.there |= {(where.partition, job.user)}

    def record_end(self, job: PendingJob, where: Placement, seconds: int) -> None:
        self.there -= {(where.partition, job.user)}


class PassResult:
    """Plan as text: `starts` and `planned` give the nodes; `planned` also gives the minutes until
    the start.
    """

    def __init__(self, cluster: NodeTable, plan: SchedulePlan[PendingJob, Placement]) -> None:
        self.plan = plan
        self.starts = {
            start.job.number: cluster.names(start.placement.nodes) for start in plan.starts
        }
        self.planned = {
            reservation.job.number: (
                (reservation.at - NOW) / 60,
                cluster.names(reservation.placement.nodes),
            )
            for reservation in plan.reservations
        }
        self.reasons = dict(plan.reasons)
        self.instead = {
            start.job.number: start.placement.preempted
            for start in plan.starts
            if start.placement.preempted
        }
        self.minutes = {start.job.number: (start.job.limit or 0) / 60 for start in plan.starts}
