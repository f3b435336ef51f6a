"""Entries of the journal, as the shapes that travel."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import EFFECTS, Entry, Kind
from fairbank.bank.refusals import Refusal
from fairbank.bank.run import RunRecord
from fairbank.core.time import iso
from fairbank.rest.bodies import answers
from fairbank.rest.views.failure import refused_job


def sums(entry: Entry) -> answers.Sums:
    """The sums of a book as they were after an entry, in SU-minutes."""
    return answers.Sums(
        deposited=entry.deposited,
        charged=entry.charged,
        held=entry.held,
        credit_limit=entry.credit_limit,
        available=entry.available,
    )


def entry_row(entry: Entry, run: RunRecord | None) -> answers.EntryRow:
    """An entry with the job that it is about; a job that was refused has no record, so the refusal itself tells which."""
    details = msgspec.json.decode(entry.details) if entry.details else None
    cluster, job_id = (run.run.cluster, run.run.job_id) if run else (None, None)
    if details and entry.kind in (Kind.REFUSAL, Kind.DECLINED):
        refusal = msgspec.convert(details, Refusal)
        cluster, job_id = refused_job(refusal)
        details["message"] = refusal.reason.info.message
    return answers.EntryRow(
        id=entry.id,
        seq=entry.seq,
        at=iso(entry.at),
        kind=entry.kind.value,
        amount=entry.amount,
        sign=EFFECTS[entry.kind].sign if entry.kind in EFFECTS else None,
        run=entry.run,
        cluster=cluster,
        job_id=job_id,
        owner_uid=entry.owner,
        actor=entry.actor,
        acting_as=entry.acting_as,
        comment=entry.comment,
        details=details,
        deposited=entry.deposited,
        charged=entry.charged,
        held=entry.held,
        credit_limit=entry.credit_limit,
        available=entry.available,
    )
