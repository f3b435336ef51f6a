"""Envelopes of all responses, results of granted requests, and problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from fairbank.core.time import Clock, iso

if TYPE_CHECKING:
    from fairbank.bank.refusals import Refusal, RemedyFacts
    from fairbank.bank.rules import Done

T = TypeVar("T")


class RunResolution(Struct, frozen=True, kw_only=True):
    """End of a closed run: `outcome` is its final job state, `elapsed` its seconds, null if not
    known."""

    state: Literal["charged", "released", "lapsed"]
    outcome: str | None
    elapsed: int | None


class RefusalDetails(Struct, frozen=True, kw_only=True):
    """A refusal of the bank with its amounts.

    `entry` is the journal entry that keeps it, if any; `resolution` is set if the run has ended.
    `available` and `shortfall` are null if the reason is neither the available credit
    (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION, FROZEN, NOT_ENOUGH) nor the charge
    (REFUND_TOO_LARGE): the bank did not look them up. Then `asked` is null too, unless the request
    had an amount.
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
    resolution: RunResolution | None = None


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457), with the field that caused it and the remedy."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    refusal: RefusalDetails | None = None


class ListResponse(Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list. Send `next` as `after` for the next page; null: there is none."""

    schema: str
    as_of: str
    data: list[T]
    next: str | None = None


class ItemResponse(Struct, Generic[T], frozen=True, kw_only=True):
    """One item."""

    schema: str
    as_of: str
    data: T


class Granted(Struct, frozen=True, kw_only=True):
    """A granted request: its journal entry and the amounts after it.

    `entry` is null if nothing had to be written. `again`: the entry was written before, by the same
    request. `cpu_counted` is set if the end of a run reported more `cpu_seconds` than its
    processors had: only so many count.
    """

    entry: int | None
    amount: int
    allocation: int | None
    run: int | None
    available: int
    written_off: int = 0
    cpu_counted: int | UnsetType = UNSET
    again: bool = False


def item_response(schema: str, clock: Clock, data: T) -> ItemResponse[T]:
    """Wrap one item, with the name of its schema and the time of the response."""
    return ItemResponse(schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data)


def list_response(
    schema: str, clock: Clock, data: list[T], next_: str | None = None
) -> ListResponse[T]:
    """Wrap the rows of a page.

    Args:
        schema: the name of the rows' schema.
        next_: the cursor of the next page, if there is one.
    """
    return ListResponse(
        schema=f"fairbank.{schema}/1", as_of=iso(clock.now()), data=data, next=next_
    )


def split_page(
    limit: int, rows: Sequence[T], cursor: Callable[[T], object] = attrgetter("id")
) -> tuple[list[T], str | None]:
    """Split rows of a query for one row more than the page has (`Page.and_one`).

    Returns:
        The rows of the page, and the cursor of the next page: that of the page's last row.
    """
    page = list(rows[:limit])
    return page, str(cursor(page[-1])) if len(rows) > limit else None


def granted(done: Done) -> Granted:
    """Return the result of a granted request."""
    return Granted(
        entry=done.entry or None,
        amount=done.amount,
        allocation=done.allocation,
        run=done.run,
        available=done.available,
        written_off=done.written_off,
        cpu_counted=UNSET if done.cpu_counted is None else done.cpu_counted,
        again=done.again,
    )


def refusal_details(refusal: Refusal, known: RemedyFacts) -> RefusalDetails:
    """Return a refusal with its amounts and remedies; `known` is what the bank can suggest."""
    from fairbank.bank.refusals import remedies  # noqa: PLC0415  clients do not need the bank
    from fairbank.bank.run import RunState  # noqa: PLC0415

    resolution = refusal.resolution
    return RefusalDetails(
        reason=refusal.reason.name,
        **refusal.figures._asdict(),
        allocation=refusal.allocation,
        project=refusal.project,
        resource=refusal.resource,
        owner=refusal.owner,
        run=refusal.run,
        entry=refusal.entry,
        remedies=list(remedies(refusal, known)),
        resolution=(
            RunResolution(
                state=resolution.state.value,
                outcome=resolution.outcome,
                elapsed=resolution.elapsed_seconds,
            )
            if resolution and resolution.state is not RunState.HELD
            else None
        ),
    )
