"""Metrics of the agent for Prometheus, and its status for `fairbank agent status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairbank.agent.engine import Engine
from fairbank.agent.reports.bank_probe import ProbeResults

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


def status(engine: Engine, probes: ProbeResults, now: float, clock_offset: float) -> dict[str, Any]:
    """Return the status as JSON; times are seconds since 1970."""
    flow = engine.flow
    bank, oldest = probes.reachability(flow.bank), flow.queue.oldest()
    return {
        "outbox": {
            "reports": len(flow.queue),
            "on_disk_only": flow.queue.on_disk_only,
            "retry_later": len(flow.retry_later),
            "oldest_seconds": None if oldest is None else max(0.0, round(now - oldest, 3)),
            "trouble": flow.disk_trouble,
        },
        "bank": {
            "reachable": bank.reachable,
            "since": int(bank.since + clock_offset),
            "failures": bank.failures,
            "trouble": None if bank.trouble is None else bank.trouble.message,
            "remedy": None if bank.trouble is None else bank.trouble.remedy,
        },
        "senders": {
            "size": flow.senders,
            "busy": flow.busy,
            "minimum": flow.limits.minimum,
            "maximum": flow.limits.maximum,
        },
        "questions": len(engine.questions),
        "runs": len(flow.memory),
        "answers": _counts(engine, "answers"),
        "messages": _counts(engine, "messages"),
        "sent": {kind: _counts(engine, f"sent {kind}") for kind in ("hold", "adjust", "complete")},
        "failures": _counts(engine, "failures"),
        "incidents": engine.incidents.status(clock_offset),
    }


def _counts(engine: Engine, what: str) -> dict[str, int]:
    return {how: count for (each, how), count in sorted(engine.counts.items()) if each == what}


class AgentMetrics(Collector):
    """Metrics for Prometheus, collected when it asks."""

    def __init__(self, engine: Engine, probes: ProbeResults) -> None:
        self._engine, self._probes = engine, probes
        self.plugins = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._waits = Histogram(
            "fairbank_agent_answer_seconds",
            "Time from a prolog request to its verdict",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._now = 0.0

    def waited(self, seconds: list[float]) -> None:
        for each in seconds:
            self._waits.observe(each)

    def page(self, now: float) -> bytes:
        self._now = now
        return generate_latest(self._registry)

    def families(self) -> Iterator[Metric]:
        """Return all metrics, counted or not."""
        return iter(self._registry.collect())

    def collect(self) -> Iterator[Metric]:
        engine, flow = self._engine, self._engine.flow
        bank, oldest = self._probes.reachability(flow.bank), flow.queue.oldest()
        waited, contacted = (
            0.0 if oldest is None else max(0.0, self._now - oldest),
            int(bank.reachable is not None),
        )
        for name, about, value in (
            ("reports", "Reports that the bank has not answered", len(flow.queue)),
            (
                "reports_on_disk_only",
                "Those of fairbank_agent_reports that are not in memory",
                flow.queue.on_disk_only,
            ),
            (
                "reports_retry_later",
                "Ends too early for the bank's clock; not in fairbank_agent_reports",
                len(flow.retry_later),
            ),
            ("oldest_report_seconds", "Age of the oldest report in memory", waited),
            (
                "bank_contacted",
                "1 after the first report or probe; bank_up means nothing before",
                contacted,
            ),
            (
                "bank_up",
                "1 if the bank answers and takes reports of this cluster; else 0",
                int(bool(bank.reachable)),
            ),
            (
                "bank_since_seconds",
                "Time since fairbank_agent_bank_up changed",
                max(0.0, self._now - bank.since),
            ),
            ("disk_ok", "1 if the outbox can be written", int(flow.disk_trouble is None)),
            ("senders", "Largest number of concurrent requests to the bank", flow.senders),
            ("senders_busy", "Requests to the bank that are under way", flow.busy),
            ("questions", "Prolog requests without a verdict", len(engine.questions)),
            ("runs", "Known runs that have not ended", len(flow.memory)),
            ("plugins", "Plug-ins that are connected", self.plugins),
        ):
            yield GaugeMetricFamily(f"fairbank_agent_{name}", about, value=value)
        for what, about, label in (
            ("messages", "Messages of the plug-in", "kind"),
            ("answers", "Verdicts, by result of the bank or policy of the partition", "how"),
            ("sent hold", "Holds sent to the bank, by result", "result"),
            ("sent adjust", "Changed limits sent, by result", "result"),
            ("sent complete", "Ends sent, by result", "result"),
            ("quarantined", "Frames of the plug-in that cannot be decoded", "kind"),
            ("incidents", "Incidents, as in fairbank agent status", "kind"),
            ("failures", "Requests to the bank that failed", "trouble"),
            (
                "failed probes",
                "Probes of the bank, without a report to send, that failed",
                "trouble",
            ),
        ):
            family = CounterMetricFamily(
                f"fairbank_agent_{what.replace(' ', '_')}", about, labels=[label]
            )
            for how, count in _counts(engine, what).items():
                family.add_metric([how], count)
            yield family
