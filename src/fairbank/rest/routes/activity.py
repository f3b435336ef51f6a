"""Activity, credits, predebits and debits in HADM's terms (its schemas 3 to 5)."""

from __future__ import annotations

import re
from typing import Annotated

from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter
from msgspec.structs import replace

from fairbank.bank.entry import EFFECTS, OF_CREDIT
from fairbank.bank.query import DebitPage, DebitQuery, EntryQuery, Page, RunQuery
from fairbank.core.errors import InvalidInput
from fairbank.rest.parameters import (
    PERIOD,
    PROJECTS_OF_RUNS,
    RECENT,
    Limit,
    OneId,
    OnePage,
    OnePeriod,
    OneUid,
    Projects,
)
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.activity import (
    ActivityRow,
    CreditRow,
    DebitRow,
    PredebitRow,
    activity_row,
    credit_row,
    debit_row,
    predebit_row,
)
from fairbank.rest.schemas.answers import ListResponse
from fairbank.rest.schemas.envelope import list_response, page_response, split_page
from fairbank.rest.schemas.job import Status

InStatus = Annotated[Status, QueryParameter(name="status", description="HADM's status of the job")]
AfterDebit = Annotated[
    str | None, QueryParameter(max_length=40, description="`next` of the previous page")
]


def entry_query(
    request: ApiRequest, projects: Projects, period: OnePeriod, allocation: OneId = None
) -> EntryQuery:
    """Return the query for entries of all kinds that the user may see.

    Args:
        projects: the named projects; None if none is named.
        period: the period of the times at which the entries were made.
        allocation: number of the allocation of the journal; None: all.
    """
    return EntryQuery(
        visibility=request.identity.journal_visibility,
        allocation=allocation,
        projects=projects,
        since=period.since,
        until=period.until,
    )


ChosenEntries = NamedDependency[EntryQuery]
_FILTERS = {
    "page": RECENT,
    "projects": PROJECTS_OF_RUNS,
    "period": PERIOD,
    "chosen": Provide(entry_query, sync_to_thread=False),
}


@read_route("/activity", dependencies=_FILTERS)
def list_activity(
    request: ApiRequest, page: OnePage, chosen: ChosenEntries
) -> ListResponse[ActivityRow]:
    """List entries that move credit.

    `project`, `gid`, `gname` and `account` select the project that a run was for, also if another
    one paid; for other entries, the project of the allocation. `allocation` selects the one whose
    credit moved.
    """
    query = replace(chosen, kinds=frozenset(EFFECTS))
    entries, next_ = split_page(
        page.limit, request.services.allocations.activity(query, page.and_one)
    )
    runs = request.runs_by_id(entry.run for entry in entries)
    rows = [activity_row(entry, runs.get(entry.run)) for entry in entries]
    return list_response(ActivityRow, request.context, rows, next_)


@read_route("/credit", dependencies=_FILTERS)
def list_credits(
    request: ApiRequest, page: OnePage, chosen: ChosenEntries
) -> ListResponse[CreditRow]:
    """List deposits and incoming transfers, and as negative amounts withdrawals and outgoing
    transfers.
    """
    query = replace(chosen, kinds=frozenset(OF_CREDIT))
    entries = request.services.allocations.activity(query, page.and_one)
    return page_response(CreditRow, request.context, page.limit, entries, credit_row)


@read_route("/predebit", dependencies=_FILTERS)
def list_predebits(
    request: ApiRequest, page: OnePage, chosen: ChosenEntries, status: InStatus = "executing"
) -> ListResponse[PredebitRow]:
    """List open holds, or with `status=completed` the runs that have ended, whose hold is 0: their
    charge is in `GET /debit`. `since` and `until` select by the start of the run.
    """
    query = RunQuery(
        visibility=request.identity.job_visibility,
        projects=chosen.projects,
        allocation=chosen.allocation,
        closed=status == "completed",
        measured=False,
        since=chosen.since,
        until=chosen.until,
    )
    runs, next_ = split_page(page.limit, request.services.runs.find(query, page.and_one))
    # A user who may see a run may see the entry that opened it.
    opened_by = EntryQuery(ids=frozenset(run.id for run in runs))
    entries = request.services.allocations.activity(opened_by, Page(len(runs)))
    comments = {entry.id: entry.comment for entry in entries}
    rows = [predebit_row(run, comments.get(run.id)) for run in runs]
    return list_response(PredebitRow, request.context, rows, next_)


@read_route("/debit", dependencies={"projects": PROJECTS_OF_RUNS})
def list_debits(
    request: ApiRequest,
    projects: Projects,
    allocation: OneId = None,
    owner_uid: OneUid = None,
    limit: Limit = 100,
    after: AfterDebit = None,
) -> ListResponse[DebitRow]:
    """List the sum of charges of each owner in each allocation."""
    page = DebitPage(limit, _parse_cursor(after))
    query = DebitQuery(
        visibility=request.identity.job_visibility,
        projects=projects,
        allocation=allocation,
        owner=owner_uid,
    )
    debits = request.services.allocations.debits(query, page.and_one)
    cursor = "{0.allocation}-{0.owner}".format
    return page_response(DebitRow, request.context, limit, debits, debit_row, cursor)


def _parse_cursor(text: str | None) -> tuple[int, int] | None:
    """Return the allocation and the owner of the last row of the previous page."""
    if text is None:
        return None
    cursor = re.fullmatch(r"(\d{1,16})-(\d{1,10})", text, re.ASCII)
    if cursor is None:
        raise InvalidInput(
            f"{text!r} is not a cursor of this list",
            field="after",
            remedy="send the `next` of the previous page",
        )
    return int(cursor[1]), int(cursor[2])
