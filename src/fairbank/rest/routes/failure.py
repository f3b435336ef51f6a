"""Refused jobs, with what would pay them."""

from __future__ import annotations

import msgspec

from fairbank.bank.query import RefusalQuery
from fairbank.bank.refusals import Refusal, RemedyFacts
from fairbank.rest.parameters import JOBS, JobsChosen, Number, OneId, OneName, OnePage, OneUid
from fairbank.rest.request import ApiRequest
from fairbank.rest.routing import read_route
from fairbank.rest.schemas.answers import ItemResponse, ListResponse
from fairbank.rest.schemas.envelope import item_response, list_response, split_page
from fairbank.rest.schemas.job import FailureRow, failure_row


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

    A report that is wrong in itself, such as one with a time in the future, concerns who sent it:
    as in a statement, only its sender and staff see it.

    `project` and `resource` select what the job requested. An `account` alone also selects jobs
    that named an account without a project. `category` and `active-at` select by the allocation
    that the job would have used.
    """
    named_alone = account if (project, gid, gname) == (None, None, None) else None
    query = RefusalQuery(
        **msgspec.structs.asdict(chosen),
        account=named_alone,
        sender=request.identity.sender_of_faults,
    )
    refusals, next_ = split_page(
        page.limit, request.services.runs.refusals(query, page.and_one), lambda row: row[0].id
    )
    refused = [refusal for _, refusal in refusals]
    later = request.services.runs.later_states(refused)
    facts = request.services.runs.facts_about(request.identity, refused)
    rows = [
        failure_row(entry, refusal, _account(request, refusal), known, later=state)
        for (entry, refusal), known, state in zip(refusals, facts, later, strict=True)
    ]
    return list_response(FailureRow, request.context, rows, next_)


@read_route("/failure/{failure:int}")
def show_failure(request: ApiRequest, failure: Number) -> ItemResponse[FailureRow]:
    """Return one refusal. For its owner and for staff, it also names other projects of the owner
    that could pay.
    """
    entry, refusal = request.services.runs.refusal(request.identity, failure)
    facts = remedies_for(request, refusal)
    (state,) = request.services.runs.later_states([refusal])
    row = failure_row(entry, refusal, _account(request, refusal), facts, later=state)
    return item_response(request.context, row)


def remedies_for(request: ApiRequest, refusal: Refusal) -> RemedyFacts:
    """Return what may help. Only the owner of the job and staff learn of other projects."""
    runs, identity = request.services.runs, request.identity
    if identity.visibility.everything or refusal.owner == identity.uid:
        return runs.remedies_for(identity, refusal)
    return runs.facts_about(identity, [refusal])[0]


def _account(request: ApiRequest, refusal: Refusal) -> str | None:
    if not refusal.project:
        return refusal.account
    return request.services.project_cache.by_id(refusal.project).account
