"""Rules for nodes besides free resources: preemption and the limits of accounting."""

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
    """Limits of accounting while jobs start one after the other in a pass."""

    def copy(self) -> StartLimits:
        """Return a copy for another pass."""
        ...

    def hold_reason(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> str | None:
        """Return Slurm's reason why the job may not start beside the running ones; None if it may.

        With `placement` the nodes count as they are, without it as the job requests them.
        """
        ...

    def record_start(self, job: PendingJob, placement: Placement) -> None:
        """Count a job that starts."""
        ...

    def record_end(self, job: PendingJob, placement: Placement, seconds: int) -> None:
        """Stop to count a job that ends. `seconds`: the part of its run time that the snapshot did
        not contain.
        """
        ...


class NoStartLimits:
    """Absence of limits."""

    def copy(self) -> NoStartLimits:
        return self

    def hold_reason(
        self, job: PendingJob, partition: str, placement: Placement | None = None
    ) -> str | None:
        return None

    def record_start(self, job: PendingJob, placement: Placement) -> None: ...

    def record_end(self, job: PendingJob, placement: Placement, seconds: int) -> None: ...


class PreemptBy(Enum):
    """PreemptType: rule by which jobs preempt others."""

    NONE = "preempt/none"
    PARTITION = "preempt/partition_prio"
    QOS = "preempt/qos"


class QosRules(msgspec.Struct, frozen=True, kw_only=True):
    """Preemption rules of a QOS.

    `priority`: jobs of the QOS with the lowest go first. `preempted` None: the mode of the cluster.
    `exempt_seconds`: time after the start in which its jobs are not preempted.
    """

    priority: int = 0
    preempts: frozenset[str] = frozenset()
    preempted: PreemptMode | None = None
    exempt_seconds: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """Preemption rules of the cluster. Raises InvalidInput for QOS that preempt each other in a
    circle.
    """

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
