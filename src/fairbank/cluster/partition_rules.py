"""Scheduling rules of a partition: nodes, priority tier, limits, sharing of nodes."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

import msgspec

from fairbank.cluster.node import COUNT_MAX, check_integer
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.tres import Weights


class OverSubscribe(Enum):
    """Sharing of CPUs between jobs. The value is Slurm's word."""

    NO = "NO"
    YES = "YES"
    """CPUs are shared by jobs that ask for it."""
    FORCE = "FORCE"
    """CPUs are always shared."""
    EXCLUSIVE = "EXCLUSIVE"
    """Jobs get whole nodes."""


class PreemptMode(Enum):
    """Treatment of a preempted job; OFF: the job is not preempted. SUSPEND is treated as OFF, since
    a suspended job keeps its memory.
    """

    OFF = "OFF"
    CANCEL = "CANCEL"
    REQUEUE = "REQUEUE"


class PartitionState(Enum):
    """State of a partition. The value is Slurm's word."""

    UP = "UP"
    DRAIN = "DRAIN"
    """It accepts no jobs, and starts those that it has."""
    DOWN = "DOWN"
    """It accepts jobs and starts none."""
    INACTIVE = "INACTIVE"


class AccessList(msgspec.Struct, frozen=True, dict=True):
    """Accounts, QOS or Unix groups that a partition accepts, or with `denies` those that it does
    not.

    `names` are as configured; `below` are accounts below them, which are treated like them.
    `reason` is Slurm's for a job that is not accepted.
    """

    names: tuple[str, ...]
    reason: str
    denies: bool = False
    below: frozenset[str] = frozenset()

    def is_admitted(self, *names: str) -> bool:
        """Return whether a job is accepted that has these names."""
        return self._listed.isdisjoint(names) is self.denies

    @cached_property
    def _listed(self) -> frozenset[str]:
        """All names: a pass tests every job, and a list may have hundreds."""
        return self.below.union(self.names)


class PartitionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Partition as slurm.conf describes it. Times are in seconds, memory in MiB; None means no
    limit.

        nodes                       names, in any order; empty: all nodes of the cluster
        tier                        PriorityTier: jobs of a higher tier are scheduled first
        rows                        maximum number of jobs per CPU if CPUs are shared
        memory_per_node, _per_cpu   default for jobs that request no memory
        preempted                   PreemptMode; None: that of the cluster
        max_cpus_per_node           CPUs of a node that the jobs of the partition may have together
        max_memory_per_node         MiB that a job may request of a node
        max_memory_per_cpu          MiB that a job may request for a CPU
        needs_reservation           ReqResv
        root_only                   RootOnly: only root and SlurmUser may have jobs there
        submit_hosts                AllocNodes: hosts from which jobs may come; None: all
        accounts, qos, groups       which jobs it accepts; None: all
        default_seconds             time limit of jobs that request none; None: `max_seconds`
        weights                     billing units by TRES (TRESBillingWeights); None: CPUs count
        is_default                  Default: partition of jobs that name none
        partition_qos               QOS whose limits hold for all jobs there
        factor                      PriorityJobFactor
        grace_seconds               GraceTime: time that a preempted job has left

    Raises InvalidInput, naming the field.
    """

    name: str
    nodes: tuple[str, ...] = ()
    state: PartitionState = PartitionState.UP
    tier: int = 1
    max_seconds: int | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    sharing: OverSubscribe = OverSubscribe.NO
    rows: int = 4
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    preempted: PreemptMode | None = None
    max_cpus_per_node: int | None = None
    max_memory_per_node: int | None = None
    max_memory_per_cpu: int | None = None
    accounts: AccessList | None = None
    qos: AccessList | None = None
    groups: AccessList | None = None
    needs_reservation: bool = False
    root_only: bool = False
    submit_hosts: tuple[str, ...] | None = None
    default_seconds: int | None = None
    weights: Weights | None = None
    is_default: bool = False
    partition_qos: str | None = None
    factor: int = 1
    grace_seconds: int = 0

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput(
                "a partition without a name", field="partition.name", remedy="give it one"
            )
        for field, low, high in (
            ("tier", 0, 65_533),
            ("max_seconds", 60, COUNT_MAX),
            ("default_seconds", 0, COUNT_MAX),
            ("min_nodes", 0, COUNT_MAX),
            ("max_nodes", 1, COUNT_MAX),
            ("rows", 1, 32_767),
            ("max_cpus_per_node", 1, COUNT_MAX),
            ("max_memory_per_node", 1, COUNT_MAX),
            ("max_memory_per_cpu", 1, COUNT_MAX),
            ("factor", 0, 65_535),
            ("grace_seconds", 0, U32_MAX),
            ("memory_per_node", 0, COUNT_MAX),
            ("memory_per_cpu", 1, COUNT_MAX),
        ):
            value = getattr(self, field)
            if value is not None:
                check_integer(value, low, high, field=f"{self.name}.{field}")
        if self.memory_per_node is not None and self.memory_per_cpu is not None:
            raise InvalidInput(
                "memory is given by node and by CPU",
                field=f"{self.name}.memory_per_cpu",
                remedy="name one of them",
            )
        if self.max_nodes is not None and self.max_nodes < self.min_nodes:
            what = f"at most {self.max_nodes} nodes are fewer than at least {self.min_nodes}"
            raise InvalidInput(
                what, field=f"{self.name}.max_nodes", remedy=f"{self.min_nodes} or more"
            )

    @property
    def can_start_jobs(self) -> bool:
        """True unless it is down or inactive."""
        return self.state in (PartitionState.UP, PartitionState.DRAIN)

    def with_default_memory(self, wanted: ResourceRequest) -> ResourceRequest:
        """Return the request with the partition's default memory if it requests none."""
        sizes = (wanted.memory_per_node, wanted.memory_per_cpu, wanted.memory_per_gpu)
        if any(size is not None for size in sizes):
            return wanted
        if self.memory_per_node is None and self.memory_per_cpu is None:
            return wanted
        return msgspec.structs.replace(
            wanted, memory_per_node=self.memory_per_node, memory_per_cpu=self.memory_per_cpu
        )

    def is_exclusive(self, wanted: ResourceRequest) -> bool:
        """Return whether the job gets whole nodes. Forced sharing overrides --exclusive."""
        return self.sharing is OverSubscribe.EXCLUSIVE or (
            wanted.exclusive and self.sharing is not OverSubscribe.FORCE
        )

    def rows_for(self, wanted: ResourceRequest) -> int:
        """Return the maximum number of jobs per CPU; 1 if the job shares none."""
        shares = self.sharing is OverSubscribe.FORCE or (
            self.sharing is OverSubscribe.YES and wanted.shared
        )
        return self.rows if shares else 1
