"""Request bodies. They are read strictly: no unknown fields, no conversions, bounds checked.

Times are text (`2026-11-21T07:30:12Z`) or seconds since 1970, as text or as a number.
`cluster.run_report` has the reports of runs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from fairbank.cluster.fields import (
    Amount,
    Comment,
    Epoch,
    Id,
    Limit,
    Name,
    Names,
    Reason,
    Seconds,
    Size,
    Tres,
    Uid,
    Word,
)
from fairbank.core.ids import ID_MAX
from fairbank.core.slurm_numbers import TASKS_MAX
from fairbank.core.time import Instant, parse_instant
from fairbank.rest.schemas.answers import RoleWord

REPORTS_MAX = 1_000

Moment = Annotated[
    str,
    Meta(
        max_length=40,
        description="2026-11-21, 2026-11-21T07:30Z, or seconds since 1970",
        examples=["2026-11-21"],
    ),
]
When = Moment | Epoch
OptionName = Annotated[str, Meta(max_length=32, pattern="^--[a-z-]+$")]


def parse_when(value: When, *, field: str) -> Instant:
    """Parse a time of a body; raise InvalidInput for an invalid one."""
    return Instant(value) if isinstance(value, int) else parse_instant(value, field=field)


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of request bodies. Unknown fields are refused."""


class NewProject(Body, frozen=True, kw_only=True):
    """A Unix group that becomes a project.

    `account` is its Slurm account; default: the group's name.
    """

    gname: Name
    gid: Uid
    account: Name | None = None
    parent: Id | None = None


class NewNames(Body, frozen=True, kw_only=True):
    """Changes of a project; omitted fields stay. `restore` brings back a removed project."""

    gname: Name | None = None
    gid: Uid | None = None
    account: Name | None = None
    parent: (
        Annotated[int, Meta(ge=0, le=ID_MAX, description="the number of a project; 0 for none")]
        | None
    ) = None
    restore: bool = False
    comment: Comment | None = None


class NewRole(Body, frozen=True, kw_only=True):
    """Role of a user in a project."""

    role: RoleWord
    comment: Comment | None = None


class NewAllocation(Body, frozen=True, kw_only=True):
    """Credit of one project, named by number or account, on one resource from `start` to `end`.

    `partition`, `reservation` or both make it a short-term allocation: during its period all jobs
    of its project run there, and no others.
    """

    project: Id | None = None
    account: Name | None = None
    resource: Word
    category: Word
    start: When
    end: When
    amount: Limit = 0
    credit_limit: Limit = 0
    shared: bool = False
    partition: Name | None = None
    reservation: Name | None = None
    comment: Reason


class NewTerms(Body, frozen=True, kw_only=True):
    """Changes of an allocation; omitted fields stay."""

    start: When | None = None
    end: When | None = None
    credit_limit: Limit | None = None
    shared: bool | None = None
    event: Literal["freeze", "thaw", "end", "reopen"] | None = None
    category: str | None = None
    resource: str | None = None
    comment: Reason


class NewCap(Body, frozen=True, kw_only=True):
    """Maximum that a user may use in total; null removes the cap."""

    cap: Limit | None
    comment: Comment | None = None


class Movement(Body, frozen=True, kw_only=True):
    """A deposit or withdrawal."""

    amount: Amount
    comment: Reason


class NewTransfer(Body, frozen=True, kw_only=True):
    """A transfer to the allocation `to`."""

    to: Id
    amount: Amount
    comment: Reason


class NewRefund(Body, frozen=True, kw_only=True):
    """A refund; without an amount, of the rest of the charge."""

    amount: Amount | None = None
    comment: Reason


class NewUndo(Body, frozen=True, kw_only=True):
    """An undo of an entry."""

    comment: Reason


class DescribedJob(Body, frozen=True, kw_only=True):
    """A job before it is submitted.

    `time_limit` is seconds as a number, or Slurm's form as text ("12:00:00"). `cluster` may be
    omitted if the bank has only one. `partition` may list several with commas, and be omitted if
    the settings have a default partition. `tasks` is the number of tasks of an array, each of which
    requests `tres`. `owner_uid` is the user of the job; default: yourself. The cap of another user
    counts only for staff and for users who may read the whole journal of the paying allocation.

    Short-term allocations decide as at a submission: one of the project replaces `partition` and
    `reservation`, and what another project has is refused (403). A job that is `waiting` has had
    this decision, and stays where it is.

    `exclusive` requests whole nodes: all their CPUs and GRES are priced. Memory is `mem` in `tres`,
    the total, or one of `mem` (for each node), `mem_per_cpu` and `mem_per_gpu`; 0 is all memory of
    the nodes. A job without any gets the default memory of its partition.

    `node_requests` are TRES that a single node must have, by the option of sbatch that requests
    them: {"--gres": "gres/gpu=4", "--cpus-per-task": "cpu=8"}. The job runs on at most `max_nodes`.
    A partition whose nodes are smaller is left out of the quote.
    """

    account: Name
    cluster: Name | None = None
    partition: Names | None = None
    reservation: Names | None = None
    waiting: bool = False
    tres: Tres
    node_requests: Annotated[dict[OptionName, Tres], Meta(max_length=8)] = {}
    max_nodes: Annotated[int, Meta(ge=1, le=ID_MAX)] | None = None
    exclusive: bool = False
    mem: Size | None = None
    mem_per_cpu: Size | None = None
    mem_per_gpu: Size | None = None
    time_limit: Seconds | Annotated[str, Meta(max_length=32)]
    qos: Name | None = None
    tasks: Annotated[int, Meta(ge=1, le=TASKS_MAX)] = 1
    owner_uid: Uid | None = None


class NewToken(Body, frozen=True, kw_only=True):
    """A new token.

    `scopes` are read, write and agent:CLUSTER. `uid` is the user of the token; default: yourself. A
    token that is created with a token expires with that one at the latest, even if `days` is more.
    """

    label: Annotated[str, Meta(min_length=1, max_length=64)]
    scopes: Annotated[list[Annotated[str, Meta(max_length=300)]], Meta(min_length=1, max_length=32)]
    days: Annotated[int, Meta(ge=1, le=731)] = 90
    uid: Uid | None = None


class ReportBatch(Body, frozen=True, kw_only=True):
    """Reports of runs, applied in order in one transaction.

    Each report is parsed separately: an invalid one does not affect the others.
    """

    reports: Annotated[list[Raw], Meta(min_length=1, max_length=REPORTS_MAX)]
