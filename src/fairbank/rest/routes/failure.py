"""Refused jobs, with the figures and what would have helped."""

from __future__ import annotations

from fairbank.bank.query import EntryQuery
from fairbank.bank.refusal import Refusal
from fairbank.rest.asking import Asking
from fairbank.rest.bodies.answers import FailureRow, Listing, Single
from fairbank.rest.params import BY_ACCOUNT, PERIOD, RECENT, Number, OneId, OnePage, OnePeriod, OneUid, Projects
from fairbank.rest.verbs import reads
from fairbank.rest.views import failure_row, listing, next_after, single


@reads("/failure", dependencies={"page": RECENT, "period": PERIOD, "projects": BY_ACCOUNT})
def list_failures(
    request: Asking, page: OnePage, period: OnePeriod, projects: Projects, allocation: OneId = None, owner_uid: OneUid = None
) -> Listing[FailureRow]:
    """The refusals that the asker may see. Those that met no allocation are seen by their owner and by staff only."""
    query = EntryQuery(
        sight=request.asker.sight, book=allocation, projects=projects, owner=owner_uid, since=period.since, until=period.until
    )
    found = request.house.runs.refusals(query, page)
    rows = [failure_row(entry, no, _account(request, no)) for entry, no in found]
    return listing("failure", request.house.clock, rows, next_after(page, [entry.id for entry, _ in found]))


@reads("/failure/{failure:int}")
def show_failure(request: Asking, failure: Number) -> Single[FailureRow]:
    """One refusal. Its owner, and staff, are also told which other projects of the owner could pay."""
    entry, no = request.house.runs.refusal(request.asker, failure)
    told = request.asker.sight.everything or no.owner == request.asker.uid
    alternatives = request.house.runs.alternatives(no) if told else ()
    return single("failure", request.house.clock, failure_row(entry, no, _account(request, no), alternatives))


def _account(request: Asking, no: Refusal) -> str | None:
    return request.house.directory.by_id(no.project).account if no.project else no.account


ROUTES = (list_failures, show_failure)
