"""What HADM calls activity: entries that move units, credits, open pre-debits, debits by owner (its schemas 3 to 5)."""

from __future__ import annotations

import re
from typing import Annotated

from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter
from msgspec.structs import replace

from fairbank.bank.entry import EFFECTS, OF_CREDIT
from fairbank.bank.query import DebitPage, DebitQuery, EntryQuery, Page, RunQuery
from fairbank.bank.run import RunState
from fairbank.core.errors import InvalidInput
from fairbank.core.time import iso
from fairbank.rest.asking import Asking
from fairbank.rest.asking.lookup import runs_by_id
from fairbank.rest.asking.params import (
    PERIOD,
    PROJECTS,
    RECENT,
    RUN_FOR,
    Limit,
    OneId,
    OnePage,
    OnePeriod,
    OneUid,
    Projects,
)
from fairbank.rest.bodies.answers import ActivityRow, CreditRow, DebitRow, Listing, PredebitRow
from fairbank.rest.verbs import reads
from fairbank.rest.views import by_id, cut, debit_row, listing, predebit_row

AfterDebit = Annotated[
    str | None, QueryParameter(max_length=40, description="`next` of the page before")
]


def entries(
    request: Asking, projects: Projects, period: OnePeriod, allocation: OneId = None
) -> EntryQuery:
    """The entries that are asked for, of whatever kind, as far as the asker may see them."""
    return EntryQuery(
        visibility=request.asker.visibility,
        book=allocation,
        projects=projects,
        since=period.since,
        until=period.until,
    )


Entries = NamedDependency[EntryQuery]
_FILTERS = {
    "page": RECENT,
    "projects": RUN_FOR,
    "period": PERIOD,
    "chosen": Provide(entries, sync_to_thread=False),
}


@reads("/activity", dependencies=_FILTERS)
def list_activity(request: Asking, page: OnePage, chosen: Entries) -> Listing[ActivityRow]:
    """Every entry that moves units.

    Project, gid, gname and account name the project that a run was for, whoever paid, and of other entries the allocation's own.
    Allocation is the one whose units were moved.
    """
    found, following = cut(
        page.limit,
        request.services.allocations.activity(
            replace(chosen, kinds=frozenset(EFFECTS)), page.and_one
        ),
        by_id,
    )
    runs = runs_by_id(request, (each.run for each in found))
    rows = [
        ActivityRow(
            activity_id=each.id,
            allocation_id=each.book,
            amount=each.amount,
            comments=each.comment,
            at=iso(each.at),
            kind=each.kind.value,
            job_id=runs[each.run].run.job_id if each.run in runs else None,
            owner_uid=each.owner,
        )
        for each in found
    ]
    return listing("activity", request.services.clock, rows, following)


@reads("/credit", dependencies=_FILTERS)
def list_credits(request: Asking, page: OnePage, chosen: Entries) -> Listing[CreditRow]:
    """Deposits and incoming transfers, and with a minus withdrawals and outgoing transfers."""
    found, following = cut(
        page.limit,
        request.services.allocations.activity(
            replace(chosen, kinds=frozenset(OF_CREDIT)), page.and_one
        ),
        by_id,
    )
    rows = [
        CreditRow(
            activity_id=each.id,
            allocation_id=each.book,
            amount=OF_CREDIT[each.kind].sign * each.amount,
            comments=each.comment,
        )
        for each in found
    ]
    return listing("credit", request.services.clock, rows, following)


@reads("/predebit", dependencies=_FILTERS)
def list_predebits(request: Asking, page: OnePage, chosen: Entries) -> Listing[PredebitRow]:
    """Open holds; since and until are about the start of the run."""
    runs = RunQuery(
        visibility=chosen.visibility,
        projects=chosen.projects,
        allocation=chosen.book,
        state=RunState.HELD,
        since=chosen.since,
        until=chosen.until,
    )
    found, following = cut(page.limit, request.services.runs.find(runs, page.and_one), by_id)
    numbers = [each.id for each in found]
    opening = EntryQuery(
        ids=frozenset(numbers)
    )  # who may see a run may see the entry that opened it
    comments = {
        each.id: each.comment
        for each in request.services.allocations.activity(opening, Page(len(numbers)))
    }
    rows = [predebit_row(each, comments.get(each.id)) for each in found]
    return listing("predebit", request.services.clock, rows, following)


@reads("/debit", dependencies={"projects": PROJECTS})
def list_debits(
    request: Asking,
    projects: Projects,
    allocation: OneId = None,
    owner_uid: OneUid = None,
    limit: Limit = 100,
    after: AfterDebit = None,
) -> Listing[DebitRow]:
    """What each owner was charged in each allocation, one after the other."""
    page = DebitPage(limit, _after(after))
    query = DebitQuery(
        visibility=request.asker.visibility,
        projects=projects,
        allocation=allocation,
        owner=owner_uid,
    )
    debits = request.services.allocations.debits(query, page.and_one)
    found, following = cut(limit, debits, lambda each: f"{each.allocation}-{each.owner}")
    return listing("debit", request.services.clock, [debit_row(each) for each in found], following)


def _after(text: str | None) -> tuple[int, int] | None:
    """The allocation and the owner that the page before ended with. Raises InvalidInput."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,16})-(\d{1,10})", text, re.ASCII)
    if found is None:
        raise InvalidInput(
            f"{text!r} is no place in this list",
            field="after",
            remedy="send the `next` of the page before",
        )
    return int(found[1]), int(found[2])


ROUTES = (list_activity, list_credits, list_predebits, list_debits)
