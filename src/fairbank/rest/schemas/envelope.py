"""Envelopes of all responses, and conversions of granted requests and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from msgspec import UNSET, Struct, structs

from fairbank.bank.entry import Kind
from fairbank.bank.refusals import Refusal, RemedyFacts, remedies
from fairbank.bank.rules import Done
from fairbank.bank.run import RunState
from fairbank.core.time import iso
from fairbank.core.units import AMOUNTS, amount_texts
from fairbank.rest.schemas.answers import (
    Amounts,
    Granted,
    ItemResponse,
    ListResponse,
    RefusalDetails,
    RunResolution,
)

if TYPE_CHECKING:
    from fairbank.rest.context import AppContext


class Named(Protocol):
    """Type of the rows of a list, of one item, or of a whole answer. The name and version of its
    schema stand in each answer."""

    schema_name: ClassVar[str]


T = TypeVar("T")
Row = TypeVar("Row", bound=Struct)
NamedRow = TypeVar("NamedRow", bound=Named)


def envelope(kind: type[Named], context: AppContext) -> dict[str, Any]:
    """Return the fields of an `Envelope`: the schema with its version, the bank and the time."""
    return {
        "schema": kind.schema_name,
        "bank": context.name,
        "as_of": iso(context.services.clock.now()),
    }


def item_response(context: AppContext, data: NamedRow) -> ItemResponse[NamedRow]:
    """Wrap one item. The texts of its amounts are set here."""
    set_texts(data)
    return ItemResponse(**envelope(type(data), context), data=data)


def list_response(
    kind: type[NamedRow], context: AppContext, data: list[NamedRow], next_: str | None = None
) -> ListResponse[NamedRow]:
    """Wrap the rows of a page.

    Args:
        kind: the type of the rows.
        data: the rows. The texts of their amounts are set here.
        next_: the cursor of the next page, if there is one.
    """
    set_texts(*data)
    return ListResponse(**envelope(kind, context), data=data, next=next_)


def set_texts(*objects: object) -> None:
    """Set the texts of the amounts of new objects that have any."""
    for item in objects:
        if isinstance(item, Amounts):
            names = _amounts_of(type(item))
            texts = amount_texts({name: getattr(item, name) for name in names})
            structs.force_setattr(item, "display", texts)


@cache
def _amounts_of(kind: type[Amounts]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in AMOUNTS)


def split_page(
    limit: int, rows: Sequence[T], cursor: Callable[[T], object] = attrgetter("id")
) -> tuple[list[T], str | None]:
    """Split rows of a query for one row more than the page has (`Page.and_one`).

    Args:
        limit: rows of the page at most.
        rows: the rows; more than `limit` show that another page follows.
        cursor: returns what identifies a row in the order of the list; default: its id.

    Returns:
        The rows of the page, and the cursor of the next page: that of the page's last row; None
        for the last page.
    """
    page = list(rows[:limit])
    return page, str(cursor(page[-1])) if len(rows) > limit else None


def page_response(
    kind: type[NamedRow],
    context: AppContext,
    limit: int,
    items: Sequence[T],
    row_of: Callable[[T], NamedRow],
    cursor: Callable[[T], object] = attrgetter("id"),
) -> ListResponse[NamedRow]:
    """Return the page that was found.

    Args:
        kind: the type of the rows.
        limit: the most rows of the page.
        items: what a query for one row more returned (`Page.and_one`).
        row_of: converts one of them to a row.
        cursor: returns the cursor of the page after one of them.
    """
    page, next_ = split_page(limit, items, cursor)
    return list_response(kind, context, [row_of(item) for item in page], next_)


def convert_to(kind: type[Row], record: object, /, **fields: object) -> Row:
    """Return a row of a record, or a record of a row.

    Args:
        kind: the struct to return.
        record: has the other fields of the struct as attributes of the same names.
        fields: fields of the struct that the record has in another form, or not at all.
    """
    names = [name for name in kind.__struct_fields__ if name not in fields and name != "display"]
    return kind(**{name: getattr(record, name) for name in names}, **fields)


def granted_answer(done: Done, warnings: Sequence[str] = ()) -> Granted:
    """Return the result of a granted request."""
    kind, amount = done.kind, done.amount
    has_sums = done.allocation is not None
    return Granted(
        entry=done.entry or None,
        amount=amount if has_sums else None,
        allocation=done.allocation,
        run=done.run,
        remaining=done.remaining if has_sums else None,
        available=done.remaining if has_sums else None,
        written_off=done.written_off if has_sums else None,
        held=amount if kind is Kind.HOLD else UNSET,
        charged=amount if kind is Kind.CHARGE else UNSET,
        released=amount if kind is Kind.RELEASE else UNSET,
        cpu_counted=UNSET if done.cpu_counted is None else done.cpu_counted,
        again=done.again,
        warnings=list(warnings) or UNSET,
    )


def refusal_details(refusal: Refusal, known: RemedyFacts) -> RefusalDetails:
    """Return a refusal with its amounts and remedies; `known` is what the bank can suggest."""
    resolution = refusal.resolution
    end = resolution.end if resolution else None
    return convert_to(
        RefusalDetails,
        refusal,
        reason=refusal.reason.name,
        **refusal.figures._asdict(),
        remedies=list(remedies(refusal, known)),
        resolution=(
            RunResolution(
                state=resolution.state.value,
                outcome=end.outcome if end else None,
                elapsed=end.elapsed_seconds if end else None,
            )
            if resolution and resolution.state is not RunState.HELD
            else None
        ),
    )
