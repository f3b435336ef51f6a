"""What is answered. Instants are text in UTC (`2026-11-21T07:30:12Z`)."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

T = TypeVar("T")

RoleWord = Literal["pi", "coordinator", "member"]
Status = Literal["executing", "completed"]


class Refused(Struct, frozen=True, kw_only=True):
    """A no of the bank with its figures. `entry` is where it is kept, if it is."""

    reason: str
    asked: int
    available: int
    shortfall: int
    allocation: int | None
    project: int | None
    resource: str | None
    owner: int | None
    run: str | None
    entry: int | None
    remedies: list[str]


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, with the field concerned and what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    refusal: Refused | None = None


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class Listing(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list; `next` goes into `after` for the next page, null when there is none."""

    schema: str
    as_of: str
    data: list[T]
    next: str | None = None


class Single(Struct, Generic[T], frozen=True, kw_only=True):
    schema: str
    as_of: str
    data: T


class RoleIn(Struct, frozen=True, kw_only=True):
    project: int
    role: RoleWord


class Myself(Struct, frozen=True, kw_only=True):
    """Who the server takes you for; `actor` signed in, `uid` is whose rights count."""

    actor: int
    uid: int
    user: str | None
    superuser: bool
    admin: bool
    roles: list[RoleIn]
    clusters: list[str]
    scopes: list[str]


class MemberRow(Struct, frozen=True, kw_only=True):
    uid: int
    role: RoleWord


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project. HADM's schema 1: project_id is `id`."""

    id: int
    gname: str
    gid: int
    account: str
    parent: int | None


class ProjectCard(ProjectRow, frozen=True, kw_only=True):
    members: list[MemberRow]


class AllocationRow(Struct, frozen=True, kw_only=True):
    """An allocation with its sums; valid at t when start <= t < end.

    HADM's schema 2: allocation_id is `id`, project_id `project`, start_date `start`, end_date `end`.
    """

    id: int
    project: int
    account: str
    gname: str
    resource: str
    category: str
    start: str
    end: str
    state: Literal["active", "frozen", "ended"]
    shared: bool
    credit_limit: int
    deposited: int
    charged: int
    held: int
    available: int


class BalanceRow(AllocationRow, frozen=True, kw_only=True):
    """`used_percent` is what is charged of what was deposited, in whole percent rounded down; 0 where nothing was deposited."""

    used_percent: int


class DrawnRow(Struct, frozen=True, kw_only=True):
    """What one user drew from an allocation, and may draw in all."""

    uid: int
    charged: int
    held: int
    cap: int | None


class Granted(Struct, frozen=True, kw_only=True):
    """A wish that was granted: the entry that says so and the figures after it. `again`: it was granted before, by that entry."""

    entry: int
    amount: int
    allocation: int | None
    run: int | None
    available: int
    written_off: int = 0
    again: bool = False


class Sums(Struct, frozen=True, kw_only=True):
    deposited: int = 0
    charged: int = 0
    held: int = 0
    credit_limit: int = 0
    available: int = 0


class EntryRow(Sums, frozen=True, kw_only=True):
    """An entry of the journal with the sums after it."""

    id: int
    seq: int
    at: str
    kind: str
    amount: int
    run: int | None
    cluster: str | None
    job_id: int | None
    owner_uid: int | None
    actor: int
    acting_as: int | None
    comment: str | None
    details: dict[str, Any] | None


class StatementPage(Struct, frozen=True, kw_only=True):
    allocation: AllocationRow
    opening: Sums
    entries: list[EntryRow]
    closing: Sums


class StatementAnswer(Struct, frozen=True, kw_only=True):
    """`next` goes into `after` for the next page."""

    schema: str
    as_of: str
    data: StatementPage
    next: str | None = None


class ActivityRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 3, with the kind and time of the entry."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    at: str
    kind: str
    job_id: int | None
    owner_uid: int | None


class CreditRow(Struct, frozen=True, kw_only=True):
    """HADM's credits: deposits and what transfers brought, less withdrawals and what transfers took."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None


class PredebitRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 4: a hold that is open."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    job_id: int
    status: Status
    owner_uid: int


class DebitRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 5: what each owner was charged in an allocation, refunds taken off.

    `activity_id` is the entry that opened the latest of the runs that were charged; what is summed up has no comments.
    """

    activity_id: int | None
    allocation_id: int
    amount: int
    comments: str | None
    owner_uid: int


class JobRow(Struct, frozen=True, kw_only=True):
    """A run in the books; `status` is HADM's word for its state. `set_by` is the entry that set its hold as it is, or closed it."""

    id: int
    cluster: str
    job_id: int
    submitted: str
    restart: int
    allocation: int
    account: str
    owner_uid: int
    partition: str
    state: Literal["held", "charged", "released", "lapsed"]
    status: Status
    held: int
    charged: int
    refunded: int
    written_off: int
    start: str
    until: str
    ended: str | None
    outcome: str | None
    elapsed: int | None
    set_by: int


class ReportAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one report of many: granted (200, 201), refused (402, 404, 409) or not understood (400, 403, 404)."""

    status: int
    granted: Granted | None = None
    detail: str | None = None
    field: str | None = None
    remedy: str | None = None
    refusal: Refused | None = None


class FailureRow(Struct, frozen=True, kw_only=True):
    """A job the bank said no to, with the figures and what would help.

    HADM's schema 6: activity_id is `id`, allocation_id `allocation`, amount `asked`; `comments` are the job's, else the reason in words.
    """

    id: int
    at: str
    allocation: int | None
    project: int | None
    account: str | None
    resource: str | None
    owner_uid: int | None
    cluster: str | None
    job_id: int | None
    run: str | None
    reason: str
    detail: str
    comments: str
    asked: int
    available: int
    shortfall: int
    remedies: list[str]


class UsageRow(Struct, frozen=True, kw_only=True):
    """What a group of runs used; `group` is the uid, the day or month (UTC), the partition or the allocation."""

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed: int


class QuoteLine(Struct, frozen=True, kw_only=True):
    """count x weight = weighted, exact decimals or fractions; `counts` when this line makes the price."""

    what: str
    count: str
    weight: str
    weighted: str
    counts: bool


class QuoteCard(Struct, frozen=True, kw_only=True):
    """A price with its reasons: amount = billing x factor x seconds / 60, rounded up once. `longest_seconds` is the longest
    time limit that would fit, `notes` say what the price leaves out."""

    account: str
    cluster: str
    resource: str
    lines: list[QuoteLine]
    billing: str
    factor: str
    seconds: int
    amount: int
    allocation: int | None
    available: int
    after: int
    fits: bool
    longest_seconds: int
    notes: list[str]


class TokenRow(Struct, frozen=True, kw_only=True):
    id: int
    uid: int
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None


class TokenCard(TokenRow, frozen=True, kw_only=True):
    """A new token. The secret is shown this once."""

    secret: str


class Head(Struct, frozen=True, kw_only=True):
    """The last entry of an allocation's book."""

    allocation: int
    seq: int
    link: str


class AuditCard(Struct, frozen=True, kw_only=True):
    entries: int
    office_seq: int
    office_link: str
    heads: list[Head]


class AuditAnswer(Struct, frozen=True, kw_only=True):
    schema: str
    as_of: str
    data: AuditCard
    next: str | None = None
