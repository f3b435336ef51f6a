"""Line of a scheduler's accounting: one execution of a job; and lines that could not be read."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from fairbank.cluster.run_report import RunPiece

STATES_WITH_NODES = frozenset(
    "RUNNING CONFIGURING COMPLETING SUSPENDED STOPPED SIGNALING STAGE_OUT RESIZING".split()
)
"""States in which a job has nodes."""

RESIZING = "RESIZING"
"""State of a record that ended because the resources of its job changed."""
UNFINISHED_STATES = STATES_WITH_NODES | {"PENDING"}
"""States of a job that slurmctld has not finished with. In any other state it has ended."""


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
