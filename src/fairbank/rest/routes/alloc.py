"""Allocations as they are: their sums, what is left, and who drew what."""

from __future__ import annotations

from typing import Annotated, Literal

from litestar.params import QueryParameter

from fairbank.bank.allocation import Allocation, Standing
from fairbank.bank.query import AllocationQuery, Page
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import PAGE, PROJECTS, ActiveAt, Number, OneName, OnePage, Projects, instant
from fairbank.rest.bodies.answers import AllocationRow, BalanceRow, DrawnRow, Listing, Single
from fairbank.rest.verbs import reads
from fairbank.rest.views import allocation_row, balance_row, listing, next_after, single

InState = Annotated[
    Literal["planned", "active", "frozen", "ended"] | None, QueryParameter(name="state", description="by the clock, as shown")
]
Every = Annotated[bool, QueryParameter(name="all")]
FILTERS = {"page": PAGE, "projects": PROJECTS}


@reads("/alloc", dependencies=FILTERS)
def list_allocations(
    request: Asking,
    page: OnePage,
    projects: Projects,
    resource: OneName = None,
    category: OneName = None,
    in_state: InState = None,
    active_at: ActiveAt = None,
) -> Listing[AllocationRow]:
    """The allocations that the asker may see: those of the asker's projects, and what their parents share with them."""
    query = _query(request, projects, resource, category, in_state, active_at)
    found = request.house.allocations.find(query, page)
    return listing("allocation", request.house.clock, [_row(request, each) for each in found], _next(page, found))


@reads("/balance", dependencies=FILTERS)
def list_balances(
    request: Asking,
    page: OnePage,
    projects: Projects,
    resource: OneName = None,
    category: OneName = None,
    in_state: InState = None,
    active_at: ActiveAt = None,
    every: Every = False,
) -> Listing[BalanceRow]:
    """What is left: of the allocations that are active now, or of all; what parents share with a project is among its own."""
    if in_state is None and active_at is None and not every:
        in_state = Standing.ACTIVE.value
    found = request.house.allocations.find(_query(request, projects, resource, category, in_state, active_at), page)
    now = request.house.clock.now()
    rows = [balance_row(each, request.house.directory.by_id(each.project), now) for each in found]
    return listing("balance", request.house.clock, rows, _next(page, found))


def _query(
    request: Asking, projects: frozenset[int] | None, resource: str | None, category: str | None, state: str | None, active_at: str | None
) -> AllocationQuery:
    return AllocationQuery(
        sight=request.asker.sight,
        projects=projects,
        resource=resource,
        category=category,
        stands=None if state is None else (Standing(state), request.house.clock.now()),
        active_at=instant(request, active_at),
        lenders=request.house.allocations.lenders(request.asker, projects),
    )


def _row(request: Asking, allocation: Allocation) -> AllocationRow:
    return allocation_row(allocation, request.house.directory.by_id(allocation.project), request.house.clock.now())


def _next(page: Page, found: list[Allocation]) -> str | None:
    return next_after(page, [each.id for each in found])


@reads("/alloc/{allocation:int}")
def show_allocation(request: Asking, allocation: Number) -> Single[AllocationRow]:
    """One allocation with its sums."""
    return shown(request, allocation)


@reads("/alloc/{allocation:int}/user", dependencies={"page": PAGE})
def list_users(request: Asking, allocation: Number, page: OnePage) -> Listing[DrawnRow]:
    """What each user drew from an allocation, and the caps, by uid."""
    found = request.house.allocations.users(request.asker, allocation, page)
    rows = [DrawnRow(uid=each.uid, charged=each.sums.charged, held=each.sums.held, cap=each.sums.cap) for each in found]
    return listing("drawn", request.house.clock, rows, next_after(page, [each.uid for each in found]))


def shown(request: Asking, allocation: int) -> Single[AllocationRow]:
    """An allocation as it stands now. Raises Unknown."""
    found = request.house.allocations.look(request.asker, allocation)
    return single("allocation", request.house.clock, _row(request, found))


ROUTES = (list_allocations, list_balances, show_allocation, list_users)
