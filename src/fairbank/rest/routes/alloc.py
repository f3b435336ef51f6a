"""Allocations and their balances: lists, one allocation, its users."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter

from fairbank.bank.allocation import Allocation, Standing
from fairbank.bank.query import AllocationQuery, Page
from fairbank.rest.parameters import (
    ALLOCATIONS,
    PAGE,
    PROJECTS,
    AllocationFilters,
    AllocationsChosen,
    Number,
    OnePage,
    Projects,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.alloc import (
    AllocationRow,
    BalanceRow,
    DrawnRow,
    allocation_row,
    balance_row,
    drawn_row,
)
from fairbank.rest.schemas.envelope import (
    ItemResponse,
    ListResponse,
    item_response,
    list_response,
    split_page,
)

InState = Annotated[
    Literal["planned", "active", "frozen", "ended"] | None,
    QueryParameter(name="state", description="state at the time of the request"),
]
Every = Annotated[bool, QueryParameter(name="all")]


class ChosenAllocations(NamedTuple):
    """Filters of both lists."""

    projects: frozenset[int] | None
    allocations: AllocationFilters
    state: Standing | None

    @property
    def at_any_time(self) -> bool:
        """True if neither a state nor a time is selected."""
        return self.state is None and self.allocations.active_at is None


def chosen_allocations(
    projects: Projects, allocations: AllocationsChosen, in_state: InState = None
) -> ChosenAllocations:
    """Combine the filters of the query."""
    state = None if in_state is None else Standing(in_state)
    return ChosenAllocations(projects, allocations, state)


FILTERS = {
    "page": PAGE,
    "projects": PROJECTS,
    "allocations": ALLOCATIONS,
    "chosen": Provide(chosen_allocations, sync_to_thread=False),
}
Chosen = NamedDependency[ChosenAllocations]


@read_route("/alloc", dependencies=FILTERS)
def list_allocations(
    request: ApiRequest, page: OnePage, chosen: Chosen
) -> ListResponse[AllocationRow]:
    """List allocations of the user's projects, and those that parent projects share with them."""
    allocations, next_ = _find(request, page, chosen)
    rows = [_row(request, allocation) for allocation in allocations]
    return list_response("allocation", request.services.clock, rows, next_)


@read_route("/balance", dependencies=FILTERS)
def list_balances(
    request: ApiRequest, page: OnePage, chosen: Chosen, every: Every = False
) -> ListResponse[BalanceRow]:
    """List balances of the active allocations, or of all. Allocations that parent projects share
    are included.
    """
    if chosen.at_any_time and not every:
        chosen = chosen._replace(state=Standing.ACTIVE)
    allocations, next_ = _find(request, page, chosen)
    now, directory = request.services.clock.now(), request.services.project_cache
    rows = [
        balance_row(allocation, directory.by_id(allocation.project), now)
        for allocation in allocations
    ]
    return list_response("balance", request.services.clock, rows, next_)


def _find(
    request: ApiRequest, page: Page, chosen: ChosenAllocations
) -> tuple[list[Allocation], str | None]:
    services, state = request.services, chosen.state
    query = AllocationQuery(
        visibility=request.identity.visibility,
        projects=chosen.projects,
        **chosen.allocations._asdict(),
        stands=None if state is None else (state, services.clock.now()),
        lenders=services.allocations.parents_of(request.identity, chosen.projects),
    )
    return split_page(page.limit, services.allocations.find(query, page.and_one))


def _row(request: ApiRequest, allocation: Allocation) -> AllocationRow:
    services = request.services
    project = services.project_cache.by_id(allocation.project)
    return allocation_row(allocation, project, services.clock.now())


@read_route("/alloc/{allocation:int}")
def show_allocation(request: ApiRequest, allocation: Number) -> ItemResponse[AllocationRow]:
    """Return one allocation with its balance."""
    return allocation_response(request, allocation)


@read_route("/alloc/{allocation:int}/user", dependencies={"page": PAGE})
def list_users(request: ApiRequest, allocation: Number, page: OnePage) -> ListResponse[DrawnRow]:
    """List the use of an allocation by each user, and the users' caps, by uid."""
    users, next_ = split_page(
        page.limit,
        request.services.allocations.users(request.identity, allocation, page.and_one),
        lambda user: user.uid,
    )
    rows = [drawn_row(user) for user in users]
    return list_response("drawn", request.services.clock, rows, next_)


def allocation_response(request: ApiRequest, number: int) -> ItemResponse[AllocationRow]:
    """Return an allocation as it is now; raise NotFound if the user may not see it."""
    allocation = request.services.allocations.get_drawable(request.identity, number)
    return item_response("allocation", request.services.clock, _row(request, allocation))


ROUTES = (list_allocations, list_balances, show_allocation, list_users)
