"""Metrics of the agent for Prometheus, and its status for `fairbank agent status`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairbank.agent.engine import Engine
from fairbank.agent.reports.bank_status import ProbeResults

PREFIX = "fairbank_agent_"
GAUGES: Mapping[str, str] = {
    "reports": "Reports that the bank has not answered",
    "reports_on_disk_only": "Reports, of those not answered, that are not in memory",
    "reports_retry_later": "Ends too early for the bank's clock, beside the reports not answered",
    "reports_denied": "Reports set aside, of clusters that the bank does not know or permit",
    "oldest_report_seconds": "Age of the oldest report in memory",
    "bank_contacted": "1 after the first report or probe; before that bank_up means nothing",
    "bank_up": "1 if the bank answers and accepts reports of this cluster, else 0",
    "bank_state_seconds": "Time since bank_up changed",
    "outbox_writable": "1 if the outbox can be written, else 0",
    "senders": "Largest number of concurrent requests to the bank",
    "senders_busy": "Requests to the bank in flight",
    "prologs_waiting": "Prolog requests without a verdict",
    "runs": "Known runs that have not ended",
    "plugin_connections": "Connected plug-ins",
}
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # description, labels
    "messages": ("Messages of the plug-in", ("kind",)),
    "verdicts": ("Verdicts, by result of the bank or policy of the partition", ("result",)),
    "reports_answered": ("Reports that the bank has answered", ("kind", "result")),
    "unreadable_frames": ("Frames of the plug-in that cannot be decoded", ("kind",)),
    "incidents": ("Incidents, as in fairbank agent status", ("kind",)),
    "request_errors": ("Requests to the bank that failed", ("error",)),
    "probe_errors": ("Probes of the bank, without a report to send, that failed", ("error",)),
}
VERDICT_SECONDS = "time from a prolog request to its verdict"
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


def status(engine: Engine, probes: ProbeResults, now: float, clock_offset: float) -> dict[str, Any]:
    """Return the status as JSON.

    Args:
        engine: the agent.
        probes: results of the probes.
        now: monotonic seconds.
        clock_offset: difference of Unix and monotonic seconds.
    """
    flow = engine.flow
    bank, oldest = probes.reachability(flow.bank), flow.queue.oldest()
    kinds = ("hold", "adjust", "complete")
    return {
        "outbox": {
            "reports": len(flow.queue),
            "on_disk_only": flow.queue.on_disk_only,
            "retry_later": len(flow.retry_later),
            "oldest_seconds": None if oldest is None else max(0.0, round(now - oldest, 3)),
            "error": flow.disk_error,
        },
        "bank": {
            "reachable": bank.reachable,
            "since": int(bank.since + clock_offset),
            "failures": bank.failures,
            "error": None if bank.error is None else bank.error.message,
            "remedy": None if bank.error is None else bank.error.remedy,
        },
        "denied": flow.denied.status(clock_offset),
        "senders": {
            "size": flow.senders,
            "busy": flow.busy,
            "minimum": flow.limits.minimum,
            "maximum": flow.limits.maximum,
        },
        "prologs_waiting": len(engine.questions.open),
        "runs": len(flow.memory),
        "verdicts": _counts(engine, "verdicts"),
        "messages": _counts(engine, "messages"),
        "reports_answered": {kind: _counts(engine, "reports_answered", kind) for kind in kinds},
        "request_errors": _counts(engine, "request_errors"),
        "incidents": engine.incidents.status(clock_offset),
    }


def _counts(engine: Engine, *key: str) -> dict[str, int]:
    """Return the counts whose key begins so, by its last part."""
    items = sorted(engine.counts.items())
    return {labels[-1]: count for labels, count in items if labels[: len(key)] == key}


class AgentMetrics(Collector):
    """Metrics for Prometheus, collected when it asks."""

    def __init__(self, engine: Engine, probes: ProbeResults) -> None:
        self._engine, self._probes = engine, probes
        self.plugin_connections = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._verdict_seconds = Histogram(
            f"{PREFIX}verdict_seconds",
            VERDICT_SECONDS.capitalize(),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._now = 0.0

    def record_waits(self, seconds: list[float]) -> None:
        for wait in seconds:
            self._verdict_seconds.observe(wait)

    def page(self, now: float) -> bytes:
        self._now = now
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for prometheus_client."""
        flow = self._engine.flow
        bank, oldest = self._probes.reachability(flow.bank), flow.queue.oldest()
        values = {
            "reports": len(flow.queue),
            "reports_on_disk_only": flow.queue.on_disk_only,
            "reports_retry_later": len(flow.retry_later),
            "reports_denied": len(flow.denied),
            "oldest_report_seconds": 0.0 if oldest is None else max(0.0, self._now - oldest),
            "bank_contacted": int(bank.reachable is not None),
            "bank_up": int(bool(bank.reachable)),
            "bank_state_seconds": max(0.0, self._now - bank.since),
            "outbox_writable": int(flow.disk_error is None),
            "senders": flow.senders,
            "senders_busy": flow.busy,
            "prologs_waiting": len(self._engine.questions.open),
            "runs": len(flow.memory),
            "plugin_connections": self.plugin_connections,
        }
        for name, text in GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, text, value=values[name])
        for name, (text, labels) in COUNTERS.items():
            family = CounterMetricFamily(PREFIX + name, text, labels=labels)
            for key, count in sorted(self._engine.counts.items()):
                if key[0] == name:
                    family.add_metric(key[1:], count)
            yield family
