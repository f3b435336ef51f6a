"""The values that answers are read into, and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class AccountingJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of accounting: one execution of a job, or one that waits.

    Instants are seconds since 1970, None for unknown; `limit_seconds` is None without a finite limit. `tres` is what was allocated
    (of a job that waits: what is asked for), as `cpu=4,mem=4000M,node=1`. `owner` is None where the answer has only the name;
    `restart` where it does not count restarts.
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

    @property
    def has_ended(self) -> bool:
        """Whether it ran and is over."""
        return (
            self.start is not None and self.end is not None and self.state not in UNFINISHED_STATES
        )

    @property
    def is_complete(self) -> bool:
        """Whether slurmdbd has heard of its start. The end of a short job can be there before it, without partition and TRES."""
        return bool(self.partition) and (bool(self.tres) or self.start is None)


class JobEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a job ended, as (exit code, signal), and the seconds that its steps kept processors busy; None where Slurm does not tell."""

    job_id: int
    submitted: int
    exit_code: tuple[int, int] | None
    cpu_seconds: int | None


STATES_WITH_NODES = frozenset(
    "RUNNING CONFIGURING COMPLETING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING".split()
)
"""States in which a job has nodes."""

UNFINISHED_STATES = STATES_WITH_NODES | {"PENDING"}
"""States of a job that slurmctld has not finished with. In any other state it has ended."""


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """A job that slurmctld knows."""

    job_id: int
    submitted: int
    state: str


class PendingOwner(msgspec.Struct, frozen=True, gc=False):
    """Whose a job is that waits, and since when it stands in the queue: of one that was requeued since then."""

    job_id: int
    account: str
    qos: str
    submitted: int


class SlurmAssociation(msgspec.Struct, frozen=True):
    """An account in Slurm's tree, or (`user` not empty) a user in it. `shares` is a number or `parent`; `fence` is its GrpTRESMins."""

    account: str
    user: str = ""
    parent: str = ""
    shares: str = ""
    group_limits: str = ""
    partition: str = ""
    coordinators: tuple[str, ...] = ()


class AssociationPriority(msgspec.Struct, frozen=True):
    """What an association's jobs get for it: its Priority, 0 where it has none."""

    account: str
    user: str
    partition: str
    priority: int


class SlurmQos(msgspec.Struct, frozen=True):
    """A quality of service: `factor` is its UsageFactor as Slurm writes it."""

    name: str
    priority: int
    factor: str


class SlurmPartition(msgspec.Struct, frozen=True):
    """A partition as slurmctld has it. Memory in MiB, 0 for unknown or unlimited; `nodes` and `weights` as in slurm.conf. `most_minutes` is
    its MaxTime, 0 without a finite one. `factor` is its PriorityJobFactor, `tres` what it has."""

    name: str
    nodes: str = ""
    weights: str | None = None
    default_minutes: int = 0
    memory_per_cpu: int = 0
    max_minutes: int = 0
    factor: int = 1
    tres: str = ""


class SlurmNode(msgspec.Struct, frozen=True):
    """A node: its size, its partitions, and the types of its GPUs (`any` for one without a type)."""

    name: str
    cpus: int
    memory: int
    partitions: tuple[str, ...]
    gpus: tuple[str, ...] = ()


class UnreadableLine(msgspec.Struct, frozen=True):
    """A piece of an answer that was left out: in which line (or, of JSON, which job), which field, and why."""

    command: str
    line: int
    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.command}, line {self.line}, {self.field}: {self.why}"


class ParsedRows(msgspec.Struct, Generic[T], frozen=True):
    """What could be read, and what could not."""

    rows: tuple[T, ...]
    unreadable: tuple[UnreadableLine, ...] = ()
