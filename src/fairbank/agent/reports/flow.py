"""Flow of reports: from the run states through memory, outbox and send queue to the bank.

There is no I/O and no clock here; the disk and the senders tell how it went.

If the agent is killed, the next one restores the stored reports and sends the same bodies, keys
included, so the bank answers as before. A report that was not stored was not acknowledged: the
plug-in sends its message again, under a new key, and the bank recognises the same report of a run.
If slurmctld is killed too, the plug-in's first scan of its jobs reports their ends again. What is
lost all the same lapses at the bank, and `fairbank reconcile` charges it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from fairbank.agent.protocol import Ack, PluginMessage, Verdict
from fairbank.agent.reports.bank_status import BankStatus, SenderSettings, resize_pool
from fairbank.agent.reports.denied_clusters import DeniedClusters
from fairbank.agent.reports.report import (
    PendingReport,
    Receipt,
    ReportKind,
    ReportResult,
    convert_report,
    report_body,
)
from fairbank.agent.reports.send_queue import RetryLater, SendQueue
from fairbank.agent.run_memory import KnownRun, OutboxChanges, Reply, RunMemory, replies_to
from fairbank.cluster.run_report import RunPiece

_log = logging.getLogger(__name__)

_DISK_REMEDY = (
    "free space on its disk. Until then only reports that the bank has received are acknowledged"
)


class ReportFlow:
    """Reports, from their creation until the bank has answered them.

    Invariants: a message is acknowledged only when its report is stored or received by the bank.
    `unsafe_ends` has the end reports that are neither. `busy` requests are in flight, and at most
    `senders`; only one while the bank is down. Reports of `denied` clusters are not in the queue,
    except one that tests the bank. `instance` is the id of this process of the agent:
    the idempotency keys of the reports of any two differ.
    """

    def __init__(self, senders: SenderSettings, *, instance: str, now: float) -> None:
        self.limits, self._instance = senders, instance
        self.memory, self.queue, self.retry_later = RunMemory(), SendQueue(), RetryLater()
        self.bank, self.denied = BankStatus(now), DeniedClusters()
        self.replies: list[Reply] = []
        self.senders, self.busy = senders.minimum, 0
        self.disk_error: str | None = None
        self.unsafe_ends: dict[str, PendingReport] = {}
        self._seq = 0
        self._idle_since = now

    def restore(self, runs: Iterable[tuple[str, KnownRun]], seqs: Sequence[int]) -> None:
        """Restore what an agent before this one has left in the outbox."""
        self.memory.restore(runs)
        self.queue.spilled(seqs)
        self._seq = max(seqs, default=0)

    @property
    def is_idle(self) -> bool:
        """Return True if no report waits in the queue or is in a request."""
        return not self.busy and not len(self.queue)

    def outage_since(self, cluster: str) -> float | None:
        """Return since when no question of a cluster is answered; None if they are."""
        denied = self.denied.by_name.get(cluster)
        starts = [self.bank.outage_since, denied.since if denied else None]
        return min((at for at in starts if at is not None), default=None)

    def take_replies(self) -> list[Reply]:
        """Return the replies to send to the plug-in now."""
        replies, self.replies = self.replies, []
        return replies

    def reply(self, receipts: Iterable[Receipt], verdict: Verdict) -> None:
        self.replies += replies_to(receipts, verdict)

    def acknowledge(self, receipt: Receipt) -> None:
        self.replies.append((receipt, Ack(number=receipt.number)))

    def acknowledge_when_safe(self, run: str, receipt: Receipt) -> None:
        """Acknowledge a repeated end once the end report of its run is safe."""
        if (end := self.unsafe_ends.get(run)) is not None:
            end.receipts = (*end.receipts[-3:], receipt)
        else:
            self.acknowledge(receipt)

    # ------------------------------------------------------------------ reports

    def ask(self, message: PluginMessage, now: float) -> PendingReport:
        """Queue and return a hold report that slurmctld waits for."""
        report = self._new_report(ReportKind.HOLD, message, now)
        self.memory.keep(report)
        self.queue.add(report, urgent=True)
        return report

    def send(
        self,
        kind: ReportKind,
        message: PluginMessage,
        receipt: Receipt,
        now: float,
        pieces: tuple[RunPiece, ...] = (),
    ) -> None:
        """Queue a report that no job waits for.

        Args:
            message: message that it passes on.
            receipt: where to acknowledge the message once the report is safe.
            now: monotonic seconds.
            pieces: the pieces of the run before its last change of resources.
        """
        report = self._new_report(kind, message, now, pieces)
        report.receipts = (receipt,)
        if kind is ReportKind.COMPLETE:
            self.unsafe_ends[report.run] = report
        self.memory.keep(report)
        self.queue.add(report)

    def resend(self, report: PendingReport, kind: ReportKind) -> None:
        """Send a report as another kind, before all other reports of its run."""
        other = convert_report(report, kind, self._next_key())
        self.memory.keep(other)
        self.queue.put_back([other])

    def _new_report(
        self,
        kind: ReportKind,
        message: PluginMessage,
        now: float,
        pieces: tuple[RunPiece, ...] = (),
    ) -> PendingReport:
        body = report_body(message, kind, self._next_key(), pieces)
        return PendingReport(self._seq, str(message.run), kind, body, now)

    def _next_key(self) -> str:
        self._seq += 1
        return f"{self._instance}.{self._seq}"

    def deprioritise(self, report: PendingReport) -> None:
        """Let a hold report wait with the others: slurmctld does not wait for it any more."""
        self.queue.deprioritise(report)
        self._spill_if_stored(report)

    def withdraw(self, report: PendingReport) -> None:
        """Drop a report if it is neither in a request nor on disk only."""
        if self.queue.withdraw(report):
            self.memory.drop(report)

    def deny(
        self, cluster: str, reports: list[PendingReport], result: ReportResult, now: float
    ) -> bool:
        """Set reports aside that the bank does not accept from this agent; return whether their
        cluster was not denied before.

        Args:
            reports: the reports of one request.
            result: the bank's answer.
            now: monotonic seconds.
        """
        for report in reports:
            self.queue.done(report)
        return self.denied.deny(cluster, reports, result, now)

    def permit(self, cluster: str) -> bool:
        """Queue what was set aside, since the bank accepts the cluster; return whether it was
        denied.
        """
        denied = self.denied.by_name.pop(cluster, None)
        if denied is None:
            return False
        aside = sorted(denied.reports.items())
        self.queue.spilled([seq for seq, report in aside if report is None])
        for _, report in aside:
            if report is not None:
                self.queue.add(report)
        return True

    def finish(self, report: PendingReport) -> None:
        """Drop a report: the bank has received it, or a newer report supersedes it."""
        self.memory.drop(report)
        self._mark_safe(report)

    def _mark_safe(self, report: PendingReport) -> None:
        for receipt in report.receipts:
            self.acknowledge(receipt)
        report.receipts = ()
        if self.unsafe_ends.get(report.run) is report:
            del self.unsafe_ends[report.run]

    def _spill_if_stored(self, report: PendingReport) -> None:
        """Keep a report that exceeds the queue's memory on disk only. `stored` does so for a report
        that is not on disk yet.
        """
        if report.stored and self.queue.is_spilling(report):
            self.queue.spilled([report.seq])

    # ------------------------------------------------------------------ requests

    def tick(self, now: float) -> None:
        """Queue reports whose retry is due, and remove senders that were idle."""
        for report in self.retry_later.take_due(now):
            self.queue.add(report)
            self._spill_if_stored(report)
        for seq, test in self.denied.take_tests(now):
            if test is None:
                self.queue.spilled([seq])
            else:
                self.queue.add(test)
        if self.busy:
            self._idle_since = now
        idle = now - self._idle_since
        self.senders = resize_pool(self.senders, self.limits, waited=0.0, idle=idle)

    def next_due(self) -> float | None:
        """Return when the next request must go; None when no report may be sent."""
        return self.queue.due(self.limits.gather)

    def next_request(self, now: float) -> list[PendingReport]:
        """Return the reports of a request to send now; empty if none is due or senders are busy."""
        due = self.next_due()
        late = 0.0 if due is None else now - due
        is_due = self.queue.is_split or (due is not None and late >= 0)
        if now < self.bank.retry_at or not is_due:
            return []
        if self.busy >= self.senders:
            self.senders = resize_pool(self.senders, self.limits, waited=late, idle=0.0)
        # One request at a time probes a bank that is down.
        if self.busy >= (self.senders if self.bank.is_up else 1):
            return []
        batch, superseded = self.queue.take(self.limits.batch)
        for report in superseded:
            self.finish(report)
        batch, aside = self.denied.divert(batch, now)
        for report in aside:
            report.attempts -= 1
            self.queue.done(report)
        if batch:
            self.busy += 1
        return batch or (self.next_request(now) if superseded or aside else [])

    # ------------------------------------------------------------------ disk

    def stored(self, changes: OutboxChanges) -> None:
        """Record that these changes are in the outbox."""
        self.disk_error = None
        self.replies += changes.replies
        for report in changes.reports.values():
            if report is not None:
                report.stored = True
                self._mark_safe(report)
                self._spill_if_stored(report)
                self.denied.forget_stored(report)

    def not_stored(self, changes: OutboxChanges, error: str) -> None:
        """Record that these changes could not be written.

        Reports that the bank receives are safe all the same; the others stay in memory.
        """
        if self.disk_error is None:
            _log.error("the outbox cannot be written: %s; %s", error, _DISK_REMEDY)
        self.disk_error = error
        self.replies += changes.replies
        for report in changes.reports.values():
            if report is not None and self.queue.is_spilling(report):
                self.queue.force(report)
        self.memory.give_back(changes)
