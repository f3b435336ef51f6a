"""Rules of runs: hold, adjust, charge, release, lapse. A run has one hold and is closed once."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.entry import Kind
from fairbank.bank.policy import Policy, is_countable
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import Adjust, Charge, Hold, Lapse, Release, SubmittedRequest, Unpriced
from fairbank.bank.rules.balances import RESOLUTION, moved, obstacle
from fairbank.bank.rules.outcome import Done, Outcome, done
from fairbank.bank.rules.repeated import (
    again,
    already_closed,
    closed_before,
    held_before,
    is_reported_by,
)
from fairbank.bank.rules.report_checks import future_timestamp, mismatch
from fairbank.bank.rules.run_refusals import (
    no_payer,
    observed_only,
    refuse_adjust,
    refuse_for_now,
    refuse_hold,
    refuse_mismatch,
    refuse_unpriced,
    without_key,
)
from fairbank.bank.rules.without_hold import change_without_hold, close_without_hold
from fairbank.bank.run import NEXT, RunEvent, RunRecord, RunState
from fairbank.bank.run_details import Adjustment, opening_of, resolution_of, written
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import merge_details, new_details
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace

# Looked up once: before Python 3.12 the lookup of a member costs as much as creating a value.
_HELD, _HOLD = RunState.HELD, Kind.HOLD
_ADJUSTABLE, _CHARGEABLE, _RELEASABLE = (
    frozenset(state for state, event in NEXT if event is wanted)
    for wanted in (RunEvent.ADJUST, RunEvent.CHARGE, RunEvent.RELEASE)
)


def hold(
    data: TransactionData, submitted: SubmittedRequest, request: Hold, policy: Policy
) -> Outcome:
    """Hold the highest cost of a run in the first allocation of its project chain that can pay all
    of it.
    """
    if (known := data.runs.get(request.run)) is not None:
        return held_before(data, submitted, known, request)
    if (objection := future_timestamp(submitted, request)) is not None:
        observed = not policy.enforce
        early = refuse_hold(
            data,
            without_key(submitted),
            request,
            Reason.TIMESTAMP_IN_FUTURE,
            None,
            objection=objection,
            observed=observed,
        )
        return observed_only(early) if observed else early
    refusals = []
    for each in data.candidates(request.chain, request.resource, request.start):
        no = obstacle(data, each, request.owner, request.amount)
        if no is None:
            return _grant(data, submitted, request, each)
        refusals.append((no, each))
    if not refusals:
        homeless = refuse_hold(
            data,
            submitted,
            request,
            no_payer(request.chain, request.removed),
            None,
            observed=not policy.enforce,
        )
        return homeless if policy.enforce else observed_only(homeless)
    reason, told = refusals[0]
    if not policy.enforce and is_countable(told.charged + told.held + request.amount):
        refuse_hold(data, without_key(submitted), request, reason, told, observed=True)
        return _grant(data, submitted, request, data.allocations[told.id], below=True)
    return refuse_hold(data, submitted, request, reason, told)


def _grant(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Hold,
    allocation: Allocation,
    *,
    below: bool = False,
) -> Done:
    number = data.next_entry_id()
    record = RunRecord(  # most of it by position: so many names take twice as long
        number,
        request.run,
        request.chain[0],
        allocation.id,
        request.owner,
        request.partition,
        _HELD,
        request.amount,
        request.start,
        request.until,
        number,
        job_details=new_details(request.job_details, None),
    )
    data.put_run(record)
    after = moved(data, allocation, request.owner, held=request.amount, below=below)
    details = written(opening_of(record))
    entry = data.post(
        submitted,
        _HOLD,
        request.amount,
        after,
        run=number,
        owner=request.owner,
        details=details,
        number=number,
    )
    return done(entry, after)


def adjust(
    data: TransactionData, submitted: SubmittedRequest, request: Adjust, policy: Policy
) -> Outcome:
    """Increase or reduce an open hold; an increase must fit as a new hold must."""
    known = data.runs.get(request.run)
    if known is None:
        return change_without_hold(data, submitted, request, policy)
    if known.state not in _ADJUSTABLE:
        return already_closed(known)
    allocation = data.allocations[known.allocation]
    more, newest = request.amount - known.held, data.entry(known.set_by)
    if is_reported_by(newest, submitted):
        return again(newest)
    if (objection := mismatch(known, request)) is not None:
        return refuse_mismatch(data, submitted, known, objection, request.amount)
    if more == 0 and request.until == known.until:
        return again(newest)
    if (objection := future_timestamp(submitted, request)) is not None:
        return refuse_for_now(
            data, submitted, request, Reason.TIMESTAMP_IN_FUTURE, allocation, objection=objection
        )
    no = obstacle(data, allocation, known.owner, more) if more > 0 else None
    if no is not None:
        observed = not policy.enforce and is_countable(allocation.charged + allocation.held + more)
        refused = refuse_adjust(
            data,
            without_key(submitted) if observed else submitted,
            known,
            allocation,
            no,
            more,
            observed=observed,
        )
        if not observed:
            return refused
        allocation = data.allocations[allocation.id]
    number, new = data.next_entry_id(), new_details(request.job_details, known.job_details)
    told = merge_details(known.job_details, new)
    data.put_run(
        _replace(known, held=request.amount, until=request.until, set_by=number, job_details=told)
    )
    after = moved(data, allocation, known.owner, held=more, below=no is not None)
    details = written(Adjustment(request.until, new))
    entry = data.post(
        submitted,
        Kind.ADJUST,
        more,
        after,
        run=known.id,
        owner=known.owner,
        details=details,
        number=number,
    )
    return done(entry, after)


def charge(
    data: TransactionData, submitted: SubmittedRequest, request: Charge, policy: Policy
) -> Outcome:
    """Charge a run to the allocation of its hold, even after its end, and release the rest of the
    hold.
    """
    known = data.runs.get(request.run)
    if known is not None and known.state not in _CHARGEABLE:
        return closed_before(data, submitted, known, request, RunState.CHARGED, request.amount)
    return _resolve(data, submitted, known, request, request.amount, policy)


def release(
    data: TransactionData, submitted: SubmittedRequest, request: Release, policy: Policy
) -> Outcome:
    """Close a hold without a charge."""
    known = data.runs.get(request.run)
    if known is not None and known.state not in _RELEASABLE:
        return closed_before(data, submitted, known, request, RunState.RELEASED, 0)
    return _resolve(data, submitted, known, request, SuMinutes(0), policy)


def unpriced(data: TransactionData, submitted: SubmittedRequest, request: Unpriced) -> Outcome:
    """Record the end of a run that has no price now. Its key stays free, so that it may be sent
    again.
    """
    known = data.runs.get(request.run)
    if known is not None and known.state not in _CHARGEABLE:
        return closed_before(data, submitted, known, request, RunState.CHARGED, 0)
    return refuse_unpriced(
        data, without_key(submitted), request, data.allocations[known.allocation] if known else None
    )


def lapse(data: TransactionData, submitted: SubmittedRequest, request: Lapse) -> Outcome:
    """Release a hold whose deadline has passed."""
    known = data.runs.get(request.run)
    if known is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(request.run))
    if known.state is not RunState.HELD or submitted.at < known.until:
        reason = Reason.NOT_DUE if known.state is RunState.HELD else Reason.RUN_CLOSED
        return Refusal(reason=reason, run=str(request.run), allocation=known.allocation)
    number = data.next_entry_id()
    data.put_run(_replace(known, state=RunState.LAPSED, held=SuMinutes(0), set_by=number))
    after = moved(data, data.allocations[known.allocation], known.owner, held=-known.held)
    return done(
        data.post(
            submitted, Kind.LAPSE, known.held, after, run=known.id, owner=known.owner, number=number
        ),
        after,
    )


# --- the parts ---


def _resolve(
    data: TransactionData,
    submitted: SubmittedRequest,
    known: RunRecord | None,
    request: Charge | Release,
    cost: SuMinutes,
    policy: Policy,
) -> Outcome:
    """Close a run at a cost, unless the report has a time in the future."""
    if (objection := future_timestamp(submitted, request)) is not None:
        held_in = data.allocations[known.allocation] if known else None
        return refuse_for_now(
            data, submitted, request, Reason.TIMESTAMP_IN_FUTURE, held_in, objection=objection
        )
    if known is None:
        return close_without_hold(data, submitted, request, cost, policy)
    if (objection := mismatch(known, request)) is not None:
        return refuse_mismatch(data, submitted, known, objection, cost)
    allocation = data.allocations[known.allocation]
    split = policy.split(cost, allocation.available + known.held)
    if not is_countable(allocation.charged + split.charged):
        return refuse_for_now(data, submitted, request, Reason.TOO_LARGE, allocation)
    kind, state = RESOLUTION[type(request)]
    number, new = data.next_entry_id(), new_details(request.job_details, known.job_details)
    record = _replace(
        known,
        set_by=number,
        state=state,
        held=SuMinutes(0),
        charged=SuMinutes(split.charged),
        written_off=SuMinutes(split.written_off),
        ended=request.ended,
        outcome=request.outcome,
        elapsed_seconds=request.elapsed_seconds,
        job_details=merge_details(known.job_details, new),
    )
    data.put_run(record)
    after = moved(
        data,
        allocation,
        known.owner,
        charged=split.charged,
        held=-known.held,
        below=split.overrun > 0,
    )
    amount = split.charged if isinstance(request, Charge) else known.held
    counted = counted_of_more(record)
    details = written(resolution_of(request, record.written_off, counted, new))
    entry = data.post(
        submitted,
        kind,
        amount,
        after,
        run=known.id,
        owner=known.owner,
        details=details,
        number=number,
    )
    return done(entry, after, written_off=split.written_off, cpu_counted=counted)
