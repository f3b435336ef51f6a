"""Clusters that the bank does not know or that this agent may not report, with their reports.

No I/O. The bank is up all the same, so the reports of other clusters go on. The reports of a denied
cluster are set aside, in their order, until the bank accepts one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from fairbank.agent.reports.bank_status import retry_pause
from fairbank.agent.reports.report import PendingReport, ReportResult, ResultKind

LONGEST_PAUSE = 60.0  # seconds between tests


class DeniedCluster(msgspec.Struct):
    """Cluster whose reports are set aside. Times are monotonic seconds.

    `reports`: by sequence number, None for a report that is on disk only. `test`: number of the
    report that is sent to find out whether the bank accepts it now. The next test is due at
    `retry_at`, also without an answer to this one, which may have been superseded.
    """

    text: str
    remedy: str
    since: float
    retry_at: float
    failures: int = 0
    test: int | None = None
    reports: dict[int, PendingReport | None] = {}

    def __len__(self) -> int:
        return len(self.reports) + (self.test is not None)

    def set_aside(self, report: PendingReport) -> None:
        self.reports[report.seq] = None if report.stored else report

    def begin_test(self, seq: int, now: float) -> None:
        self.test, self.retry_at = seq, now + LONGEST_PAUSE

    def record_failure(self, text: str, remedy: str, now: float) -> None:
        """Record that the bank does not accept a report; plan the next test."""
        self.failures += 1
        self.text, self.remedy, self.test = text, remedy, None
        self.retry_at = now + retry_pause(self.failures, LONGEST_PAUSE)


class DeniedClusters:
    """Denied clusters by name (`by_name`)."""

    def __init__(self) -> None:
        self.by_name: dict[str, DeniedCluster] = {}

    def deny(
        self, cluster: str, reports: Sequence[PendingReport], result: ReportResult, now: float
    ) -> bool:
        """Set reports aside that the bank has answered; return whether the cluster was not denied.

        Args:
            reports: the reports of one request.
            result: the bank's answer.
            now: monotonic seconds.
        """
        is_news = cluster not in self.by_name
        text, advice = result.text, remedy(cluster, result.kind)
        denied = self.by_name.setdefault(cluster, DeniedCluster(text, advice, now, now))
        for report in reports:
            denied.set_aside(report)
        # Answers to requests that were in flight before count for nothing.
        if is_news or any(report.seq == denied.test for report in reports):
            denied.record_failure(text, advice, now)
        return is_news

    def take_tests(self, now: float) -> Iterator[tuple[int, PendingReport | None]]:
        """Yield the number of a report to send for each cluster that is due, and the report if it
        is in memory.
        """
        for denied in self.by_name.values():
            if denied.retry_at <= now and denied.reports:
                seq = min(denied.reports)
                denied.begin_test(seq, now)
                yield seq, denied.reports.pop(seq)

    def divert(
        self, batch: Iterable[PendingReport], now: float
    ) -> tuple[list[PendingReport], list[PendingReport]]:
        """Return the reports of a request that may go, and those that were set aside instead."""
        going, aside = [], []
        for report in batch:
            denied = self.by_name.get(report.cluster)
            if denied is not None and denied.retry_at <= now and not denied.reports:
                denied.begin_test(report.seq, now)
            if denied is None or denied.test == report.seq:
                going.append(report)
            else:
                denied.set_aside(report)
                aside.append(report)
        return going, aside

    def forget_stored(self, report: PendingReport) -> None:
        """Leave a report that is on disk now there only."""
        denied = self.by_name.get(report.cluster)
        if denied is not None and report.seq in denied.reports:
            denied.reports[report.seq] = None

    def __len__(self) -> int:
        """Return the number of reports that are set aside, the tests included."""
        return sum(map(len, self.by_name.values()))

    def status(self, clock_offset: float) -> list[dict[str, Any]]:
        """Return the clusters as JSON; `clock_offset` turns monotonic into Unix seconds."""
        return [
            {
                "cluster": cluster,
                "reports": len(denied),
                "since": int(denied.since + clock_offset),
                "failures": denied.failures,
                "error": denied.text,
                "remedy": denied.remedy,
            }
            for cluster, denied in sorted(self.by_name.items())
        ]


def remedy(cluster: str, kind: ResultKind) -> str:
    """Return what lets the agent report the runs of a cluster that the bank answered so."""
    if kind is ResultKind.UNKNOWN_CLUSTER:
        return (
            f"add [clusters.{cluster}] to the bank's settings, or give the cluster there the "
            "ClusterName of slurm.conf; the agent then sends these reports itself"
        )
    return (
        f"add the agent's user to agents under [clusters.{cluster}] in the bank's settings, "
        f"with that table if they lack it, or give it a token with the scope agent:{cluster}; "
        "the agent then sends these reports itself"
    )
