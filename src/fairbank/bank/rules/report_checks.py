"""Checks of reports before they change anything: times in the future, contradictions to the hold.

Both return the detail and the facts of a refusal, or None.
"""

from __future__ import annotations

from fairbank.bank.refusals import Detail, Facts
from fairbank.bank.requests import Adjust, Charge, Ending, Hold, Release, SubmittedRequest
from fairbank.bank.run import RunRecord

# Made once: to make a union takes longer than the comparisons below.
_PRICED = (Charge, Adjust)
_ENDS = (Charge, Release)

Objection = tuple[Detail, Facts]


def mismatch(known: RunRecord, request: Ending | Adjust) -> Objection | None:
    """Return the field in which a report contradicts its hold (docs/decisions/0024).

    It may name another user or project, or be priced by another partition. Only fields that the
    report has are compared.
    """
    if request.owner is not None and request.owner != known.owner:
        return Detail.OTHER_OWNER, Facts(
            field="owner_uid", reported=request.owner, recorded=known.owner
        )
    if request.account is not None:
        return Detail.OTHER_ACCOUNT, Facts(
            field="account", reported=request.account, recorded=known.project
        )
    if request.chain and request.chain[0] != known.project:
        return Detail.OTHER_PROJECT, Facts(
            field="account", reported=request.chain[0], recorded=known.project
        )
    if (
        isinstance(request, _PRICED)
        and request.priced_in is not None
        and request.priced_in != known.partition
    ):
        return Detail.OTHER_PARTITION, Facts(
            field="partition", reported=request.priced_in, recorded=known.partition
        )
    return None


def future_timestamp(
    submitted: SubmittedRequest, request: Hold | Adjust | Charge | Release
) -> Objection | None:
    """Return the first time of a report that is further ahead of the bank's clock than allowed.

    Some clock is wrong then, so the report changes nothing.
    """
    latest = submitted.latest
    if latest is None:
        return None
    start, ended = request.start, request.ended if isinstance(request, _ENDS) else None
    # Every report comes here and hardly any is refused, so the names are only paired below.
    if (
        request.run.submitted <= latest
        and (start is None or start <= latest)
        and (ended is None or ended <= latest)
    ):
        return None
    times = (("submitted", request.run.submitted), ("start", start), ("end", ended))
    field, time = next((name, at) for name, at in times if at is not None and at > latest)
    return Detail.IN_FUTURE, Facts(
        field=field, reported_time=time, now=submitted.at, tolerance=latest - submitted.at
    )
