"""Engine of the agent: makes events of messages and results, and carries out their effects.

The decisions are in `agent.run_states`, the conditions that choose an event in `agent.run_events`.
There is no I/O and no clock here: `now` is in monotonic seconds. The shells take what must be done
from `flow` and `take_reconnect`, and report how it went.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from fairbank.agent import run_events
from fairbank.agent.incidents import Incident, Incidents
from fairbank.agent.outage_policy import (
    BANK_DOWN_TEXT,
    DEFERRED_REASON,
    RUN,
    KnownCredit,
    PartitionTerms,
    answer_deadline,
    decide_without_bank,
    defer,
    no_time_limit,
)
from fairbank.agent.protocol import (
    WORDS,
    EpilogEvent,
    LimitEvent,
    PluginMessage,
    PrologRequest,
    Verdict,
)
from fairbank.agent.reports.bank_status import STABLE_SECONDS, SenderSettings, after_failure
from fairbank.agent.reports.denied_clusters import remedy
from fairbank.agent.reports.flow import ReportFlow
from fairbank.agent.reports.report import (
    CLUSTER_DENIED,
    UNBILLABLE_REASON,
    PendingReport,
    Receipt,
    ReportKind,
    ReportResult,
    ResultKind,
    clock_warning,
    cluster_of,
    facts_of,
    hold_facts,
)
from fairbank.agent.run_events import Occurrence
from fairbank.agent.run_memory import (
    UNKNOWN_RUN,
    KnownRun,
    PrologQuestion,
    PrologQuestions,
    replies_to,
)
from fairbank.agent.run_states import AgentEffect, AgentEvent, AgentRunState, step
from fairbank.core.errors import FairbankError, Forbidden, NotFound

_log = logging.getLogger(__name__)
S = AgentRunState
E = AgentEvent
F = AgentEffect

_REPORTS = {
    F.SEND_HOLD: ReportKind.HOLD,
    F.SEND_ADJUST: ReportKind.ADJUST,
    F.SEND_END: ReportKind.COMPLETE,
    F.RESEND_AS_HOLD: ReportKind.HOLD,
    F.RESEND_AS_ADJUST: ReportKind.ADJUST,
}


class Engine:
    """State of the agent.

    Invariants: a question is open only while its run is WAITING. `deferred_at` has the time of each
    cluster's last deferral that its plug-in was not made to release.
    """

    def __init__(
        self,
        terms_of: Callable[[str], PartitionTerms],
        senders: SenderSettings,
        *,
        instance: str,
        now: float,
    ) -> None:
        self.terms_of = terms_of
        self.flow = ReportFlow(senders, instance=instance, now=now)
        self.credit, self.questions = KnownCredit(), PrologQuestions()
        self.waits: list[float] = []  # seconds that questions have waited, for the histogram
        self.counts: Counter[tuple[str, ...]] = Counter()  # (metric, values of its labels)
        self.incidents = Incidents(self.counts)
        self.deferred_at: dict[str, float] = {}

    def restore(
        self, runs: Iterable[tuple[str, KnownRun]], seqs: Sequence[int], credit: bytes | None
    ) -> None:
        """Restore what an agent before this one has left in the outbox.

        Args:
            runs: the runs that it knew, each with its name as in reports; ended ones too.
            seqs: numbers of the stored reports that the bank has not acknowledged, ascending.
            credit: the credit that it last knew, as `KnownCredit.dump` wrote it; None or empty:
                unknown.
        """
        self.flow.restore(runs, seqs)
        if credit:
            self.credit.load(credit)

    # ------------------------------------------------------------------ events

    def handle_message(self, message: PluginMessage, connection: object, now: float) -> None:
        """Handle a message of the plug-in, perhaps a repeated one.

        Args:
            connection: where the answer goes.
            now: monotonic seconds.
        """
        self.counts["messages", WORDS[type(message)]] += 1
        run = str(message.run)
        known = self.flow.memory.get(run)
        cause = Occurrence(run, now, message=message, receipt=Receipt(connection, message.number))
        cause.pieces = (known or UNKNOWN_RUN).pieces_of(message)
        match message:
            case PrologRequest():
                terms = self.terms_of(message.partition)
                event = run_events.prolog_event(message, terms, bank_up=self.flow.bank.is_up)
                is_first = known is None or known.state is S.DEFERRED
                if event is E.PROLOG_UNLIMITED_RUN and is_first:
                    cause.label = "unbillable: run"
                elif event is E.PROLOG_UNLIMITED_REFUSE and is_first:
                    cause.label = ResultKind.UNBILLABLE.value
                    cause.refusal = no_time_limit(terms.refusal)
            case LimitEvent():
                self._close_question(run)
                event = run_events.limit_event(known, message)
            case EpilogEvent():
                self._close_question(run)
                event = E.EPILOG if message.begun else E.EPILOG_NEVER_STARTED
                earlier = known.refusal if known is not None else None
                text = BANK_DOWN_TEXT
                cause.refusal = earlier or defer(text, batch=message.batch)
            case _:
                raise TypeError(f"{type(message).__name__} is not a message about a run")
        self._apply(event, cause)

    def handle_results(
        self, batch: list[PendingReport], results: Sequence[ReportResult], now: float
    ) -> None:
        """Handle the bank's results for a request.

        Args:
            batch: reports of the request.
            results: one for each report, in their order.
            now: monotonic seconds.
        """
        self.flow.busy -= 1
        pairs = list(zip(batch, results, strict=True))
        if self.flow.bank.record_success(now):
            _log.info("the bank answers")
        denied: dict[str, list[tuple[PendingReport, ReportResult]]] = {}
        for report, result in pairs:
            if result.kind in CLUSTER_DENIED:
                denied.setdefault(report.cluster, []).append((report, result))
                continue
            if self.flow.permit(report.cluster):
                _log.info("the bank accepts the reports of cluster %s", report.cluster)
            self._handle_result(report, result, now)
        for cluster, refused in denied.items():
            self._deny(cluster, [report for report, _ in refused], refused[0][1], now)

    def _deny(
        self, cluster: str, reports: list[PendingReport], result: ReportResult, now: float
    ) -> None:
        """Set aside reports that this agent may not send: the bank is up for all others."""
        error = Forbidden if result.kind is ResultKind.FORBIDDEN else NotFound
        self.counts["request_errors", error.title] += 1
        if self.flow.deny(cluster, reports, result, now):
            message = "reports of cluster %s are set aside: %s; %s"
            _log.warning(message, cluster, result.text, remedy(cluster, result.kind))

    def handle_failure(self, batch: list[PendingReport], error: FairbankError, now: float) -> None:
        """Handle a request that failed as a whole.

        Args:
            batch: reports of the request.
            now: monotonic seconds.
        """
        self.flow.busy -= 1
        first = batch[0]
        match after_failure(error, len(batch), first.attempts):
            case "retry":
                self._retry(batch, error, now)
            case "split":
                self.flow.queue.split(batch)
            case "drop":
                text = "dropped a report that the bank cannot accept (%s): %s"
                _log.error(text, error.message, first.body.decode())
                text = f"{first.kind.value} of {first.run}: {error.message}"
                self.incidents.record(Incident.DROPPED_REPORT, text, now)
                result = ReportResult(ResultKind.UNBILLABLE, UNBILLABLE_REASON, error.message)
                self._handle_result(first, result, now)

    def _retry(self, reports: list[PendingReport], error: FairbankError, now: float) -> None:
        if self.flow.bank.record_failure(error, now):
            _log.warning("%s; %s", error.message, error.remedy or "the agent retries by itself")
        self.counts["request_errors", error.title] += 1
        waiting = [report.run for report in reports if report.run in self.questions.open]
        self.flow.queue.put_back(reports, urgent=waiting)

    def _handle_result(self, report: PendingReport, result: ReportResult, now: float) -> None:
        self.flow.queue.done(report)
        self.counts["reports_answered", report.kind.value, result.kind.value] += 1
        facts = facts_of(report)
        self.credit.learn(facts, result, now)
        cause = Occurrence(report.run, now, report=report, result=result)
        event: E | None
        match report.kind:
            case ReportKind.HOLD:
                terms = self.terms_of(facts.partition)
                event = run_events.hold_event(result, report, terms)
                question = self.questions.open.get(cause.run)
                batch = question is None or question.request.batch
                run_events.set_verdict(event, cause, terms, facts.account, batch=batch)
            case ReportKind.ADJUST:
                event = run_events.adjust_event(result, report)
            case ReportKind.COMPLETE:
                event = run_events.end_event(result)
        if event is not E.END_TOO_EARLY:  # the only result after which the report is still needed
            self.flow.finish(report)
        if event is not None:
            self._apply(event, cause)

    def tick(self, now: float) -> None:
        """Decide without the bank what has waited long enough, and do what else time brings."""
        bank, denied = self.flow.bank, self.flow.denied.by_name
        for run, question in self.questions.overdue(now):
            if cluster_of(run) not in denied and bank.record_no_answer(question.received):
                # One has waited in vain, so the others need not wait longer; `overdue` yields them.
                self.questions.shorten(self._deadline)
            self._decide(run, question, now)
        self.flow.tick(now)

    def _deadline(self, question: PrologQuestion) -> float:
        """Return when to decide an open question without the bank."""
        request = question.request
        outage_since = self.flow.outage_since(request.run.cluster)
        return answer_deadline(question.received, self.terms_of(request.partition), outage_since)

    def _decide(self, run: str, question: PrologQuestion, now: float) -> None:
        """Decide an open question by the outage policy of its partition."""
        request, report = question.request, question.report
        terms = self.terms_of(request.partition)
        facts = facts_of(report) if report else hold_facts(request)
        refusal = decide_without_bank(terms, facts, self.credit, batch=request.batch)
        event, action = (E.TIMEOUT_RUN, "run") if refusal is None else (E.TIMEOUT_DEFER, "deferred")
        label = f"{terms.outage_policy.value}: {action}"
        self._apply(event, Occurrence(run, now, report=report, refusal=refusal, label=label))

    # ------------------------------------------------------------------ effects

    def _apply(self, event: E, cause: Occurrence) -> None:
        """Take the step of the table, store the new state, and carry out the effects."""
        memory = self.flow.memory
        known = memory.get(cause.run)
        old = known.state if known is not None else S.NEW
        new, effects = step(old, event)
        # A new limit or a new refusal is stored too where the state stays the same.
        is_news = event in (E.LIMIT_CHANGED, E.LIMIT_NONE) and new is not S.ENDED
        if new is not old or is_news or F.REFUSE in effects:
            memory.put(cause.run, run_events.facts_after(known, new, cause))
        for effect in effects:
            self._carry_out(effect, event, cause, known)

    def _carry_out(self, effect: F, event: E, cause: Occurrence, known: KnownRun | None) -> None:
        """Carry out an effect: most need a message, some a report, which their events have."""
        flow, message, report = self.flow, cause.message, cause.report
        receipt = cause.receipt
        match effect:
            case F.WARN:
                old = known.state if known is not None else S.NEW
                _log.warning("%s", run_events.warning(old, event, cause))
            case F.INCIDENT:
                text = f"{cause.run}: {cause.text or 'it has no time limit'}"
                self.incidents.record(Incident.WITHOUT_HOLD, text, cause.now)
            case F.RUN:
                flow.reply(self._settle_question(cause), RUN)
            case F.REFUSE if cause.refusal:
                self._refuse(cause, cause.refusal)
            case F.ASK_BANK | F.JOIN_QUESTION if isinstance(message, PrologRequest) and receipt:
                self._ask(message, receipt, cause.now, send=effect is F.ASK_BANK)
            case F.CHECK_CLOCK if isinstance(message, EpilogEvent):
                if (problem := clock_warning(message)) is not None:
                    _log.warning("%s %s", cause.run, problem)
            case F.SEND_HOLD | F.SEND_ADJUST | F.SEND_END if message and receipt:
                flow.send(_REPORTS[effect], message, receipt, cause.now, cause.pieces)
            case F.REPEAT_REFUSAL if receipt and known and known.refusal:
                self._note_deferral(known.refusal, cause)
                flow.reply([receipt], known.refusal)
            case F.ACK if receipt:
                flow.acknowledge(receipt)
            case F.ACK_WHEN_SAFE if receipt:
                flow.acknowledge_when_safe(cause.run, receipt)
            case F.DEPRIORITISE | F.WITHDRAW if report is None:
                pass  # the question joined a hold report of an agent before this one
            case F.DEPRIORITISE if report:
                flow.deprioritise(report)
            case F.WITHDRAW if report:
                flow.withdraw(report)
            case F.RESEND_AS_ADJUST | F.RESEND_AS_HOLD if report:
                flow.resend(report, _REPORTS[effect])
            case F.RETRY_LATER if report:
                flow.retry_later.put(report, cause.now)
            case _:
                raise AssertionError(effect, event)

    def _ask(self, request: PrologRequest, receipt: Receipt, now: float, *, send: bool) -> None:
        """Open the question of a run, or join the open one; perhaps decide it at once."""
        run = str(request.run)
        if (question := self.questions.open.get(run)) is not None:
            question.join(receipt)
            return
        report = self.flow.ask(request, now) if send else None
        terms = self.terms_of(request.partition)
        deadline = answer_deadline(now, terms, self.flow.outage_since(request.run.cluster))
        question = PrologQuestion(request, now, deadline, (receipt,), report)
        self.questions.add(run, question)
        if deadline <= now:
            self._decide(run, question, now)
        elif report is not None and terms.optimistic_start and self.flow.bank.is_up:
            facts = facts_of(report)
            is_fresh = self.credit.is_fresh(facts, now)
            if is_fresh and self.credit.deduct(facts, terms.optimistic_start):
                cause = Occurrence(run, now, report=report, label="optimistic start")
                self._apply(E.OPTIMISTIC_START, cause)

    def _close_question(self, run: str) -> None:
        """Close a question that slurmctld does not wait for any more: it has gone on."""
        if (question := self.questions.open.pop(run, None)) is not None:
            self.flow.reply(question.receipts, RUN)
            if question.report is not None:
                self.flow.deprioritise(question.report)

    def _settle_question(self, cause: Occurrence) -> tuple[Receipt, ...]:
        """Close and count the question of a run; return the receipts that want the verdict."""
        question = self.questions.open.pop(cause.run, None)
        receipts = () if question is None else question.receipts
        if cause.receipt is not None:
            receipts = (*receipts, cause.receipt)
        if question is not None:
            self.waits.append(cause.now - question.received)
        if cause.label and receipts:
            self.counts["verdicts", cause.label] += 1
        return receipts

    def _refuse(self, cause: Occurrence, refusal: Verdict) -> None:
        self._note_deferral(refusal, cause)
        if cause.result is not None:
            _log.info("%s is refused: %s", cause.run, refusal.text)
        # With the changes and not with the replies: a refusal is stored before it is sent.
        receipts = self._settle_question(cause)
        self.flow.memory.changes.replies += replies_to(receipts, refusal)

    def _note_deferral(self, refusal: Verdict, cause: Occurrence) -> None:
        if refusal.reason == DEFERRED_REASON:
            self.deferred_at[cluster_of(cause.run)] = cause.now

    def take_reconnect(self, now: float) -> frozenset[str]:
        """Return, once per outage, the clusters whose plug-ins must be made to connect again.

        The plug-in releases deferred jobs when it connects. That must not happen before slurmctld
        has deferred the last one, which takes a moment, nor before the bank is back. A bank that
        accepts requests and answers none counts as up until the first request has failed, so wait
        for a result if a request is in flight. A cluster that the bank denies would be deferred
        again.
        """
        flow, contacted_at = self.flow, self.flow.bank.contacted_at
        if not flow.bank.is_stable(now):
            return frozenset()
        ready = frozenset(
            cluster
            for cluster, deferred_at in self.deferred_at.items()
            if cluster not in flow.denied.by_name
            and now - deferred_at >= STABLE_SECONDS
            and not (flow.busy and (contacted_at is None or contacted_at < deferred_at))
        )
        for cluster in ready:
            del self.deferred_at[cluster]
        return ready
