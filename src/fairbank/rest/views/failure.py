"""Refusals, as the shapes that travel."""

from __future__ import annotations

from fairbank.bank.entry import Entry
from fairbank.bank.refusals import NOTHING_KNOWN, Help, Refusal, remedies, sentence
from fairbank.cluster.job import Run
from fairbank.core.time import iso
from fairbank.rest.bodies import answers


def failure_row(
    entry: Entry, no: Refusal, account: str | None, known: Help = NOTHING_KNOWN
) -> answers.FailureRow:
    """A refusal with its sentence, its figures and its remedies; `known` is what the books have that may help."""
    cluster, job_id = refused_job(no)
    return answers.FailureRow(
        id=entry.id,
        at=iso(entry.at),
        allocation=no.allocation,
        project=no.project or None,
        account=account,
        resource=no.resource,
        owner_uid=no.owner,
        cluster=cluster,
        job_id=job_id,
        run=no.run,
        reason=no.reason.name,
        detail=sentence(no, known),
        comments=entry.comment if entry.comment is not None else no.reason.info.message,
        **no.figures._asdict(),
        remedies=list(remedies(no, known)),
    )


def refused_job(no: Refusal) -> tuple[str | None, int | None]:
    """Cluster and job id of the run that was refused; both None when no run was."""
    return (None, None) if no.run is None else Run.parse(no.run)[:2]
