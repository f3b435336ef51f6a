"""What a pass over nodes may look at: who waits, who runs where until when, what is reserved, and the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

import msgspec

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.scheduling.pending import Active, Pending, begun
from fairbank.scheduling.placement.cluster import Cluster
from fairbank.scheduling.placement.nodeset import NodeSet
from fairbank.scheduling.placement.placing import Places
from fairbank.scheduling.placement.room import Placement, Room
from fairbank.scheduling.plan import Plan
from fairbank.values.trouble import Malformed


class Limits(Protocol):
    """What accounting has to say while jobs start one after the other in a pass."""

    def copy(self) -> Limits:
        """One for a pass of its own."""
        ...

    def holds(self, job: Pending, partition: str) -> str | None:
        """Why it may not start beside those that run and have started, in Slurm's word; None where it may."""
        ...

    def started(self, job: Pending, partition: str) -> None:
        """From now on it counts."""
        ...


class Unlimited:
    """Nobody has a limit."""

    def copy(self) -> Unlimited:
        return self

    def holds(self, job: Pending, partition: str) -> str | None:
        return None

    def started(self, job: Pending, partition: str) -> None: ...


class PreemptBy(Enum):
    """PreemptType: whose jobs may take the place of whose."""

    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class QosRules(msgspec.Struct, frozen=True, kw_only=True):
    """A QOS as preemption knows it. `preempted` None: as the cluster has it. `exempt_seconds`: for how long its jobs are left alone."""

    preempts: frozenset[str] = frozenset()
    preempted: PreemptMode | None = None
    exempt_seconds: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's rules of preemption. Raises Malformed for QOS that preempt each other in a circle."""

    by: PreemptBy = PreemptBy.NONE
    mode: PreemptMode = PreemptMode.REQUEUE
    qos: Mapping[str, QosRules] = {}

    def __post_init__(self) -> None:
        try:
            TopologicalSorter({name: rules.preempts for name, rules in self.qos.items()}).prepare()
        except CycleError as circle:
            around = " before ".join(circle.args[1])
            raise Malformed(f"QOS preempt each other in a circle: {around}", field="qos.preempts", remedy="take one of them out") from None


class Situation:
    """A machine and its jobs at one instant. A pass changes none of it.

    Raises Malformed for two jobs of one number, for two reservations of one name, and for running jobs that hold more than there is;
    Unknown for a node of a reservation that the machine has not.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        pending: Sequence[Pending] = (),
        running: Iterable[Active] = (),
        reservations: Iterable[Reservation] = (),
        preemption: Preemption | None = None,
        limits: Limits | None = None,
        places: Places | None = None,
    ) -> None:
        self.cluster = cluster
        self.places = places or Places(cluster)
        self.pending = pending
        self.running = sorted(running, key=_by_end)
        self.room = Room(cluster)
        for job in self.running:
            self.room.take(job.placement)
        self._check_jobs()
        self.reservations: dict[str, tuple[Reservation, NodeSet]] = {}
        for each in reservations:
            if each.name in self.reservations:
                remedy = "give each a name of its own"
                raise Malformed(f"reservation {each.name} is there twice", field="reservations", remedy=remedy)
            self.reservations[each.name] = each, cluster.named(each.nodes, field=f"{each.name}.nodes")
        self.preemption = preemption or Preemption()
        self.limits: Limits = limits or Unlimited()

    def _check_jobs(self) -> None:
        numbers = Counter([job.number for job in self.pending])
        numbers.update(job.number for job in self.running)
        if len(numbers) < numbers.total():
            number, times = numbers.most_common(1)[0]
            raise Malformed(f"job {number} is there {times} times", field="jobs", remedy="give each job and task a number of its own")
        if wrong := self.room.overdrawn():
            names = self.cluster.names(wrong)
            jobs = ", ".join(map(str, sorted(job.number for job in self.running if job.nodes & wrong)))
            remedy = f"look which of these jobs still run there: {jobs}"
            raise Malformed(f"the jobs that run hold more of {names} than there is", field="running", remedy=remedy)

    def with_job(self, changed: Pending) -> Situation:
        """The same, with this job in the place of the one of its number."""
        other = object.__new__(Situation)
        other.__dict__.update(self.__dict__)
        other.pending = [changed if job.number == changed.number else job for job in self.pending]
        return other

    def after(self, plan: Plan[Pending, Placement], now: int) -> Situation:
        """The same when those have started whom the plan starts, one after the other, and those went whose place they took."""
        other = object.__new__(Situation)
        other.__dict__.update(self.__dict__)
        other.room, other.limits = self.room.copy(), self.limits.copy()
        running = {job.number: job for job in self.running}
        for job, where in plan.starts:
            for number in where.instead:
                other.room.give(running.pop(number).placement)
            other.room.take(where)
            other.limits.started(job, where.partition)
            running[job.number] = begun(job, where, now, job.seconds(self.cluster.rules[where.partition]))
        begun_now = {start.job.number for start in plan.starts}
        other.pending = [job for job in self.pending if job.number not in begun_now]
        other.running = sorted(running.values(), key=_by_end)
        return other


def _by_end(job: Active) -> tuple[int, int]:
    return job.ends, job.number
