"""Choice of the event: the conditions that decide which row of `agent.run_states` applies; and the
verdict and the facts of a run that follow from an event.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.agent.outage_policy import NEVER_STARTED_TEXT, PartitionTerms, defer, refuse
from fairbank.agent.protocol import LimitEvent, PluginMessage, PrologRequest, Verdict
from fairbank.agent.reports.report import PendingReport, Receipt, ReportResult, ResultKind
from fairbank.agent.run_memory import KnownRun
from fairbank.agent.run_states import PROLOGS, STARTED_STATES, AgentEvent, AgentRunState
from fairbank.cluster.run_report import RunPiece
from fairbank.core.units import exact_decimal

S = AgentRunState
E = AgentEvent


class Occurrence(msgspec.Struct):
    """Occurrence of an event: what its effects need to know.

    `message` and `receipt` are set for messages, `report` and `result` for results of the bank.
    `label` names the verdict in the counts. `pieces` are those of a resized run before its last
    change.
    """

    run: str
    now: float
    message: PluginMessage | None = None
    receipt: Receipt | None = None
    report: PendingReport | None = None
    result: ReportResult | None = None
    refusal: Verdict | None = None
    label: str = ""
    pieces: tuple[RunPiece, ...] = ()

    @property
    def text(self) -> str:
        return self.result.text if self.result is not None else ""


def prolog_event(request: PrologRequest, terms: PartitionTerms, *, bank_up: bool) -> E:
    """Return the event of a prolog request.

    Args:
        bank_up: whether the bank answered the last report.
    """
    if request.limit_seconds is not None:
        return E.PROLOG if bank_up else E.PROLOG_IN_OUTAGE
    run = terms.unbillable == "run"
    return E.PROLOG_UNLIMITED_RUN if run else E.PROLOG_UNLIMITED_REFUSE


def limit_event(known: KnownRun | None, message: LimitEvent) -> E:
    limit, suspended = message.limit_seconds, message.suspended_seconds
    same = (
        known is not None
        and (known.limit, known.suspended) == (limit, suspended)
        and known.pieces == known.pieces_of(message)
    )
    # A refused run has no hold for its limit, whatever the limit was.
    if known is not None and same and known.state in STARTED_STATES | {S.WAITING, S.ENDED}:
        return E.LIMIT_SAME
    return E.LIMIT_NONE if limit is None else E.LIMIT_CHANGED


_HOLD_EVENTS: Mapping[ResultKind, E] = {
    ResultKind.GRANTED: E.HOLD_GRANTED,
    ResultKind.HOLD_EXISTS: E.HOLD_GRANTED,
    ResultKind.LAPSED: E.HOLD_LAPSED,
    ResultKind.CLOSED: E.RUN_CLOSED,
    ResultKind.NEVER_STARTED: E.RUN_NEVER_STARTED,
}


def hold_event(result: ReportResult, report: PendingReport, terms: PartitionTerms) -> E:
    """Return the event of the bank's answer to a hold.

    Args:
        result: the bank's answer.
        report: the report that it answers. If it was converted before, an existing hold counts as
            granted.
        terms: terms of its partition; `unbillable` decides on a hold that the bank cannot price.
    """
    if result.kind in (ResultKind.UNBILLABLE, ResultKind.TOO_EARLY):
        run = terms.unbillable == "run"
        return E.HOLD_UNPRICED_RUN if run else E.HOLD_UNPRICED_REFUSE
    if result.kind is ResultKind.HOLD_EXISTS and not report.converted:
        # Not if it was converted once already: converting it again would go on for ever.
        return E.HOLD_EXISTS
    return _HOLD_EVENTS.get(result.kind, E.HOLD_REFUSED)


def set_verdict(
    event: E, cause: Occurrence, terms: PartitionTerms, account: str, *, batch: bool
) -> None:
    """Set the label and the refusal of the verdict that the bank's answer to a hold gives.

    Args:
        cause: its occurrence, which is changed.
        batch: True for a batch job, which can be deferred.
    """
    result = cause.result
    if result is None or event is E.HOLD_UNPRICED_RUN:
        cause.label = "unbillable: run"
    elif event is E.RUN_NEVER_STARTED:
        cause.label = result.kind.value
        cause.refusal = defer(NEVER_STARTED_TEXT, batch=batch)
    elif event in (E.HOLD_REFUSED, E.HOLD_UNPRICED_REFUSE):
        cause.label = result.kind.value
        cause.refusal = refuse(terms.refusal, result, account)
    else:
        cause.label = "granted"


_ADJUSTED = (ResultKind.GRANTED, ResultKind.HOLD_EXISTS, ResultKind.LAPSED, ResultKind.CLOSED)


def adjust_event(result: ReportResult, report: PendingReport) -> E | None:
    """Return the event of the bank's answer to a new limit; None if nothing is to be done."""
    if result.kind in _ADJUSTED:
        return None
    is_missing = result.kind is ResultKind.NO_HOLD and not report.converted
    return E.ADJUST_NO_HOLD if is_missing else E.ADJUST_REFUSED


def end_event(result: ReportResult) -> E | None:
    """Return the event of the bank's answer to an end; None if nothing is to be done."""
    if result.kind is ResultKind.GRANTED:
        return None
    return E.END_TOO_EARLY if result.kind is ResultKind.TOO_EARLY else E.END_REFUSED


# Arguments: run, text of the bank. Each is true in every state whose row of the event warns.
_WARNINGS: Mapping[E, str] = {
    E.PROLOG_UNLIMITED_RUN: "%s has no time limit: it runs without a hold, and its end is "
    "reported%s",
    E.LIMIT_NONE: "%s has no time limit any more: its price cannot be held%s",
    E.HOLD_LAPSED: "the hold of %s has expired: %s",
    E.HOLD_REFUSED: "%s runs, but the bank holds nothing for it: %s",
    E.HOLD_UNPRICED_RUN: "%s runs without a hold, and its end is reported: %s",
    E.RUN_CLOSED: "%s is charged or released already: %s",
    E.ADJUST_REFUSED: "%s has a new time limit or size that the bank does not hold for: %s",
    E.END_TOO_EARLY: "%s has ended, and the bank does not charge it yet: %s",
    E.END_REFUSED: "%s has ended, and the bank has not charged it: %s",
}
_SAME_WARNING = {E.HOLD_UNPRICED_REFUSE: E.HOLD_REFUSED, E.RUN_NEVER_STARTED: E.HOLD_REFUSED}


_START_AFTER_END = "%s asks to start after it has ended: it may run%s"


def warning(state: S, event: E, occurrence: Occurrence) -> str:
    """Return the log line for the effect WARN.

    Args:
        state: state of the run before the event.
    """
    if state is S.ENDED and event in PROLOGS:
        return _START_AFTER_END % (occurrence.run, occurrence.text)
    return _WARNINGS[_SAME_WARNING.get(event, event)] % (occurrence.run, occurrence.text)


def facts_after(known: KnownRun | None, state: S, cause: Occurrence) -> KnownRun:
    """Return what is stored of a run after an event."""
    if state is S.ENDED:
        return KnownRun(state)
    refusal = cause.refusal if state in (S.REFUSED, S.DEFERRED) else None
    if (message := cause.message) is None:
        return msgspec.structs.replace(known or KnownRun(state), state=state, refusal=refusal)
    billing = exact_decimal(message.billing)
    return KnownRun(
        state, message.limit_seconds, refusal, billing, cause.pieces, message.suspended_seconds
    )
