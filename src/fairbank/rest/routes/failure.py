"""Refused jobs, with the figures and what would have helped."""

from __future__ import annotations

from fairbank.bank.query import RefusalQuery
from fairbank.bank.refusal import NOTHING_KNOWN, Refusal
from fairbank.rest.asking import Asking
from fairbank.rest.asking.params import JOBS, JobsAsked, Number, OneId, OneName, OnePage, OneUid
from fairbank.rest.bodies.answers import FailureRow, Listing, Single
from fairbank.rest.verbs import reads
from fairbank.rest.views import cut, failure_row, listing, single


@reads("/failure", dependencies=JOBS)
def list_failures(
    request: Asking,
    page: OnePage,
    chosen: JobsAsked,
    project: OneId = None,
    gid: OneUid = None,
    gname: OneName = None,
    account: OneName = None,
) -> Listing[FailureRow]:
    """The refusals that the asker may see: the own ones, and those of jobs that asked for the credit of the own projects.

    Project and resource are what the job asked for, an account by itself also one that no project had; category and active-at are
    about the allocation that it met.
    """
    alone = account if (project, gid, gname) == (None, None, None) else None
    refused = request.services.runs.refusals(
        RefusalQuery(**chosen._asdict(), account=alone), page.and_one
    )
    found, following = cut(page.limit, refused, lambda each: each[0].id)
    rows = [failure_row(entry, no, _account(request, no)) for entry, no in found]
    return listing("failure", request.services.clock, rows, following)


@reads("/failure/{failure:int}")
def show_failure(request: Asking, failure: Number) -> Single[FailureRow]:
    """One refusal. Its owner, and staff, are also told which other projects of the owner could pay."""
    entry, no = request.services.runs.refusal(request.asker, failure)
    told = request.asker.sight.everything or no.owner == request.asker.uid
    known = request.services.runs.remedies_for(no) if told else NOTHING_KNOWN
    return single(
        "failure", request.services.clock, failure_row(entry, no, _account(request, no), known)
    )


def _account(request: Asking, no: Refusal) -> str | None:
    return request.services.directory.by_id(no.project).account if no.project else no.account


ROUTES = (list_failures, show_failure)
