"""Jobs that the bank refused."""

from __future__ import annotations

from msgspec import Struct

from fairbank.bank.entry import Entry
from fairbank.bank.refusals import NOTHING_KNOWN, Refusal, RemedyFacts, remedies, sentence
from fairbank.cluster.job import Run
from fairbank.core.time import iso


class FailureRow(Struct, frozen=True, kw_only=True):
    """A refused job, with the amounts and remedies.

    HADM's schema 6: activity_id is `id`, allocation_id `allocation`, amount `asked`. `comments` are
    the job's, otherwise the reason in words. `available` and `shortfall` are null unless the reason
    is missing credit (INSUFFICIENT_CREDIT, CAPPED, NO_ALLOCATION, FROZEN): the bank did not look
    them up. Then `asked` is null too, unless the job had an amount: the cost of a run without a
    hold is kept.
    """

    id: int
    at: str
    allocation: int | None
    project: int | None
    account: str | None
    resource: str | None
    owner_uid: int | None
    cluster: str | None
    job_id: int | None
    run: str | None
    reason: str
    detail: str
    comments: str
    asked: int | None
    available: int | None
    shortfall: int | None
    remedies: list[str]


def failure_row(
    entry: Entry, refusal: Refusal, account: str | None, known: RemedyFacts = NOTHING_KNOWN
) -> FailureRow:
    """Return a refusal with its message, amounts and remedies.

    Args:
        entry: the journal entry of the refusal.
        account: the account that the job named.
        known: facts that make the remedies more precise.
    """
    cluster, job_id = refused_job(refusal)
    return FailureRow(
        id=entry.id,
        at=iso(entry.at),
        allocation=refusal.allocation,
        project=refusal.project or None,
        account=account,
        resource=refusal.resource,
        owner_uid=refusal.owner,
        cluster=cluster,
        job_id=job_id,
        run=refusal.run,
        reason=refusal.reason.name,
        detail=sentence(refusal, known),
        comments=entry.comment if entry.comment is not None else refusal.reason.info.message,
        **refusal.figures._asdict(),
        remedies=list(remedies(refusal, known)),
    )


def refused_job(refusal: Refusal) -> tuple[str | None, int | None]:
    """Return cluster and job id of the refused run; (None, None) if the request had no run."""
    return (None, None) if refusal.run is None else Run.parse(refusal.run)[:2]
