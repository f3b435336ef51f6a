"""Allocations as they are: their sums, what is left, and who drew what."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter

from fairbank.bank.allocation import Allocation, Standing
from fairbank.bank.query import AllocationQuery, Page
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import (
    CONCERNED,
    PAGE,
    PROJECTS,
    AllocationFilters,
    Concerned,
    Number,
    OnePage,
    Projects,
)
from fairbank.rest.bodies.answers import AllocationRow, BalanceRow, DrawnRow, Listing, Single
from fairbank.rest.verbs import reads
from fairbank.rest.views import allocation_row, balance_row, by_id, cut, listing, single

InState = Annotated[
    Literal["planned", "active", "frozen", "ended"] | None,
    QueryParameter(name="state", description="by the clock, as shown"),
]
Every = Annotated[bool, QueryParameter(name="all")]


class Asked(NamedTuple):
    """Which allocations are asked for, by both lists."""

    projects: frozenset[int] | None
    concerned: AllocationFilters
    stands: Standing | None

    @property
    def any_time(self) -> bool:
        """Whether nothing is said of how they stand, or when."""
        return self.stands is None and self.concerned.active_at is None


def asked(projects: Projects, concerned: Concerned, in_state: InState = None) -> Asked:
    """As the query says."""
    return Asked(projects, concerned, None if in_state is None else Standing(in_state))


FILTERS = {
    "page": PAGE,
    "projects": PROJECTS,
    "concerned": CONCERNED,
    "chosen": Provide(asked, sync_to_thread=False),
}
Chosen = NamedDependency[Asked]


@reads("/alloc", dependencies=FILTERS)
def list_allocations(request: Asking, page: OnePage, chosen: Chosen) -> Listing[AllocationRow]:
    """The allocations that the asker may see: those of the asker's projects, and what their parents share with them."""
    found, following = _find(request, page, chosen)
    return listing(
        "allocation", request.services.clock, [_row(request, each) for each in found], following
    )


@reads("/balance", dependencies=FILTERS)
def list_balances(
    request: Asking, page: OnePage, chosen: Chosen, every: Every = False
) -> Listing[BalanceRow]:
    """What is left: of the allocations that are active now, or of all; what parents share with a project is among its own."""
    found, following = _find(
        request,
        page,
        chosen._replace(stands=Standing.ACTIVE) if chosen.any_time and not every else chosen,
    )
    now = request.services.clock.now()
    rows = [
        balance_row(each, request.services.directory.by_id(each.project), now) for each in found
    ]
    return listing("balance", request.services.clock, rows, following)


def _find(request: Asking, page: Page, chosen: Asked) -> tuple[list[Allocation], str | None]:
    query = AllocationQuery(
        sight=request.asker.sight,
        projects=chosen.projects,
        **chosen.concerned._asdict(),
        stands=None if chosen.stands is None else (chosen.stands, request.services.clock.now()),
        lenders=request.services.allocations.parents_of(request.asker, chosen.projects),
    )
    return cut(page.limit, request.services.allocations.find(query, page.and_one), by_id)


def _row(request: Asking, allocation: Allocation) -> AllocationRow:
    return allocation_row(
        allocation,
        request.services.directory.by_id(allocation.project),
        request.services.clock.now(),
    )


@reads("/alloc/{allocation:int}")
def show_allocation(request: Asking, allocation: Number) -> Single[AllocationRow]:
    """One allocation with its sums."""
    return shown(request, allocation)


@reads("/alloc/{allocation:int}/user", dependencies={"page": PAGE})
def list_users(request: Asking, allocation: Number, page: OnePage) -> Listing[DrawnRow]:
    """What each user drew from an allocation, and the caps, by uid."""
    found, following = cut(
        page.limit,
        request.services.allocations.users(request.asker, allocation, page.and_one),
        lambda each: each.uid,
    )
    rows = [
        DrawnRow(uid=each.uid, charged=each.sums.charged, held=each.sums.held, cap=each.sums.cap)
        for each in found
    ]
    return listing("drawn", request.services.clock, rows, following)


def shown(request: Asking, allocation: int) -> Single[AllocationRow]:
    """An allocation as it stands now. Raises Unknown."""
    found = request.services.allocations.get_drawable(request.asker, allocation)
    return single("allocation", request.services.clock, _row(request, found))


ROUTES = (list_allocations, list_balances, show_allocation, list_users)
