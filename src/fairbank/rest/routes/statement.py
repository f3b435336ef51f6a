"""The statement: one allocation's journal, page by page, with the sums before and after."""

from __future__ import annotations

from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import StatementAnswer, StatementPage, Sums
from fairbank.rest.lookup import runs_by_id
from fairbank.rest.params import PAGE, PERIOD, Number, OnePage, OnePeriod
from fairbank.rest.verbs import reads
from fairbank.rest.views import allocation_row, entry_row, next_after, sums
from fairbank.values.time import LAST_INSTANT, Instant, iso


@reads("/alloc/{allocation:int}/statement", dependencies={"page": PAGE, "period": PERIOD})
def show_statement(request: Asking, allocation: Number, page: OnePage, period: OnePeriod) -> StatementAnswer:
    """The entries of an allocation in the order they were made, with the sums before and after them."""
    house = request.house
    until = LAST_INSTANT if period.until is None else period.until
    found = house.allocations.statement(request.asker, allocation, period.since or Instant(0), until, page)
    runs = runs_by_id(request, (each.run for each in found.entries))
    opening = Sums() if found.opening is None else sums(found.opening)
    told = StatementPage(
        allocation=allocation_row(found.allocation, house.directory.by_id(found.allocation.project)),
        opening=opening,
        entries=[entry_row(each, runs.get(each.run)) for each in found.entries],
        closing=sums(found.entries[-1]) if found.entries else opening,
    )
    cursor = next_after(page, [each.seq for each in found.entries])
    return StatementAnswer(schema="fairbank.statement/1", as_of=iso(house.clock.now()), data=told, next=cursor)


ROUTES = (show_statement,)
