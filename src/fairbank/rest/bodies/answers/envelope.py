"""The shapes around all answers, and what is told when something goes wrong."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

T = TypeVar("T")


class Resolution(Struct, frozen=True, kw_only=True):
    """What became of a run that is resolved: `outcome` is its final job state, `elapsed` its seconds; null where nobody told."""

    state: Literal["charged", "released", "lapsed"]
    outcome: str | None
    elapsed: int | None


class Refused(Struct, frozen=True, kw_only=True):
    """A no of the bank with its figures. `entry` is where it is kept, if it is; `resolution` is that of a run that has ended already.

    `available` and `shortfall` are null where the reason is another than how much there is of credit (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION,
    FROZEN, NOT_ENOUGH) or of a charge (REFUND_TOO_LARGE): nobody looked then. `asked` is null there, too, unless something was.
    """

    reason: str
    asked: int | None
    available: int | None
    shortfall: int | None
    allocation: int | None
    project: int | None
    resource: str | None
    owner: int | None
    run: str | None
    entry: int | None
    remedies: list[str]
    resolution: Resolution | None = None


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, with the field concerned and what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    refusal: Refused | None = None


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


class Granted(Struct, frozen=True, kw_only=True):
    """A request that was granted: the entry that says so and the figures after it. `again`: it was granted before, by that entry.

    `entry` is null where nothing had to be written, since all was so already. `cpu_counted` is there only where a run's end told more
    `cpu_seconds` than its processors had: so many of them count.
    """

    entry: int | None
    amount: int
    allocation: int | None
    run: int | None
    available: int
    written_off: int = 0
    cpu_counted: int | UnsetType = UNSET
    again: bool = False
