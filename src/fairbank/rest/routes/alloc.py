"""Allocations: lists, balances, users, terms, caps and movements of credit."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Literal, NamedTuple, TypedDict

from litestar import Response, delete, patch, post, put
from litestar.di import NamedDependency, Provide
from litestar.params import JSONBody, QueryParameter
from msgspec import UNSET, structs

from fairbank.bank.allocation import AllocationEvent, AllocationTerms, ShownState
from fairbank.bank.query import AllocationQuery, Balance, Page
from fairbank.bank.requests import Amend, Deposit, Open, SetCap, Transfer, Withdraw
from fairbank.bank.rules import Done
from fairbank.cluster.partition import unbilled_warnings
from fairbank.core import ids
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.rest.parameters import (
    ALLOCATIONS,
    PAGE,
    PROJECTS,
    AllocationFilters,
    AllocationsChosen,
    Comment,
    Key,
    Number,
    OnePage,
    Projects,
    UidNumber,
    check_key,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.responses import created_response, done_of, granted_response
from fairbank.rest.routing import GRANTED_BEFORE, existing, read_route, write_route
from fairbank.rest.schemas.alloc import (
    AllocationRow,
    AllocationUserRow,
    BalanceRow,
    ChangedAllocation,
    allocation_row,
    allocation_user_row,
    balance_row,
)
from fairbank.rest.schemas.answers import Granted, ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import item_response, list_response, page_response, split_page
from fairbank.rest.schemas.requests import (
    Movement,
    NewAllocation,
    NewCap,
    NewTerms,
    NewTransfer,
    parse_when,
)
from fairbank.service.access.identity import Action, check_allowed

InState = Annotated[
    Literal["planned", "active", "frozen", "ended", "removed"] | None,
    QueryParameter(name="state", description="state at the time of the request"),
]
Every = Annotated[bool, QueryParameter(name="all", description="also those that have ended")]


class ChosenAllocations(NamedTuple):
    """Filters of both lists."""

    projects: frozenset[int] | None
    allocations: AllocationFilters
    state: ShownState | None

    @property
    def is_at_any_time(self) -> bool:
        """True if neither a state nor a time is selected."""
        return self.state is None and self.allocations.active_at is None


def chosen_allocations(
    projects: Projects, allocations: AllocationsChosen, in_state: InState = None
) -> ChosenAllocations:
    """Combine the filters of the query.

    Args:
        projects: the named projects; None if none is named.
        allocations: filters by resource, category and time.
        in_state: state as it is shown now; None: any.
    """
    state = None if in_state is None else ShownState(in_state)
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
    balances, next_ = _find(request, page, chosen)
    rows = [_row(request, balance) for balance in balances]
    return list_response(AllocationRow, request.context, rows, next_)


@read_route("/balance", dependencies=FILTERS)
def list_balances(
    request: ApiRequest, page: OnePage, chosen: Chosen, every: Every = False
) -> ListResponse[BalanceRow]:
    """List balances of the allocations that have not ended, or of all. Without a later one, the
    last ended allocation of a project and resource is included; for staff, only of projects that
    the query names. Allocations that parent projects share are included.
    """
    is_current = chosen.is_at_any_time and not every
    balances, next_ = _find(request, page, chosen, is_current=is_current)
    now, project_cache = request.services.clock.now(), request.services.project_cache
    rows = [
        balance_row(
            balance,
            project_cache.by_id(balance.allocation.terms.project),
            now,
            request.services.clusters,
        )
        for balance in balances
    ]
    return list_response(BalanceRow, request.context, rows, next_)


def _find(
    request: ApiRequest, page: Page, chosen: ChosenAllocations, *, is_current: bool = False
) -> tuple[list[Balance], str | None]:
    services, state = request.services, chosen.state
    visibility = request.identity.visibility
    query = AllocationQuery(
        visibility=visibility,
        projects=chosen.projects,
        **chosen.allocations._asdict(),
        shown_state=None if state is None else (state, services.clock.now()),
        open_at=services.clock.now() if is_current else None,
        or_latest=chosen.projects is not None or not visibility.everything,
        lenders=services.allocations.parents_of(request.identity, chosen.projects),
    )
    balances = services.allocations.balances(request.identity, query, page.and_one)
    return split_page(page.limit, balances, lambda balance: balance.allocation.id)


def _row(request: ApiRequest, balance: Balance) -> AllocationRow:
    services = request.services
    project = services.project_cache.by_id(balance.allocation.terms.project)
    return allocation_row(balance, project, services.clock.now())


@read_route("/alloc/{allocation:int}")
def show_allocation(request: ApiRequest, allocation: Number) -> ItemResponse[AllocationRow]:
    """Return one allocation with its balance."""
    return allocation_response(request, allocation)


@read_route("/alloc/{allocation:int}/user", dependencies={"page": PAGE})
def list_users(
    request: ApiRequest, allocation: Number, page: OnePage
) -> ListResponse[AllocationUserRow]:
    """List the use of an allocation by each user, and the users' caps, by uid."""
    users = request.services.allocations.users(request.identity, allocation, page.and_one)
    return page_response(
        AllocationUserRow,
        request.context,
        page.limit,
        users,
        allocation_user_row,
        attrgetter("uid"),
    )


def allocation_response(request: ApiRequest, number: int) -> ItemResponse[AllocationRow]:
    """Return an allocation as it is now; raise NotFound if the user may not see it."""
    balance = request.services.allocations.get_drawable(request.identity, number)
    return item_response(request.context, _row(request, balance))


@write_route(post, "/alloc", responses=existing(ItemResponse[ChangedAllocation]))
def open_allocation(
    request: ApiRequest, data: JSONBody[NewAllocation], key: Key = None
) -> Response[ItemResponse[ChangedAllocation]]:
    """Grant a project credit on a resource for a period."""
    # First, so that users without this permission cannot find out which projects exist.
    check_allowed(request.identity, Action.OPEN_ALLOCATION)
    bank_request = Open(
        terms=AllocationTerms(
            project=_project(request, data),
            resource=ids.kind(data.resource),
            category=_category(data.category),
            start=parse_when(data.start, field="start"),
            end=parse_when(data.end, field="end"),
            shared=data.shared,
            partition=_partition(request, data),
            reservation=None if data.reservation is None else ids.reservation(data.reservation),
            credit_limit=SuMinutes(data.credit_limit),
        ),
        deposit=SuMinutes(data.amount),
        key=check_key(key),
        comment=ids.reason(data.comment),
    )
    _check_period(bank_request.terms.start, bank_request.terms.end)
    done = done_of(request.services.allocations.open(request.identity, bank_request))
    warnings = unbilled_warnings(bank_request.terms.resource, request.services.clusters)
    return Response(_changed(request, done, warnings), status_code=200 if done.again else 201)


def _category(name: str) -> str:
    return ids.kind(name, field="category", noun="category")


def _partition(request: ApiRequest, data: NewAllocation) -> str | None:
    """Return the partition of a short-term allocation. Raises InvalidInput for one that does not
    bill its resource.
    """
    if data.partition is None:
        return None
    clusters = request.services.clusters.values()
    names = {
        partition.name for cluster in clusters for partition in cluster.partitions_of(data.resource)
    }
    if data.partition not in names:
        raise InvalidInput(
            f"no partition {data.partition!r} bills {data.resource!r}",
            field="partition",
            remedy=f"these do: {', '.join(sorted(names)) or 'none'}; add it to the bank's settings",
        )
    return data.partition


def _changed(
    request: ApiRequest, done: Done, warnings: Sequence[str] = ()
) -> ItemResponse[ChangedAllocation]:
    response = allocation_response(request, done.allocation or 0)
    row = ChangedAllocation(
        **structs.asdict(response.data), entry=done.entry, warnings=list(warnings) or UNSET
    )
    return item_response(request.context, row)


def _check_period(start: Instant | None, end: Instant | None) -> None:
    if start is not None and end is not None and end <= start:
        raise InvalidInput(
            "the allocation would not end after it starts",
            field="end",
            remedy="an allocation is valid at t if start <= t < end",
        )


def _project(request: ApiRequest, data: NewAllocation) -> int:
    if (data.project is None) == (data.account is None):
        raise InvalidInput(
            "name the project once",
            field="project",
            remedy="send either project, its number, or account",
        )
    if data.project is not None:
        return data.project
    account = ids.name(data.account or "", field="account")
    project = request.services.project_cache.by_account(account)
    if project is None:
        raise NotFound(
            f"there is no project with the account {data.account}",
            field="account",
            remedy="create it first: fairbank project create",
        )
    return project.id


@write_route(patch, "/alloc/{allocation:int}")
def amend_allocation(
    request: ApiRequest, allocation: Number, data: JSONBody[NewTerms], key: Key = None
) -> ItemResponse[ChangedAllocation]:
    """Change the terms of an allocation, or freeze, thaw, end or reopen it. `category` and
    `resource` change only while no job was charged to it or holds credit of it.
    """
    absent = {name for name, value in structs.asdict(data).items() if value is None}
    if absent | {"comment"} == {*data.__struct_fields__}:
        raise InvalidInput(
            "the request changes nothing",
            remedy="send start, end, credit_limit, shared, event, category or resource",
        )
    old = request.services.allocations.get(request.identity, allocation)
    bank_request = Amend(
        allocation=allocation,
        project=old.terms.project,
        resource=old.terms.resource,
        start=None if data.start is None else parse_when(data.start, field="start"),
        end=None if data.end is None else parse_when(data.end, field="end"),
        shared=data.shared,
        credit_limit=None if data.credit_limit is None else SuMinutes(data.credit_limit),
        event=None if data.event is None else AllocationEvent(data.event),
        category=None if data.category is None else _category(data.category),
        new_resource=None if data.resource is None else ids.kind(data.resource),
        key=check_key(key),
        comment=ids.reason(data.comment),
    )
    _check_period(bank_request.start, bank_request.end)
    outcome = request.services.allocations.amend(request.identity, bank_request)
    clusters = request.services.clusters
    warnings = [] if data.resource is None else unbilled_warnings(data.resource, clusters)
    return _changed(request, done_of(outcome, absent), warnings)


@write_route(delete, "/alloc/{allocation:int}", status_code=200)
def remove_allocation(
    request: ApiRequest, allocation: Number, comment: Comment = None, key: Key = None
) -> ItemResponse[Granted]:
    """Remove an allocation in which no credit has moved. Its journal stays, its period is free."""
    old = request.services.allocations.get(request.identity, allocation)
    bank_request = Amend(
        allocation=allocation,
        project=old.terms.project,
        resource=old.terms.resource,
        event=AllocationEvent.REMOVE,
        key=check_key(key),
        comment=None if comment is None else ids.comment(comment),
    )
    outcome = request.services.allocations.amend(request.identity, bank_request)
    return granted_response(outcome, request.context)


@write_route(put, "/alloc/{allocation:int}/cap/{uid:int}")
def set_cap(
    request: ApiRequest, allocation: Number, uid: UidNumber, data: JSONBody[NewCap], key: Key = None
) -> ItemResponse[Granted]:
    """Set the maximum that a user may use of an allocation in total."""
    bank_request = SetCap(
        allocation=allocation,
        uid=uid,
        cap=None if data.cap is None else SuMinutes(data.cap),
        key=check_key(key),
        comment=None if data.comment is None else ids.comment(data.comment),
    )
    service = request.services.allocations
    outcome = service.set_cap(request.identity, bank_request)
    warnings = service.cap_warnings(bank_request)
    return granted_response(outcome, request.context, warnings=warnings)


class _MovementFields(TypedDict):
    """Fields of all movements of credit."""

    amount: SuMinutes
    key: str | None
    comment: str


def _movement_fields(data: Movement | NewTransfer, key: str | None) -> _MovementFields:
    return {
        "amount": SuMinutes(data.amount),
        "key": check_key(key),
        "comment": ids.reason(data.comment),
    }


@write_route(post, "/alloc/{allocation:int}/deposit", responses=GRANTED_BEFORE)
def deposit(
    request: ApiRequest, allocation: Number, data: JSONBody[Movement], key: Key = None
) -> Response[ItemResponse[Granted]]:
    """Deposit credit in an allocation."""
    bank_request = Deposit(allocation=allocation, **_movement_fields(data, key))
    outcome = request.services.allocations.deposit(request.identity, bank_request)
    return created_response(outcome, request.context)


@write_route(post, "/alloc/{allocation:int}/withdraw", responses=GRANTED_BEFORE)
def withdraw(
    request: ApiRequest, allocation: Number, data: JSONBody[Movement], key: Key = None
) -> Response[ItemResponse[Granted]]:
    """Withdraw unused credit from an allocation."""
    bank_request = Withdraw(allocation=allocation, **_movement_fields(data, key))
    outcome = request.services.allocations.withdraw(request.identity, bank_request)
    return created_response(outcome, request.context)


@write_route(post, "/alloc/{allocation:int}/transfer", responses=GRANTED_BEFORE)
def transfer(
    request: ApiRequest, allocation: Number, data: JSONBody[NewTransfer], key: Key = None
) -> Response[ItemResponse[Granted]]:
    """Transfer unused credit to another allocation of the same resource."""
    bank_request = Transfer(source=allocation, target=data.to, **_movement_fields(data, key))
    outcome = request.services.allocations.transfer(request.identity, bank_request)
    return created_response(outcome, request.context)
