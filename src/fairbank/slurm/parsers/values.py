"""Values of Slurm's output, and reports of lines that could not be read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

import msgspec

from fairbank.cluster.allocated_tres import Memory, NodeSize
from fairbank.cluster.run_report import RunPiece

T = TypeVar("T")


class UnreadableLine(msgspec.Struct, frozen=True):
    """Line (in JSON, job) with a field that could not be read, and the reason.

    `job_id` is None if the line may belong to any job. `entity` is the name of the line's node or
    partition, empty if it has none.
    """

    command: str
    line: int
    field: str
    why: str
    job_id: int | None = None
    entity: str = ""

    def __str__(self) -> str:
        return f"{self.command}, line {self.line}, {self.field}: {self.why}"


PRICE_CELLS = frozenset({"Account", "Partition", "QOS", "AllocTRES", "ReqTRES"})
"""Cells without which the price of a job, or its payer, is unknown. Its times are always known."""

LIMIT_CELL = "TimelimitRaw"
"""Cell without which the hold of a job is unknown."""

EMPTY = "is empty"
"""Reason of a gap where accounting has nothing."""


class AccountingJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Line of accounting: one execution of a job, or one that is pending.

    Instants are seconds since 1970, None for unknown; `limit_seconds` is None without a finite
    limit. `tres` is what was allocated (for a pending job, requested), as `cpu=4,mem=4000M,node=1`.
    `owner` is None where the output has only the name; `restart` where it does not count restarts.
    A job that never started may have several partitions, with commas between them, and no account.
    `pieces` are those of a resized job before its last change; `tres` is the last piece's.
    `has_own_limit` is false without --time until the job starts: then the limit is its partition's.
    `cpu_seconds` is used processor time of a file; Slurm's comes with a `JobEnd`. `gaps` are cells
    that could not be read, or are missing. Their values are blank.
    """

    job_id: int
    submitted: int
    start: int | None
    end: int | None
    elapsed: int
    state: str
    user: str
    owner: int | None
    account: str
    partition: str
    qos: str | None
    limit_seconds: int | None
    tres: str
    restart: int | None = None
    pieces: tuple[RunPiece, ...] = ()
    has_own_limit: bool = True
    cpu_seconds: int | None = None
    gaps: tuple[UnreadableLine, ...] = ()

    @property
    def price_gaps(self) -> tuple[UnreadableLine, ...]:
        """The cells without which the price, or its payer, is unknown."""
        return tuple(gap for gap in self.gaps if gap.field in PRICE_CELLS)

    def gaps_in(self, fields: Collection[str]) -> tuple[UnreadableLine, ...]:
        """Return the gaps in these cells without which the job cannot be judged.

        An empty account is none: no project has it. The limit may be that of a partition whose
        line is the gap.
        """
        return tuple(
            gap
            for gap in self.gaps
            if (LIMIT_CELL if gap.entity else gap.field) in fields
            and (gap.field, gap.why) != ("Account", EMPTY)
        )

    @property
    def has_ended(self) -> bool:
        """True if it ran and is over."""
        return (
            self.start is not None and self.end is not None and self.state not in UNFINISHED_STATES
        )

    @property
    def is_complete(self) -> bool:
        """True if the price of the job is known from this record.

        The end of a short job may arrive at slurmdbd before its start; then partition and TRES are
        missing. The last record of a resized job may never arrive.
        """
        if self.state == RESIZING:
            return False
        has_tres = self.start is None or all([self.tres, *(piece.tres for piece in self.pieces)])
        return bool(not self.price_gaps and self.account and self.partition and has_tres)


class JobEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """End of a job: (exit code, signal), and processor seconds of its steps; None if unknown."""

    job_id: int
    submitted: int
    exit_code: tuple[int, int] | None
    cpu_seconds: int | None


class JobGroup(msgspec.Struct, frozen=True, gc=False):
    """Unix group of a job."""

    job_id: int
    gid: int


STATES_WITH_NODES = frozenset(
    "RUNNING CONFIGURING COMPLETING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING".split()
)
"""States in which a job has nodes."""

RESIZING = "RESIZING"
"""State of a record that ended because the resources of its job changed."""
UNFINISHED_STATES = STATES_WITH_NODES | {"PENDING"}
"""States of a job that slurmctld has not finished with. In any other state it has ended."""
NEXT_RECORD_SECONDS = 2  # slurmctld and slurmdbd each cut their times to seconds


def is_next_record(ended: int, submitted: int, start: int) -> bool:
    """Return True if a record of a job continues the one that ended with a change of resources.

    Args:
        ended: end of the record in the state RESIZING.
        submitted: submission of the other record.
    """
    return min(abs(submitted - ended), abs(start - ended)) <= NEXT_RECORD_SECONDS


def seconds_since_change(ended: int, start: int, elapsed: int) -> int:
    """Return the run time of a next record alone: it may be counted from the start of the job.

    Args:
        ended: end of the record in the state RESIZING.
        start: start of the next record.
        elapsed: its run time.
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
