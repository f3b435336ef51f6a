"""Journal entries: the statement of one allocation, entries of many, and the undo of an entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from litestar import Response, post
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import structs

from fairbank.bank.entry import EFFECTS, OF_TERMS, Entry, Kind
from fairbank.bank.query import EntryQuery
from fairbank.core import ids
from fairbank.core.time import LAST_INSTANT, Instant, iso
from fairbank.core.units import with_texts
from fairbank.rest.parameters import (
    PERIOD,
    PROJECTS_OF_RUNS,
    RECENT,
    Key,
    Limit,
    Number,
    OneId,
    OnePage,
    OnePeriod,
    OneUid,
    Projects,
    check_key,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.responses import created_response
from fairbank.rest.routing import GRANTED_BEFORE, read_route, write_route
from fairbank.rest.schemas.alloc import allocation_row, changed_terms
from fairbank.rest.schemas.answers import Granted, ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import envelope, list_response, set_texts, split_page
from fairbank.rest.schemas.requests import NewUndo
from fairbank.rest.schemas.statement import (
    AllocationEntryRow,
    SeriesRow,
    StatementAnswer,
    StatementPage,
    StatementRow,
    Sums,
    entry_row,
    sums,
)

Every = Annotated[bool, QueryParameter(name="all", description="also entries that move no credit")]


@read_route("/alloc/{allocation:int}/statement", dependencies={"page": RECENT, "period": PERIOD})
def show_statement(
    request: ApiRequest, allocation: Number, page: OnePage, period: OnePeriod, every: Every = False
) -> StatementAnswer:
    """Return the entries of an allocation that moved credit, or all, with the sums before and after
    them.

    A page has the newest entries, or with `order=oldest` the oldest, in the order of time. Requests
    that the bank declined, and reports of jobs that it refused for another reason than credit, are
    only shown to staff, and to the user who sent them.
    """
    services = request.services
    span = period.since or Instant(0), LAST_INSTANT if period.until is None else period.until
    statement = services.allocations.statement(
        request.identity, allocation, span, page, every=every
    )
    runs = request.runs_by_id(entry.run for entry in statement.entries)
    undone = services.undo.undone_by(statement.entries)
    project = services.project_cache.by_id(statement.balance.allocation.terms.project)
    opening = _sums(statement.opening)
    rows = [entry_row(entry, runs.get(entry.run), undone) for entry in statement.entries]
    remaining = [opening.remaining, *(row.remaining for row in rows)]
    data = StatementPage(
        allocation=allocation_row(statement.balance, project, services.clock.now()),
        opening=opening,
        entries=[
            StatementRow(
                **structs.asdict(row),
                credit_in=max(0, row.remaining - before),
                credit_out=max(0, before - row.remaining),
                changed=with_texts(changed_terms(statement.changes.get(row.id))),
            )
            for before, row in zip(remaining, rows, strict=False)
        ],
        closing=_sums(statement.closing),
    )
    next_ = None if statement.next is None else str(statement.next)
    set_texts(data.allocation, data.opening, data.closing, *data.entries)
    return StatementAnswer(**envelope(StatementAnswer, request.context), data=data, next=next_)


def _sums(entry: Entry | None) -> Sums:
    return Sums() if entry is None else sums(entry)


@read_route("/alloc/{allocation:int}/series")
def show_series(
    request: ApiRequest, allocation: Number, points: Limit = 60
) -> ListResponse[SeriesRow]:
    """Return the credit of an allocation over time, for those who see its statement: at `points`
    equal distances within its term, up to now. A planned allocation has no rows.
    """
    series = request.services.allocations.series(request.identity, allocation, points)
    rows = [
        SeriesRow(at=iso(at), remaining=before.remaining, held=before.held)
        for at, before in ((at, _sums(entry)) for at, entry in series)
    ]
    return list_response(SeriesRow, request.context, rows)


_KINDS_ABOUT: Mapping[str, frozenset[Kind]] = {
    "credit": frozenset(EFFECTS),
    "terms": OF_TERMS,
    "caps": frozenset({Kind.CAP}),
}
_ALL_KINDS = frozenset().union(*_KINDS_ABOUT.values())
About = FromQuery[Literal["credit", "terms", "caps"] | None]


@read_route("/entry", dependencies={"page": RECENT, "projects": PROJECTS_OF_RUNS, "period": PERIOD})
def list_entries(
    request: ApiRequest,
    page: OnePage,
    projects: Projects,
    period: OnePeriod,
    allocation: OneId = None,
    owner_uid: OneUid = None,
    about: About = None,
) -> ListResponse[AllocationEntryRow]:
    """List journal entries of allocations with all fields: those that moved credit, changed terms
    or set caps; by default all of these.
    """
    query = EntryQuery(
        visibility=request.identity.journal_visibility,
        allocation=allocation,
        projects=projects,
        kinds=_ALL_KINDS if about is None else _KINDS_ABOUT[about],
        owner=owner_uid,
        since=period.since,
        until=period.until,
    )
    entries, next_ = split_page(
        page.limit, request.services.allocations.activity(query, page.and_one)
    )
    runs = request.runs_by_id(entry.run for entry in entries)
    undone = request.services.undo.undone_by(entries)
    rows = [
        AllocationEntryRow(
            **structs.asdict(entry_row(entry, runs.get(entry.run), undone)),
            allocation=entry.allocation,
        )
        for entry in entries
    ]
    return list_response(AllocationEntryRow, request.context, rows, next_)


@write_route(post, "/entry/{entry:int}/undo", responses=GRANTED_BEFORE)
def undo_entry(
    request: ApiRequest, entry: Number, data: JSONBody[NewUndo], key: Key = None
) -> Response[ItemResponse[Granted]]:
    """Undo an entry once and completely, by another entry that names it in its details (`undoes`).

    A deposit, withdrawal, transfer or refund is undone by the opposite movement. Terms, a cap or a
    role are set to those before, unless they changed again since. Requires the permission for the
    opposite request.
    """
    outcome = request.services.undo.undo(
        request.identity, entry, ids.reason(data.comment), check_key(key)
    )
    return created_response(outcome, request.context)
