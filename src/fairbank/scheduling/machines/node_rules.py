"""The rules by which nodes are given away, beside what is free: whose place may be taken, and what accounting has to say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

import msgspec

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement


class StartLimits(Protocol):
    """What accounting has to say while jobs start one after the other in a pass."""

    def copy(self) -> StartLimits:
        """One for a pass of its own."""
        ...

    def holds(self, job: PendingJob, partition: str, where: Placement | None = None) -> str | None:
        """Why it may not start beside those that run and have started, in Slurm's word; None where it may. `where`: on these nodes, which
        count as they are; without, by what it asks for."""
        ...

    def started(self, job: PendingJob, where: Placement) -> None:
        """From now on it counts."""
        ...

    def ended(self, job: PendingJob, where: Placement, seconds: int) -> None:
        """It counts no more. Of what it ran, so many seconds were not told when the snapshot was taken."""
        ...


class NoStartLimits:
    """Nobody has a limit."""

    def copy(self) -> NoStartLimits:
        return self

    def holds(self, job: PendingJob, partition: str, where: Placement | None = None) -> str | None:
        return None

    def started(self, job: PendingJob, where: Placement) -> None: ...

    def ended(self, job: PendingJob, where: Placement, seconds: int) -> None: ...


class PreemptBy(Enum):
    """PreemptType: whose jobs may take the place of whose."""

    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class QosRules(msgspec.Struct, frozen=True, kw_only=True):
    """A QOS as preemption knows it. `priority`: of those whose place may be taken, whoever has the lowest goes first. `preempted` None: as
    the cluster has it. `exempt_seconds`: for how long its jobs are left alone."""

    priority: int = 0
    preempts: frozenset[str] = frozenset()
    preempted: PreemptMode | None = None
    exempt_seconds: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's rules of preemption. Raises InvalidInput for QOS that preempt each other in a circle."""

    by: PreemptBy = PreemptBy.NONE
    mode: PreemptMode = PreemptMode.REQUEUE
    qos: Mapping[str, QosRules] = {}

    def __post_init__(self) -> None:
        try:
            TopologicalSorter({name: rules.preempts for name, rules in self.qos.items()}).prepare()
        except CycleError as circle:
            around = " before ".join(circle.args[1])
            raise InvalidInput(
                f"QOS preempt each other in a circle: {around}",
                field="qos.preempts",
                remedy="take one of them out",
            ) from None
