"""Metrics of the server for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fairbank.bank.refusals import Refusal
from fairbank.bank.rules import Outcome

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_BATCH_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


class ServerMetrics:
    """Metrics of one server. Each has its own registry: a process of the tests has several."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "fairbank_requests",
            "HTTP requests answered",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "fairbank_request_seconds",
            "Time until the response to an HTTP request",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_progress = Gauge(
            "fairbank_requests_in_progress", "HTTP requests in work", registry=registry
        )
        self._batches = Histogram(
            "fairbank_ledger_batch_size",
            "Requests to the ledger that were applied in one transaction",
            buckets=_BATCH_SIZES,
            registry=registry,
        )
        self._outcomes = Counter(
            "fairbank_ledger_outcomes",
            "Requests to the ledger, by outcome: granted, or the reason of the refusal",
            ("outcome",),
            registry=registry,
        )
        self.queued = Gauge(
            "fairbank_ledger_requests_queued",
            "Requests to the ledger that wait in the write queue",
            registry=registry,
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered HTTP request.

        Args:
            route: the template of the path, so that no client can create labels.
            seconds: time until the response.
        """
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def count_batch(self, outcomes: Sequence[Outcome]) -> None:
        """Count a batch of requests to the ledger."""
        self._batches.observe(len(outcomes))
        names = Tally(
            outcome.reason.name if isinstance(outcome, Refusal) else "granted"
            for outcome in outcomes
        )
        for name, count in names.items():
            self._outcomes.labels(name).inc(count)

    def page(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
