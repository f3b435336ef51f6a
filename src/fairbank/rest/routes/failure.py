"""Jobs that the bank refused, with the amounts and remedies."""

from __future__ import annotations

from fairbank.bank.query import RefusalQuery
from fairbank.bank.refusals import NOTHING_KNOWN, Refusal
from fairbank.rest.parameters import JOBS, JobsChosen, Number, OneId, OneName, OnePage, OneUid
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.envelope import (
    ItemResponse,
    ListResponse,
    item_response,
    list_response,
    split_page,
)
from fairbank.rest.schemas.failure import FailureRow, failure_row


@read_route("/failure", dependencies=JOBS)
def list_failures(
    request: ApiRequest,
    page: OnePage,
    chosen: JobsChosen,
    project: OneId = None,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
) -> ListResponse[FailureRow]:
    """List refused jobs of the user, and those that requested credit of the user's projects.

    `project` and `resource` select what the job requested. An `account` alone also selects jobs
    that named an account without a project. `category` and `active-at` select by the allocation
    that the job would have used.
    """
    named_alone = account if (project, gid, gname) == (None, None, None) else None
    query = RefusalQuery(**chosen._asdict(), account=named_alone)
    refusals, next_ = split_page(
        page.limit, request.services.runs.refusals(query, page.and_one), lambda row: row[0].id
    )
    rows = [failure_row(entry, refusal, _account(request, refusal)) for entry, refusal in refusals]
    return list_response("failure", request.services.clock, rows, next_)


@read_route("/failure/{failure:int}")
def show_failure(request: ApiRequest, failure: Number) -> ItemResponse[FailureRow]:
    """Return one refusal. For its owner and for staff, it also names other projects of the owner
    that could pay.
    """
    entry, refusal = request.services.runs.refusal(request.identity, failure)
    may_know = request.identity.visibility.everything or refusal.owner == request.identity.uid
    known = request.services.runs.remedies_for(refusal) if may_know else NOTHING_KNOWN
    row = failure_row(entry, refusal, _account(request, refusal), known)
    return item_response("failure", request.services.clock, row)


def _account(request: ApiRequest, refusal: Refusal) -> str | None:
    if not refusal.project:
        return refusal.account
    return request.services.project_cache.by_id(refusal.project).account


ROUTES = (list_failures, show_failure)
