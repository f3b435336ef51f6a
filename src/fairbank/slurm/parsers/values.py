"""Values of Slurm's output. Lines of accounting are in `cluster/accounting_job.py`."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.cluster.allocated_tres import Memory, NodeSize

T = TypeVar("T")


class JobEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """End of a job: (exit code, signal), and processor seconds of its steps; None if unknown."""

    job_id: int
    submitted: int
    exit_code: tuple[int, int] | None
    cpu_seconds: int | None


class MeasuredStep(msgspec.Struct, frozen=True, gc=False):
    """Job, or with `peak` one of its steps: the most memory of its tasks in KiB.

    The lines of the steps of a run follow that of the run. `submitted` is that of the job.
    `gpu_seconds` are those for which its GPUs were busy together; None: not measured.
    """

    job_id: int
    submitted: int
    peak: int | None
    gpu_seconds: float | None = None


class MeasuredUsage(NamedTuple):
    """Most memory in KiB that a step of a job had, 0 if that is not known, and the seconds for
    which its GPUs were busy together; None: not measured.
    """

    memory: int = 0
    gpu_seconds: float | None = None


class JobGroup(msgspec.Struct, frozen=True, gc=False):
    """Unix group of a job."""

    job_id: int
    gid: int


NEXT_RECORD_SECONDS = 2  # slurmctld and slurmdbd each cut their times to seconds


def is_next_record(ended: int, submitted: int, start: int) -> bool:
    """Return True if a record of a job continues the one that ended with a change of resources.

    The latter has the state RESIZING.
    """
    return min(abs(submitted - ended), abs(start - ended)) <= NEXT_RECORD_SECONDS


def seconds_since_change(ended: int, start: int, elapsed: int) -> int:
    """Return the run time of a next record alone: it may be counted from the start of the job.

    `ended` is the end of the record in the state RESIZING.
    """
    return max(0, elapsed - max(0, ended - start))


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """Job that slurmctld knows."""

    job_id: int
    submitted: int
    state: str


class ListedJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job as squeue and scontrol both show it.

    `partitions` are in the order of the request, `priority` is 0 for a held job.
    """

    job_id: int
    user: str
    account: str
    partitions: tuple[str, ...]
    priority: int
    submitted: int


class PendingOwner(msgspec.Struct, frozen=True, gc=False):
    """Account and QOS of a pending job, and its submission; for a requeued job, the requeue."""

    job_id: int
    account: str
    qos: str
    submitted: int


class SlurmAssociation(msgspec.Struct, frozen=True):
    """Account in Slurm's tree, or, with `user`, a user in it.

    `shares` is a number or `parent`, `group_limits` is GrpTRESMins.
    """

    account: str
    user: str = ""
    parent: str = ""
    shares: str = ""
    group_limits: str = ""
    partition: str = ""
    coordinators: tuple[str, ...] = ()


class AssociationPriority(msgspec.Struct, frozen=True):
    """Priority of an association, 0 if it has none."""

    account: str
    user: str
    partition: str
    priority: int


class AssociationFactors(msgspec.Struct, frozen=True):
    """Priority of an association, and the number of jobs below it, or of it, that may age at once.

    None is no limit. `parent` is the account above an account.
    """

    account: str
    user: str
    partition: str
    parent: str
    priority: int
    group: int | None
    each: int | None


class QosFactors(msgspec.Struct, frozen=True):
    """Priority of a QOS, and the number of its jobs that may age at once; None is no limit."""

    name: str
    priority: int
    group: int | None
    per_account: int | None
    per_user: int | None


class AssociationQos(msgspec.Struct, frozen=True):
    """QOS that an association allows, with those that it inherits."""

    account: str
    user: str
    partition: str
    qos: tuple[str, ...]


class SlurmQos(msgspec.Struct, frozen=True):
    """Quality of service; `factor` is UsageFactor as Slurm writes it."""

    name: str
    priority: int
    factor: str


class SlurmPartition(msgspec.Struct, frozen=True):
    """Partition as slurmctld has it. Memory in MiB; 0 for unknown or unlimited.

    `nodes` and `weights` are as in slurm.conf, `max_minutes` is MaxTime, `factor`
    PriorityJobFactor, `tres` the TRES of its nodes, `is_default` true for the partition of jobs
    that name none. `default_memory` is None for that of the cluster. `exclusive` is
    OverSubscribe=EXCLUSIVE.
    """

    name: str
    nodes: str = ""
    weights: str | None = None
    default_minutes: int = 0
    memory_per_cpu: int = 0
    max_minutes: int = 0
    factor: int = 1
    tres: str = ""
    is_default: bool = False
    default_memory: Memory | None = None
    exclusive: bool = False

    @property
    def minutes_without_limit(self) -> int:
        """Time limit of jobs without one: DefaultTime, else a finite MaxTime; 0 for none."""
        return self.default_minutes or self.max_minutes


class SlurmNode(msgspec.Struct, frozen=True):
    """Node: its CPUs and memory, its partitions, and the types of its GPUs (`any` without a type).

    `size` is what jobs may use of it: without the cores and memory that Slurm keeps for itself.
    """

    name: str
    cpus: int
    memory: int
    partitions: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    size: NodeSize = NodeSize()


class ParsedRows(msgspec.Struct, Generic[T], frozen=True):
    """Rows that could be read, and the lines that could not."""

    rows: tuple[T, ...]
    unreadable: tuple[UnreadableLine, ...] = ()
