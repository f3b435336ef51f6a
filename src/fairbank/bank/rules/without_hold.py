"""Reports about runs without a hold: it never arrived, or the bank only observes."""

from __future__ import annotations

from fairbank.bank.allocation import Allocation
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.policy import Policy, Split, is_countable
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Adjust, Charge, Release, SubmittedRequest
from fairbank.bank.rules.balances import RESOLUTION, moved, obstacle
from fairbank.bank.rules.outcome import Outcome, done
from fairbank.bank.rules.run_refusals import (
    no_payer,
    observed_only,
    refuse_limit_change,
    refuse_without_hold,
    without_key,
)
from fairbank.bank.run import RunRecord
from fairbank.bank.run_details import opening_of, resolution_of, written_at_once
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import new_details
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


def change_without_hold(
    data: TransactionData, submitted: SubmittedRequest, request: Adjust, policy: Policy
) -> Outcome:
    """Refuse to change the hold of a run that has none. The refusal is kept, and the key stays
    free.
    """
    if request.owner is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(request.run), asked=request.amount)
    no = refuse_limit_change(data, without_key(submitted), request, observed=not policy.enforce)
    return no if policy.enforce else observed_only(no)


def close_without_hold(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Charge | Release,
    cost: SuMinutes,
    policy: Policy,
) -> Outcome:
    """Close a run whose hold never arrived: charge the allocation of the hold, if policy says
    so.
    """
    if request.owner is None or request.start is None or not (request.chain or request.account):
        return Refusal(reason=Reason.NO_HOLD, run=str(request.run), asked=cost)
    # Usage happened, and must count if the report is sent again after the hold or a repair. So its
    # key stays free.
    keyless = without_key(submitted)
    if request.resource is None:
        return refuse_without_hold(data, keyless, request, Reason.NO_HOLD, None, cost)
    candidates = data.candidates(request.chain, request.resource, request.start)
    if not candidates:
        return refuse_without_hold(data, keyless, request, no_payer(request.chain), None, cost)
    if not policy.late_charges:
        return refuse_without_hold(data, keyless, request, Reason.NO_HOLD, candidates[0], cost)
    allocation = _payer(data, candidates, request.owner, cost)
    split = policy.split(cost, allocation.available)
    if not is_countable(allocation.charged + split.charged):
        return refuse_without_hold(data, keyless, request, Reason.TOO_LARGE, allocation, cost)
    return _settled(data, submitted, request, allocation, split, request.owner, request.start)


def _settled(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Charge | Release,
    allocation: Allocation,
    split: Split,
    owner: int,
    start: Instant,
) -> Outcome:
    """Add the row and the entry of a run that is opened and closed at once."""
    number = data.next_entry_id()
    kind, state = RESOLUTION[type(request)]
    record = RunRecord(
        id=number,
        run=request.run,
        project=request.chain[0],
        allocation=allocation.id,
        owner=owner,
        partition=request.partition,
        state=state,
        held=SuMinutes(0),
        start=start,
        until=request.ended,
        set_by=number,
        charged=SuMinutes(split.charged),
        written_off=SuMinutes(split.written_off),
        ended=request.ended,
        outcome=request.outcome,
        elapsed_seconds=request.elapsed_seconds,
        job_details=new_details(request.job_details, None),
    )
    data.put_run(record)
    after = moved(data, allocation, owner, charged=split.charged, below=split.overrun > 0)
    counted = counted_of_more(record)
    details = written_at_once(
        opening_of(record), resolution_of(request, record.written_off, counted, None)
    )
    entry = data.post(
        submitted,
        kind,
        split.charged,
        after,
        run=number,
        owner=owner,
        details=details,
        number=number,
    )
    return done(entry, after, written_off=split.written_off, cpu_counted=counted)


def _payer(
    data: TransactionData, candidates: list[Allocation], owner: int, cost: int
) -> Allocation:
    """Return the allocation that pays for usage without a hold (docs/decisions/0009).

    It is the first of the chain that could have held the cost. Otherwise: the first with enough
    credit, a capped one before a frozen one; otherwise the first that is not frozen; otherwise the
    first.
    """

    def drawback(each: Allocation) -> tuple[bool, bool, bool]:
        no = obstacle(data, each, owner, cost)
        return cost > each.available, no is Reason.FROZEN, no is Reason.CAPPED

    return min(candidates, key=drawback)
