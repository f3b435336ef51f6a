"""Refusals of requests about runs, kept in the journal so that the job's owner can find them."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Kind
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import Adjust, Charge, Hold, Release, SubmittedRequest, Unpriced
from fairbank.bank.rules.outcome import Done
from fairbank.bank.rules.report_checks import Objection
from fairbank.bank.run import RunRecord
from fairbank.bank.transaction_data import TransactionData

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode


def refuse_hold(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Hold,
    reason: Reason,
    allocation: Allocation | None,
    *,
    objection: Objection | None = None,
    observed: bool = False,
) -> Refusal:
    """Refuse a hold and keep the refusal: in the registry if the project has no allocation for it.

    Args:
        data: rows of the batch.
        submitted: the request with its user and time.
        request: the hold.
        reason: reason of the refusal.
        allocation: the allocation that cannot pay, if there is one.
        objection: detail and facts of a report that is wrong in itself.
        observed: the bank only observes, so the job runs all the same.
    """
    refusal = _replace(
        _of_run(request, reason, allocation, amount=request.amount, objection=objection),
        available=_available(data, allocation, request.owner, reason) if allocation else 0,
        project=request.chain[0] if request.chain else request.removed,
        billing=request.billing,
        limit_seconds=request.limit_seconds,
        observed=observed,
    )
    return _keep(data, submitted, refusal, allocation)


def refuse_adjust(
    data: TransactionData,
    submitted: SubmittedRequest,
    known: RunRecord,
    allocation: Allocation,
    reason: Reason,
    more: int,
    *,
    observed: bool,
) -> Refusal:
    """Refuse to increase a hold by `more` SU-minutes, and keep the refusal with the run's
    project.
    """
    refusal = _replace(
        _of_record(known, allocation, reason, more),
        available=_available(data, allocation, known.owner, reason),
        observed=observed,
    )
    return _keep(data, submitted, refusal, allocation)


def refuse_limit_change(
    data: TransactionData, submitted: SubmittedRequest, request: Adjust, *, observed: bool
) -> Refusal:
    """Refuse to change the hold of a run that has none. The refusal keeps the cost of the limit."""
    objection = (Detail.LIMIT_CHANGED, Facts()) if request.account is None else None
    refusal = _of_run(request, Reason.NO_HOLD, None, amount=request.amount, objection=objection)
    return _keep(data, submitted, _replace(refusal, observed=observed), None)


def refuse_without_hold(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Charge | Release,
    reason: Reason,
    allocation: Allocation | None,
    cost: int,
) -> Refusal:
    """Refuse to close a run that never had a hold, and keep the refusal: it shows the usage."""
    return _keep(data, submitted, _of_run(request, reason, allocation, amount=cost), allocation)


def refuse_unpriced(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Unpriced,
    allocation: Allocation | None,
) -> Refusal:
    """Refuse to close a run that has no price, and keep the refusal where the hold is."""
    objection = Detail.NOT_PRICED, Facts(cause=request.why)
    refusal = _of_run(request, Reason.UNPRICED, allocation, objection=objection)
    return _keep(data, submitted, refusal, allocation)


def refuse_for_now(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Adjust | Charge | Release,
    reason: Reason,
    allocation: Allocation | None,
    *,
    objection: Objection | None = None,
) -> Refusal:
    """Refuse a report that may count later. The hold stays, and the key stays free."""
    cost = 0 if isinstance(request, Release) else request.amount
    refusal = _of_run(request, reason, allocation, amount=cost, objection=objection)
    return _keep(data, without_key(submitted), refusal, allocation)


def refuse_mismatch(
    data: TransactionData,
    submitted: SubmittedRequest,
    known: RunRecord,
    objection: Objection,
    cost: int,
) -> Refusal:
    """Refuse a report that contradicts its hold. The hold stays, and the key stays free."""
    allocation = data.allocations[known.allocation]
    detail, facts = objection
    refusal = _replace(
        _of_record(known, allocation, Reason.REPORT_MISMATCH, cost), detail=detail, facts=facts
    )
    return _keep(data, without_key(submitted), refusal, allocation)


def no_payer(chain: tuple[int, ...], removed: int | None = None) -> Reason:
    """Return why no allocation was found.

    Args:
        chain: the project of the run's account, then its parents; empty without a project.
        removed: number of the removed project that has the account.
    """
    if removed is not None:
        return Reason.PROJECT_REMOVED
    return Reason.NO_ALLOCATION if chain else Reason.UNKNOWN_PROJECT


def observed_only(refusal: Refusal) -> Done:
    """Return the answer of a bank that only observes, with the entry that keeps the refusal."""
    return Done(entry=refusal.entry or 0)


def without_key(submitted: SubmittedRequest) -> SubmittedRequest:
    """Return the request without its key, which stays free for the answer that counts."""
    if submitted.request.key is None:
        return submitted
    return _replace(submitted, request=_replace(submitted.request, key=None))


def _of_run(
    request: Hold | Adjust | Charge | Release | Unpriced,
    reason: Reason,
    allocation: Allocation | None,
    *,
    amount: int = 0,
    objection: Objection | None = None,
) -> Refusal:
    """Return a refusal with the run, the user and the project that the request names."""
    if objection is None and request.account is not None:
        objection = Detail.UNKNOWN_ACCOUNT, Facts()
    detail, facts = objection or (Detail.NONE, None)
    return Refusal(
        reason=reason,
        detail=detail,
        facts=facts or None,
        asked=amount,
        available=allocation.available if allocation else 0,
        allocation=allocation.id if allocation else None,
        project=request.chain[0] if request.chain else None,
        account=request.account,
        resource=request.resource,
        owner=request.owner,
        run=str(request.run),
        start=(
            request.start
            if reason is Reason.NO_ALLOCATION and isinstance(request, Hold | Charge | Release)
            else None
        ),
    )


def _of_record(known: RunRecord, allocation: Allocation, reason: Reason, amount: int) -> Refusal:
    """Return a refusal with the run, the user and the project of the hold."""
    return Refusal(
        reason=reason,
        asked=amount,
        available=allocation.available,
        allocation=allocation.id,
        project=known.project,
        resource=allocation.resource,
        owner=known.owner,
        run=str(known.run),
    )


def _available(data: TransactionData, allocation: Allocation, owner: int, reason: Reason) -> int:
    """Return the rest of what is exhausted: of the user's cap, or of the allocation."""
    if reason is Reason.CAPPED:
        return max(0, data.sums_of(allocation.id, owner).within(allocation.available))
    return allocation.available


def _keep(
    data: TransactionData,
    submitted: SubmittedRequest,
    refusal: Refusal,
    allocation: Allocation | None,
) -> Refusal:
    entry = data.post(
        submitted,
        Kind.REFUSAL,
        refusal.asked,
        allocation,
        owner=refusal.owner,
        details=_encode(refusal).decode(),
    )
    return _replace(refusal, entry=entry.id)
