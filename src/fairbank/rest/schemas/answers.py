"""Schemas of responses that clients read, too. They need no domain types, so clients start fast."""

from __future__ import annotations

from typing import ClassVar, Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

T = TypeVar("T")
RoleWord = Literal["pi", "coordinator", "member"]


class Amounts(Struct, frozen=True, kw_only=True):
    """Amounts of an object. `display` has them as texts in SU."""

    display: dict[str, str] | UnsetType = UNSET


class Envelope(Struct, frozen=True, kw_only=True):
    """Fields of each response with data: the name and version of its schema, the bank's name
    (`server.name` in its settings), the time, and the unit of all amounts."""

    schema: str
    bank: str
    as_of: str
    amounts_in: Literal["SU-minutes"] = "SU-minutes"


class ListResponse(Envelope, Generic[T], frozen=True, kw_only=True):
    """A page of a list. Send `next` as `after` for the next page; null: there is none."""

    data: list[T]
    next: str | None = None


class ItemResponse(Envelope, Generic[T], frozen=True, kw_only=True):
    """One item."""

    data: T


class RunResolution(Struct, frozen=True, kw_only=True):
    """End of a closed run: `outcome` is its final job state, `elapsed` its seconds, null if not
    known."""

    state: Literal["charged", "released", "lapsed"]
    outcome: str | None
    elapsed: int | None


class RefusalDetails(Amounts, frozen=True, kw_only=True):
    """A refusal of the bank with its amounts.

    `entry` is the journal entry that keeps it, if any; `resolution` is set if the run has ended.
    `available` and `shortfall` are null if the reason is neither the available credit
    (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION, FROZEN, NOT_ENOUGH) nor the charge
    (REFUND_TOO_LARGE): the bank did not look them up. Then `requested` is null too, unless the
    request had an amount.
    """

    reason: str
    requested: int | None
    available: int | None
    shortfall: int | None
    allocation: int | None
    project: int | None
    resource: str | None
    owner: int | None
    run: str | None
    entry: int | None
    remedies: list[str]
    resolution: RunResolution | None = None


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457), with the field that caused it, the remedy, and the name of the bank.
    `amounts_in` is the unit of the amounts of a refusal."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    bank: str | None = None
    amounts_in: Literal["SU-minutes"] | None = None
    refusal: RefusalDetails | None = None


class Granted(Amounts, frozen=True, kw_only=True):
    """A granted request: its journal entry and the amounts after it.

    `entry` is null if nothing had to be written. Amounts are null if no allocation is concerned, as
    by a role. `remaining` is the credit of the allocation, for all its users; `available` is its
    former name. `again`: the entry was written before, by the same request. `cpu_counted` is set if
    the end of a run reported more `cpu_seconds` than its processors had: only so many count. If the
    entry holds, charges or releases credit, the `amount` is there under that name, too; that of an
    adjust is a change of its hold.
    """

    schema_name: ClassVar[str] = "fairbank.granted/1"
    entry: int | None
    amount: int | None
    allocation: int | None
    run: int | None
    available: int | None
    remaining: int | None = None
    written_off: int | None = 0
    held: int | UnsetType = UNSET
    charged: int | UnsetType = UNSET
    released: int | UnsetType = UNSET
    cpu_counted: int | UnsetType = UNSET
    again: bool = False
    warnings: list[str] | UnsetType = UNSET


class ReportAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one report in a batch: granted (200, 201), refused (402, 404, 409) or invalid (400,
    403, 404)."""

    schema_name: ClassVar[str] = "fairbank.report/1"
    status: int
    granted: Granted | None = None
    detail: str | None = None
    field: str | None = None
    remedy: str | None = None
    refusal: RefusalDetails | None = None


class ProjectRole(Struct, frozen=True, kw_only=True):
    """Role of the user in a project."""

    project: int
    role: RoleWord


class Myself(Struct, frozen=True, kw_only=True):
    """The authenticated user: `actor` signed in, `uid` has the permissions that count."""

    schema_name: ClassVar[str] = "fairbank.whoami/1"
    actor: int
    uid: int
    user: str | None
    superuser: bool
    admin: bool
    roles: list[ProjectRole]
    clusters: list[str]
    scopes: list[str]
