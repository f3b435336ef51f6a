"""Rules of runs: hold, adjust, charge, release, lapse. A run has one hold and is closed once."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.entry import Kind
from fairbank.bank.policy import Split, is_countable
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import Adjust, Charge, Ending, Hold, Lapse, Release, Unpriced
from fairbank.bank.rules.context import Done, Outcome, RuleContext, done, obstacle, put_run
from fairbank.bank.rules.repeated import (
    again,
    already_closed,
    closed_before,
    held_before,
    is_reported_by,
)
from fairbank.bank.rules.run_refusals import (
    ReportFault,
    future_timestamp,
    mismatch,
    no_payer,
    observed_only,
    refuse_change,
    refuse_report,
)
from fairbank.bank.run import (
    NEXT,
    Adjustment,
    EndDetails,
    RunEnd,
    RunEvent,
    RunRecord,
    RunState,
    encode_closed_opening,
    encode_details,
)
from fairbank.cluster.job import JobDetails, merge_details, new_details
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace

# Looked up once: before Python 3.12 the lookup of a member costs as much as creating a value.
_HELD, _HOLD = RunState.HELD, Kind.HOLD
_ADJUSTABLE, _CHARGEABLE, _RELEASABLE = (
    frozenset(state for state, event in NEXT if event is wanted)
    for wanted in (RunEvent.ADJUST, RunEvent.CHARGE, RunEvent.RELEASE)
)
_RESOLUTION = {Charge: (Kind.CHARGE, RunState.CHARGED), Release: (Kind.RELEASE, RunState.RELEASED)}
"""Kind of entry and state of the run, by the request that ends it."""


def hold(context: RuleContext, request: Hold) -> Outcome:
    """Hold the highest cost of a run in the first allocation of its chain that can pay it."""
    data, enforce = context.data, context.policy.enforce
    reported = request.reported
    if (known := data.runs.get(reported.run)) is not None:
        return held_before(context, known, request)
    if (fault := future_timestamp(context.submitted, request)) is not None:
        early = refuse_report(
            context.without_key(),
            request,
            Reason.TIMESTAMP_IN_FUTURE,
            None,
            fault=fault,
            observed=not enforce,
        )
        return early if enforce else observed_only(early)
    refusals = []
    for allocation in data.candidates(request.chain, request.resource, reported.start):
        reason = obstacle(allocation, data.sums_of(allocation.id, request.owner), request.amount)
        if reason is None:
            return _grant(context, request, allocation)
        refusals.append((reason, allocation))
    if not refusals:
        why = no_payer(request)
        refusal = refuse_report(context, request, why, None, observed=not enforce)
        return refusal if enforce else observed_only(refusal)
    reason, first = refusals[0]
    if not enforce and is_countable(first.charged + first.held + request.amount):
        refuse_report(context.without_key(), request, reason, first, observed=True)
        return _grant(context, request, first, below=True)
    return refuse_report(context, request, reason, first)


def _grant(
    context: RuleContext, request: Hold, allocation: Allocation, *, below: bool = False
) -> Done:
    number, reported = context.data.next_entry_id(), request.reported
    record = RunRecord(  # by position: so many names take twice as long
        number, reported, allocation.id, request.owner, _HELD, request.amount, number
    )
    after = put_run(context.data, record, held=request.amount, below=below)
    return _record(context, _HOLD, request.amount, record, after, encode_details(reported))


def _record(
    context: RuleContext,
    kind: Kind,
    amount: int,
    record: RunRecord,
    after: Allocation,
    details: str | None = None,
    *,
    written_off: int = 0,
    cpu_counted: int | None = None,
) -> Done:
    """Add the entry that set the row of a run, and return the answer that it gives."""
    entry = context.data.post(
        context.submitted,
        kind,
        amount,
        after,
        run=record.id,
        owner=record.owner,
        details=details,
        number=record.set_by,
    )
    return done(entry, after, written_off=written_off, cpu_counted=cpu_counted)


def adjust(context: RuleContext, request: Adjust) -> Outcome:
    """Increase or reduce an open hold; an increase must fit as a new hold must."""
    data, submitted, policy = context.data, context.submitted, context.policy
    reported = request.reported
    known = data.runs.get(reported.run)
    if known is None:
        return _adjust_without_hold(context, request)
    if known.state not in _ADJUSTABLE:
        return already_closed(known)
    allocation = data.allocations[known.allocation]
    more, newest = request.amount - known.held, data.entry(known.set_by)
    if is_reported_by(newest, submitted):
        return again(newest)
    if (fault := mismatch(known, request)) is not None:
        return _refuse_mismatch(context, known, fault, request.amount)
    if more == 0 and reported.until == known.reported.until:
        return again(newest)
    if (fault := future_timestamp(submitted, request)) is not None:
        return _refuse_future(context, request, allocation, fault)
    sums = data.sums_of(allocation.id, known.owner)
    reason = obstacle(allocation, sums, more) if more > 0 else None
    if reason is not None:
        if policy.enforce or not is_countable(allocation.charged + allocation.held + more):
            return refuse_change(context, known, reason, more)
        refuse_change(context.without_key(), known, reason, more, observed=True)
    number, details = data.next_entry_id(), known.reported.job_details
    new = new_details(reported.job_details, details)
    record = _replace(
        known,
        reported=_replace(
            known.reported, until=reported.until, job_details=merge_details(details, new)
        ),
        held=request.amount,
        set_by=number,
    )
    after = put_run(data, record, held=more, below=reason is not None)
    return _record(
        context, Kind.ADJUST, more, record, after, encode_details(Adjustment(reported.until, new))
    )


def _adjust_without_hold(context: RuleContext, request: Adjust) -> Outcome:
    """Refuse to change the hold of a run that has none. The key stays free."""
    observed = not context.policy.enforce
    fault = (Detail.LIMIT_CHANGED, Facts()) if request.account is None else None
    refusal = refuse_report(
        context.without_key(), request, Reason.NO_HOLD, None, fault=fault, observed=observed
    )
    return observed_only(refusal) if observed else refusal


def charge(context: RuleContext, request: Charge) -> Outcome:
    """Charge a run to the allocation of its hold, even after its end; release the rest.

    What the credit does not cover is divided by `Policy.split`. Caps and freezes are for starts:
    they do not stop a charge.
    """
    known = context.data.runs.get(request.reported.run)
    if known is not None and known.state not in _CHARGEABLE:
        return closed_before(context, known, request, RunState.CHARGED, request.amount)
    return _resolve(context, known, request, request.amount)


def release(context: RuleContext, request: Release) -> Outcome:
    """Close a hold without a charge."""
    known = context.data.runs.get(request.reported.run)
    if known is not None and known.state not in _RELEASABLE:
        return closed_before(context, known, request, RunState.RELEASED, 0)
    return _resolve(context, known, request, SuMinutes(0))


def record_unpriced(context: RuleContext, request: Unpriced) -> Outcome:
    """Record the end of a run without a price, unless its cluster is missing. Its key stays free,
    to be sent again.
    """
    known = context.data.runs.get(request.reported.run)
    if known is not None and known.state not in _CHARGEABLE:
        return closed_before(context, known, request, RunState.CHARGED, 0)
    if not request.cluster_known:
        return _refuse_unknown_cluster(request, 0)
    held_in = context.data.allocations[known.allocation] if known else None
    fault = Detail.NOT_PRICED, Facts(cause=request.why)
    return refuse_report(context.without_key(), request, Reason.UNPRICED, held_in, fault=fault)


def lapse(context: RuleContext, request: Lapse) -> Outcome:
    """Release a hold whose deadline has passed."""
    known = context.data.runs.get(request.run)
    if known is None:
        return Refusal(Reason.NO_HOLD, run=str(request.run))
    if known.state is not RunState.HELD or context.at < known.reported.until:
        reason = Reason.NOT_DUE if known.state is RunState.HELD else Reason.RUN_CLOSED
        return Refusal(reason, run=str(request.run), allocation=known.allocation)
    number = context.data.next_entry_id()
    record = _replace(known, state=RunState.LAPSED, held=SuMinutes(0), set_by=number)
    after = put_run(context.data, record, held=-known.held)
    return _record(context, Kind.LAPSE, known.held, record, after)


# --- the end of a run ---


def _refuse_mismatch(
    context: RuleContext, known: RunRecord, fault: ReportFault, cost: int
) -> Refusal:
    """Refuse a report that contradicts its hold. The hold stays, and the key stays free."""
    keyless = context.without_key()
    return refuse_change(keyless, known, Reason.REPORT_MISMATCH, cost, fault=fault)


def _refuse_future(
    context: RuleContext,
    request: Adjust | Charge | Release,
    allocation: Allocation | None,
    fault: ReportFault,
) -> Refusal:
    """Refuse a report that may count later. The hold stays, and the key stays free."""
    return refuse_report(
        context.without_key(), request, Reason.TIMESTAMP_IN_FUTURE, allocation, fault=fault
    )


def _refuse_unknown_cluster(request: Ending, cost: int) -> Refusal:
    """Refuse an end whose cluster is missing from the settings. The hold stays.

    There is no entry, as for the hold: the agent sets the end aside and sends it again until the
    settings have the cluster, and each attempt would be another entry.
    """
    run = request.reported.run
    facts = Facts(field="cluster", cause=f"there is no cluster {run.cluster!r}")
    return Refusal(Reason.UNPRICED, Detail.NOT_PRICED, facts=facts, run=str(run), requested=cost)


def _resolve(
    context: RuleContext, known: RunRecord | None, request: Charge | Release, cost: SuMinutes
) -> Outcome:
    """Close a run at a cost, unless the report has a time in the future."""
    data = context.data
    if (fault := future_timestamp(context.submitted, request)) is not None:
        held_in = data.allocations[known.allocation] if known else None
        return _refuse_future(context, request, held_in, fault)
    if known is None:
        return _resolve_without_hold(context, request, cost)
    if (fault := mismatch(known, request)) is not None:
        return _refuse_mismatch(context, known, fault, cost)
    allocation = data.allocations[known.allocation]
    split = context.policy.split(cost, allocation.remaining + known.held)
    if not is_countable(allocation.charged + split.charged):
        return refuse_report(context.without_key(), request, Reason.TOO_LARGE, allocation)
    details = known.reported.job_details
    new = new_details(request.reported.job_details, details)
    record = _closed(
        known,
        request,
        split,
        reported=_replace(known.reported, job_details=merge_details(details, new)),
        set_by=data.next_entry_id(),
        held=SuMinutes(0),
    )
    below = split.overrun > 0
    after = put_run(data, record, charged=split.charged, held=-known.held, below=below)
    counted = counted_of_more(record)
    end = _end_details(request.end, record.written_off, counted, new)
    return _record(
        context,
        _RESOLUTION[type(request)][0],
        split.charged if isinstance(request, Charge) else known.held,
        record,
        after,
        encode_details(end),
        written_off=split.written_off,
        cpu_counted=counted,
    )


def _closed(
    record: RunRecord, request: Charge | Release, split: Split, **changes: object
) -> RunRecord:
    """Return the row of a run with its end, and other changes."""
    return _replace(
        record,
        state=_RESOLUTION[type(request)][1],
        charged=SuMinutes(split.charged),
        written_off=SuMinutes(split.written_off),
        end=request.end,
        **changes,
    )


def _end_details(
    end: RunEnd, written_off: SuMinutes, cpu_counted: int | None, new: JobDetails | None = None
) -> EndDetails:
    return EndDetails(end.outcome, end.elapsed_seconds, end.ended, written_off, cpu_counted, new)


def _resolve_without_hold(
    context: RuleContext, request: Charge | Release, cost: SuMinutes
) -> Outcome:
    """Charge a run whose hold never arrived to the allocation of the hold, by policy."""
    data, reported = context.data, request.reported
    if not (request.chain or request.account):  # only replays, whose refused jobs end too
        return Refusal(Reason.NO_HOLD, run=str(reported.run), requested=cost)
    # Usage happened, and must count if the report is sent again after the hold or a repair. So its
    # key stays free.
    keyless = context.without_key()
    if request.resource is None and not request.cluster_known:
        return _refuse_unknown_cluster(request, cost)
    if request.resource is None:
        return refuse_report(keyless, request, Reason.NO_HOLD, None)
    candidates = data.candidates(request.chain, request.resource, reported.start)
    if not candidates:
        return refuse_report(keyless, request, no_payer(request), None)
    if not context.policy.late_charges:
        return refuse_report(keyless, request, Reason.NO_HOLD, candidates[0])
    allocation = _payer(context, candidates, request.owner, cost)
    split = context.policy.split(cost, allocation.remaining)
    if not is_countable(allocation.charged + split.charged):
        return refuse_report(keyless, request, Reason.TOO_LARGE, allocation)
    number = data.next_entry_id()
    opening = RunRecord(number, reported, allocation.id, request.owner, _HELD, SuMinutes(0), number)
    record = _closed(opening, request, split)
    after = put_run(data, record, charged=split.charged, below=split.overrun > 0)
    counted = counted_of_more(record)
    end = _end_details(request.end, record.written_off, counted)
    return _record(
        context,
        _RESOLUTION[type(request)][0],
        split.charged,
        record,
        after,
        encode_closed_opening(reported, end),
        written_off=split.written_off,
        cpu_counted=counted,
    )


def _payer(context: RuleContext, candidates: list[Allocation], owner: int, cost: int) -> Allocation:
    """Return the allocation that pays for usage without a hold (docs/decisions/0009).

    It is the first of the chain that could have held the cost. Otherwise: the first with enough
    credit, a capped one before a frozen one; otherwise the first that is not frozen; otherwise the
    first.
    """

    def drawback(allocation: Allocation) -> tuple[bool, bool, bool]:
        reason = obstacle(allocation, context.data.sums_of(allocation.id, owner), cost)
        short = cost > allocation.remaining
        return short, reason is Reason.FROZEN, reason is Reason.CAPPED and not short

    return min(candidates, key=drawback)
