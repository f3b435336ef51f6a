"""The statement: one allocation's journal, page by page, with the sums before and after; and entries of many allocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from litestar.params import FromQuery
from msgspec import structs

from fairbank.bank.entry import EFFECTS, OF_TERMS, Kind
from fairbank.bank.query import EntryQuery
from fairbank.core.time import LAST_INSTANT, Instant, iso
from fairbank.rest.asking import Asking
from fairbank.rest.asking.lookup import runs_by_id
from fairbank.rest.asking.params import (
    PAGE,
    PERIOD,
    RECENT,
    RUN_FOR,
    Number,
    OneId,
    OnePage,
    OnePeriod,
    OneUid,
    Projects,
)
from fairbank.rest.bodies.answers import (
    BookEntryRow,
    Listing,
    StatementAnswer,
    StatementPage,
    StatementRow,
    Sums,
)
from fairbank.rest.verbs import reads
from fairbank.rest.views import allocation_row, by_id, changed_terms, cut, entry_row, listing, sums


@reads("/alloc/{allocation:int}/statement", dependencies={"page": PAGE, "period": PERIOD})
def show_statement(
    request: Asking, allocation: Number, page: OnePage, period: OnePeriod
) -> StatementAnswer:
    """The entries of an allocation in the order they were made, with the sums before and after them."""
    services = request.services
    until = LAST_INSTANT if period.until is None else period.until
    found = services.allocations.statement(
        request.asker, allocation, period.since or Instant(0), until, page.and_one
    )
    entries, following = cut(page.limit, found.entries, lambda each: each.seq)
    runs = runs_by_id(request, (each.run for each in entries))
    opening = Sums() if found.opening is None else sums(found.opening)
    told = StatementPage(
        allocation=allocation_row(
            found.allocation,
            services.directory.by_id(found.allocation.project),
            services.clock.now(),
        ),
        opening=opening,
        entries=[
            StatementRow(
                **structs.asdict(entry_row(each, runs.get(each.run))),
                changed=changed_terms(found.changes.get(each.id)),
            )
            for each in entries
        ],
        closing=sums(entries[-1]) if entries else opening,
    )
    return StatementAnswer(
        schema="fairbank.statement/1", as_of=iso(services.clock.now()), data=told, next=following
    )


_ABOUT: Mapping[str, frozenset[Kind]] = {
    "units": frozenset(EFFECTS),
    "terms": OF_TERMS,
    "caps": frozenset({Kind.CAP}),
}
_ANYTHING = frozenset().union(*_ABOUT.values())
About = FromQuery[Literal["units", "terms", "caps"] | None]


@reads("/entry", dependencies={"page": RECENT, "projects": RUN_FOR, "period": PERIOD})
def list_entries(
    request: Asking,
    page: OnePage,
    projects: Projects,
    period: OnePeriod,
    allocation: OneId = None,
    owner_uid: OneUid = None,
    about: About = None,
) -> Listing[BookEntryRow]:
    """Entries in the books of allocations, whole: those that moved units, changed terms, or set caps; or all of these."""
    query = EntryQuery(
        visibility=request.asker.visibility,
        book=allocation,
        projects=projects,
        kinds=_ANYTHING if about is None else _ABOUT[about],
        owner=owner_uid,
        since=period.since,
        until=period.until,
    )
    found, following = cut(
        page.limit, request.services.allocations.activity(query, page.and_one), by_id
    )
    runs = runs_by_id(request, (each.run for each in found))
    rows = [
        BookEntryRow(**structs.asdict(entry_row(each, runs.get(each.run))), allocation=each.book)
        for each in found
    ]
    return listing("entry", request.services.clock, rows, following)


ROUTES = (show_statement, list_entries)
