"""What may be sent. Read strictly: no unknown fields, whole numbers stay whole, bounds hold.

Instants are text (`2026-11-21T07:30:12Z`) or seconds since 1970, as text or as a number; in reports of runs numbers alone, as agents speak.
What a name may be is for `values.ids` to say; the patterns here only tell the reader of the OpenAPI document.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from fairbank.core.final_state import PATTERN
from fairbank.core.ids import COMMENT_MAX, ID_MAX, JOB_ID_MAX, JOB_NAME_MAX, UID_MAX
from fairbank.core.slurm_numbers import CPU_SECONDS_MAX, NODES_MAX, SHARES_MAX, TRES_MAX
from fairbank.core.time import LAST_INSTANT, LIMIT_MAX_SECONDS
from fairbank.core.units import AMOUNT_MAX

REPORTS_MAX = 1_000
STANDINGS_MAX = 10_000

Id = Annotated[int, Meta(ge=1, le=ID_MAX)]
Uid = Annotated[int, Meta(ge=0, le=UID_MAX, description="a Unix id")]
Amount = Annotated[int, Meta(ge=1, le=AMOUNT_MAX, description="SU-minutes")]
Limit = Annotated[int, Meta(ge=0, le=AMOUNT_MAX, description="SU-minutes; 0 for none")]
Epoch = Annotated[int, Meta(ge=0, le=LAST_INSTANT, description="seconds since 1970")]
Seconds = Annotated[int, Meta(ge=0, le=LIMIT_MAX_SECONDS)]
Name = Annotated[
    str, Meta(max_length=64, extra_json_schema={"pattern": "^[A-Za-z_][A-Za-z0-9_.-]*$"})
]
NameOrNone = Annotated[
    str, Meta(max_length=64, extra_json_schema={"pattern": "^([A-Za-z_][A-Za-z0-9_.-]*)?$"})
]
Word = Annotated[str, Meta(max_length=32, extra_json_schema={"pattern": "^[a-z][a-z0-9_-]*$"})]
Part = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Key = Annotated[str, Meta(max_length=128, extra_json_schema={"pattern": "^[!-~]+$"})]
Comment = Annotated[str, Meta(max_length=COMMENT_MAX, description="one line of printable text")]
Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=COMMENT_MAX,
        description="why; one line of printable text",
        extra_json_schema={"pattern": r"\S"},
    ),
]
Moment = Annotated[
    str,
    Meta(
        max_length=40,
        description="2026-11-21, 2026-11-21T07:30Z, or seconds since 1970",
        examples=["2026-11-21"],
    ),
]
When = Moment | Epoch
Tres = Annotated[str, Meta(max_length=TRES_MAX, examples=["cpu=8,mem=16G,gres/gpu=1"])]
JobName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=JOB_NAME_MAX,
        description="as its owner calls it; one line of printable text",
    ),
]
Nodes = Annotated[
    int, Meta(ge=1, le=NODES_MAX, description="how many; usual: the nodes among its tres")
]
CpuSeconds = Annotated[
    int,
    Meta(
        ge=0,
        le=CPU_SECONDS_MAX,
        description="seconds that all its processors together were busy with it",
    ),
]
Billing = Annotated[
    Decimal,
    Meta(
        description="billing units, exact; as a number or as its text",
        extra_json_schema={"type": ["number", "string"]},
    ),
]
RoleWord = Literal["pi", "coordinator", "member"]


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody sends."""


class NewProject(Body, frozen=True, kw_only=True):
    """A Unix group that is to have credit; `account` is its Slurm account, by default named like the group."""

    gname: Name
    gid: Uid
    account: Name | None = None
    parent: Id | None = None


class NewNames(Body, frozen=True, kw_only=True):
    """What is to change about a project; what is left out stays. `restore` brings back one that was removed."""

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
    role: RoleWord
    comment: Comment | None = None


class NewAllocation(Body, frozen=True, kw_only=True):
    """Credit of one project, named by number or by account, on one resource from `start` up to `end`."""

    project: Id | None = None
    account: Name | None = None
    resource: Word
    category: Word
    start: When
    end: When
    amount: Limit = 0
    credit_limit: Limit = 0
    shared: bool = False
    comment: Reason


class NewTerms(Body, frozen=True, kw_only=True):
    """What is to change about an allocation; what is left out stays."""

    start: When | None = None
    end: When | None = None
    credit_limit: Limit | None = None
    shared: bool | None = None
    event: Literal["freeze", "thaw", "end", "reopen"] | None = None
    comment: Reason


class NewCap(Body, frozen=True, kw_only=True):
    """How much a user may draw in all; null lifts the cap."""

    cap: Limit | None
    comment: Comment | None = None


class Movement(Body, frozen=True, kw_only=True):
    amount: Amount
    comment: Reason


class NewTransfer(Body, frozen=True, kw_only=True):
    to: Id
    amount: Amount
    comment: Reason


class NewRefund(Body, frozen=True, kw_only=True):
    """Without an amount: all that is left of the charge."""

    amount: Amount | None = None
    comment: Reason


class NewUndo(Body, frozen=True, kw_only=True):
    comment: Reason


class Report(Body, frozen=True, kw_only=True, tag_field="do"):
    """What all reports of a run say. The price comes from the first that is there: amount, billing, tres.

    Name, nodes, tres and time limit are kept as they were told last, whatever tells the price.
    """

    cluster: Name
    job_id: Annotated[int, Meta(ge=1, le=JOB_ID_MAX)]
    submitted: Epoch
    restart: Annotated[int, Meta(ge=0, le=65_535)] = 0
    owner_uid: Uid
    account: Name
    partition: NameOrNone = ""
    resource: Word | None = None
    qos: Name | None = None
    start: Epoch
    billing: Billing | None = None
    tres: Tres | None = None
    amount: Limit | None = None
    name: JobName | None = None
    nodes: Nodes | None = None
    key: Key | None = None
    comment: Comment | None = None


class HoldReport(Report, frozen=True, kw_only=True, tag="hold"):
    """A run is about to start and may last `time_limit` seconds, at least 1, whatever tells its price."""

    time_limit: Seconds


class AdjustReport(Report, frozen=True, kw_only=True, tag="adjust"):
    """The time limit of a run is now `time_limit` seconds, at least 1."""

    time_limit: Seconds


class CompleteReport(Report, frozen=True, kw_only=True, tag="complete"):
    """A run ended after `elapsed` seconds, as the scheduler counts them, in Slurm's state `state`, a final one.

    It costs nothing in a state that is free, and after no time at all unless `amount` says what it costs. An end is not turned away for
    `cpu_seconds` that its processors cannot have had: they are kept as told, usage counts processors x `elapsed` of them, and the answer
    says so (`cpu_counted`).
    """

    time_limit: Seconds = 0
    end: Epoch
    elapsed: Seconds
    state: Annotated[
        str, Meta(max_length=48, extra_json_schema={"pattern": PATTERN}, examples=["COMPLETED"])
    ]
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    exit_signal: (
        Annotated[int, Meta(ge=0, le=127, description="the signal that ended it")] | None
    ) = None
    cpu_seconds: CpuSeconds | None = None


AnyReport = HoldReport | AdjustReport | CompleteReport


class Reports(Body, frozen=True, kw_only=True):
    """Reports of runs, judged in order in one transaction. Each is read by itself, so that one bad report spoils no other."""

    reports: Annotated[list[Raw], Meta(min_length=1, max_length=REPORTS_MAX)]


class DescribedJob(Body, frozen=True, kw_only=True):
    """A job before it is submitted. `time_limit` is seconds as a number, or Slurm's form as text ("12:00:00"); without `cluster`
    the bank's only one is meant."""

    account: Name
    cluster: Name | None = None
    partition: Name
    tres: Tres
    time_limit: Seconds | Annotated[str, Meta(max_length=32)]
    qos: Name | None = None


class NewShare(Body, frozen=True, kw_only=True):
    """How an association stands: an account, or a user in it. `usage` is decayed, in billing-seconds; see the list of them."""

    account: Name
    user: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    partition: NameOrNone | None = None
    shares: Annotated[int, Meta(ge=0, le=SHARES_MAX)] | Literal["parent"] | None = None
    norm_shares: Part
    usage: NotNegative
    effective: NotNegative | None = None
    level: NotNegative | None = None
    factor: NotNegative | None = None


class NewShares(Body, frozen=True, kw_only=True):
    """How associations of a cluster stand at an instant, by slurmctld's clock."""

    cluster: Name
    at: When
    rows: Annotated[list[NewShare], Meta(min_length=1, max_length=STANDINGS_MAX)]


class NewToken(Body, frozen=True, kw_only=True):
    """`scopes` are read, write and agent:CLUSTER; `uid` whose token it is to be, by default one's own. Asked for by a
    token, the new one ends with that one at the latest, whatever `days` says."""

    label: Annotated[str, Meta(min_length=1, max_length=64)]
    scopes: Annotated[list[Annotated[str, Meta(max_length=80)]], Meta(min_length=1, max_length=32)]
    days: Annotated[int, Meta(ge=1, le=731)] = 90
    uid: Uid | None = None
