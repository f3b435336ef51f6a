"""Repeated requests, found by their key, or by their run if a report comes again without a key."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import REGISTRY, Entry, Kind, facts_of
from fairbank.bank.refusals import Detail, Reason, Refusal, Resolution, refusal_of
from fairbank.bank.requests import Ending, Hold, SubmittedRequest, digest
from fairbank.bank.rules.context import Done, Outcome, RuleContext
from fairbank.bank.rules.run_refusals import mismatch, observed_only
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.transaction_data import TransactionData

_replace = msgspec.structs.replace


def again(entry: Entry) -> Outcome:
    """Return the first answer to a request, from its entry.

    A refusal changes nothing, so it is the same answer whether it is the first or not.
    """
    if entry.kind in (Kind.REFUSAL, Kind.DECLINED):
        refusal = refusal_of(entry)
        return _replace(observed_only(refusal), again=True) if refusal.observed else refusal
    facts = facts_of(entry)
    return Done(
        entry=entry.id,
        amount=entry.amount,
        allocation=entry.allocation if entry.allocation != REGISTRY else None,
        run=entry.run,
        project=facts.get("project") if entry.allocation == REGISTRY else None,
        token=facts.get("token") if entry.kind is Kind.TOKEN else None,
        remaining=entry.remaining,
        written_off=facts.get("written_off", 0),
        cpu_counted=facts.get("cpu_counted"),
        kind=entry.kind,
        again=True,
    )


def is_same_request(entry: Entry, submitted: SubmittedRequest) -> bool:
    """Return whether the entry with the same key is of the same request, as the same user."""
    return entry.acting_as == submitted.acting_as and entry.digest == digest(submitted)


def is_reported_by(entry: Entry, submitted: SubmittedRequest) -> bool:
    """Return whether an entry was made for the same report, under any key and with any comment."""
    then = _replace(submitted.request, key=entry.key, comment=entry.comment)
    return entry.digest is not None and is_same_request(
        entry, _replace(submitted, request=then, acting_as=entry.acting_as)
    )


def held_before(context: RuleContext, known: RunRecord, request: Hold) -> Outcome:
    """Answer a second hold: the same start gets its first answer, another one is a conflict.

    Args:
        context: the request being applied.
        known: row of the run that the first hold opened; closed since, or not.
        request: the second hold, under a key of its own or without one.
    """
    if known.state is not RunState.HELD:
        return already_closed(known)
    data, submitted = context.data, context.submitted
    first = data.entry(known.id)
    if is_reported_by(first, submitted) or _is_same_start(data, first, known, request):
        return again(first)
    return Refusal(
        Reason.HOLD_EXISTS,
        Detail.OPEN,
        run=str(known.reported.run),
        allocation=known.allocation,
        facts={"held": known.held},
    )


def _is_same_start(data: TransactionData, first: Entry, known: RunRecord, request: Hold) -> bool:
    """Return whether the journal and the request agree on the start of the run.

    The amount may be that of the first hold or the present one.
    """
    kept = (
        known.owner,
        known.reported.start,
        known.reported.partition,
        known.reported.project,
        data.allocations[known.allocation].terms.resource,
    )
    return request.amount in (first.amount, known.held) and kept == (
        request.owner,
        request.reported.start,
        request.reported.partition,
        request.reported.project,
        request.resource,
    )


def closed_before(
    context: RuleContext, known: RunRecord, request: Ending, state: RunState, cost: int
) -> Outcome:
    """Answer a second end of a run: the same one gets its first answer, another is a conflict.

    Args:
        context: the request being applied.
        known: row of the run, which is closed already.
        request: the second end.
        state: state that the request gives a run.
        cost: price of the run in SU-minutes by the request; 0 for an end that charges nothing.
    """
    last = context.data.entry(known.set_by)
    # First: the same report gets the same answer even if the hold has changed since.
    if is_reported_by(last, context.submitted):
        return again(last)
    if (fault := mismatch(known, request)) is not None:
        detail, facts = fault
        return Refusal(
            Reason.REPORT_MISMATCH,
            detail,
            run=str(known.reported.run),
            allocation=known.allocation,
            facts=facts,
        )
    if known.state is state and known.charged + known.written_off == cost:
        return again(last)
    return already_closed(known)


def already_closed(known: RunRecord) -> Refusal:
    """Return the refusal of a report about a closed run, with the result of the run."""
    if known.state is not RunState.CHARGED:
        detail = Detail.NOT_CHARGED
    else:
        detail = Detail.WRITTEN_OFF if known.written_off else Detail.CHARGED
    return Refusal(
        Reason.RUN_CLOSED,
        detail,
        run=str(known.reported.run),
        allocation=known.allocation,
        facts={
            "charged": known.charged,
            "written_off": known.written_off,
            "state": known.state.value,
        },
        resolution=Resolution(state=known.state, end=known.end),
    )
