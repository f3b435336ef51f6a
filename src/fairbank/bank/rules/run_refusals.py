"""Checks of reports about runs, and their refusals.

The journal keeps the refusals, so that the job's owner can find them.
"""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Kind
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import Adjust, Charge, Ending, Hold, Release, SubmittedRequest, Unpriced
from fairbank.bank.rules.context import Done, RuleContext
from fairbank.bank.run import RunRecord, UserSums
from fairbank.bank.transaction_data import TransactionData

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode

# Made once: to make a union takes longer than the comparisons below.
_PRICED = (Charge, Adjust)
_ENDS = (Charge, Release)

ReportFault = tuple[Detail, Facts]


def mismatch(known: RunRecord, request: Ending | Adjust) -> ReportFault | None:
    """Return the field in which a report contradicts its hold (docs/decisions/0024).

    It may name another user or project, or be priced by another partition.
    """
    reported, recorded = request.reported, known.reported
    if request.owner != known.owner:
        return Detail.OTHER_OWNER, Facts(
            field="owner_uid", reported=request.owner, recorded=known.owner
        )
    if request.account is not None:
        return Detail.OTHER_ACCOUNT, Facts(
            field="account", reported=request.account, recorded=recorded.project
        )
    if reported.project != recorded.project:
        return Detail.OTHER_PROJECT, Facts(
            field="account", reported=reported.project, recorded=recorded.project
        )
    if (
        isinstance(request, _PRICED)
        and request.priced_in is not None
        and request.priced_in != recorded.partition
    ):
        return Detail.OTHER_PARTITION, Facts(
            field="partition", reported=request.priced_in, recorded=recorded.partition
        )
    return None


def future_timestamp(
    submitted: SubmittedRequest, request: Hold | Adjust | Charge | Release
) -> ReportFault | None:
    """Return the first time of a report that is further ahead of the bank's clock than allowed.

    Some clock is wrong then, so the report changes nothing.
    """
    latest = submitted.latest
    if latest is None:
        return None
    submission, start = request.reported.run.submitted, request.reported.start
    # A report without an end has no later time than its start.
    last = request.end.ended if isinstance(request, _ENDS) else start
    # Every report comes here and hardly any is refused, so the names are only paired below.
    if submission <= latest and start <= latest and last <= latest:
        return None
    times = (("submitted", submission), ("start", start), ("end", last))
    field, time = next((name, at) for name, at in times if at > latest)
    return Detail.IN_FUTURE, Facts(
        field=field, reported_time=time, now=submitted.at, tolerance=latest - submitted.at
    )


# --- refusals ---


def refuse_report(
    context: RuleContext,
    request: Hold | Adjust | Charge | Release | Unpriced,
    reason: Reason,
    allocation: Allocation | None,
    *,
    fault: ReportFault | None = None,
    observed: bool = False,
) -> Refusal:
    """Refuse a report with the run, user and project that it names, and keep the refusal.

    Args:
        context: the request with its rows.
        request: the report.
        allocation: the allocation that cannot pay or has the hold, if there is one; the registry
            keeps the refusal otherwise.
        fault: detail and facts of a report that is wrong in itself.
        observed: the bank only observes, so the job runs all the same.
    """
    if fault is None and request.account is not None:
        fault = Detail.UNKNOWN_ACCOUNT, Facts()
    detail, facts = fault or (Detail.NONE, None)
    if allocation is not None and not facts:
        facts = credit_facts(allocation, context.data.sums_of(allocation.id, request.owner), reason)
    # Without an allocation the message compares the start with the nearest one.
    shows_start = reason is Reason.NO_ALLOCATION and not isinstance(request, Adjust | Unpriced)
    refusal = Refusal(
        reason,
        detail,
        facts=facts or None,
        requested=0 if isinstance(request, Release | Unpriced) else request.amount,
        available=_available(context.data, allocation, request.owner),
        allocation=allocation.id if allocation else None,
        project=request.reported.project or None,
        account=request.account,
        resource=request.resource,
        owner=request.owner,
        run=str(request.reported.run),
        start=request.reported.start if shows_start else None,
        observed=observed,
    )
    if isinstance(request, Hold):
        details = request.reported.job_details
        refusal = _replace(
            refusal,
            billing=request.billing,
            limit_seconds=details.limit_seconds if details else None,
        )
    return _keep(context, refusal, allocation)


def refuse_change(
    context: RuleContext,
    known: RunRecord,
    reason: Reason,
    amount: int,
    *,
    fault: ReportFault | None = None,
    observed: bool = False,
) -> Refusal:
    """Refuse to change a run with the user and project of its hold, and keep the refusal.

    Args:
        context: the request with its rows.
        known: row of the run.
        amount: what the change costs, in SU-minutes.
        fault: detail and facts of a report that contradicts the hold.
        observed: the bank only observes, so the change is made all the same.
    """
    allocation = context.data.allocations[known.allocation]
    sums = context.data.sums_of(allocation.id, known.owner)
    detail, facts = fault or (Detail.LIMIT_CHANGED, credit_facts(allocation, sums, reason))
    refusal = Refusal(
        reason,
        detail,
        facts=facts,
        requested=amount,
        available=allocation.available_credit(sums),
        allocation=allocation.id,
        project=known.reported.project,
        resource=allocation.terms.resource,
        owner=known.owner,
        run=str(known.reported.run),
        observed=observed,
    )
    return _keep(context, refusal, allocation)


def no_payer(request: Hold | Charge | Release) -> Reason:
    """Return why no allocation was found."""
    if request.chain:
        return Reason.NO_ALLOCATION
    return Reason.PROJECT_REMOVED if request.reported.project else Reason.UNKNOWN_PROJECT


def observed_only(refusal: Refusal) -> Done:
    """Return the answer of a bank that only observes, with the entry that keeps the refusal."""
    return Done(entry=refusal.entry or 0)


def _available(data: TransactionData, allocation: Allocation | None, owner: int) -> int:
    if allocation is None:
        return 0
    return allocation.available_credit(data.sums_of(allocation.id, owner))


def credit_facts(allocation: Allocation, sums: UserSums, reason: Reason) -> Facts | None:
    """Return how the credit that is exhausted is used; None for a reason that is not about credit.

    Args:
        allocation: allocation that cannot pay; its sums explain INSUFFICIENT_CREDIT.
        sums: charges, holds and cap of the user in it; they explain CAPPED.
    """
    if reason is Reason.CAPPED and sums.cap is not None:
        return Facts(granted=sums.cap, charged=sums.charged, held=sums.held)
    if reason is Reason.INSUFFICIENT_CREDIT:
        return Facts(
            granted=allocation.deposited + allocation.terms.credit_limit,
            charged=allocation.charged,
            held=allocation.held,
        )
    return None


def _keep(context: RuleContext, refusal: Refusal, allocation: Allocation | None) -> Refusal:
    entry = context.data.post(
        context.submitted,
        Kind.REFUSAL,
        refusal.requested,
        allocation,
        owner=refusal.owner,
        details=_encode(refusal).decode(),
    )
    return _replace(refusal, entry=entry.id)
