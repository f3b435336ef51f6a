"""What the server counts of itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fairbank.bank.ledger import Outcome
from fairbank.bank.refusal import Refusal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_WISHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


class Metrics:
    """One registry a server, so that two servers in one process do not count for each other."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("fairbank_requests", "Requests answered", ("method", "route", "status"), registry=self.registry)
        self._seconds = Histogram("fairbank_request_seconds", "Time to the answer", ("route",), buckets=_SECONDS, registry=self.registry)
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}  # looked up rather than found anew for each request
        self._batches = Histogram("fairbank_batch_wishes", "Wishes judged in one go", buckets=_WISHES, registry=self.registry)
        self._outcomes = Counter("fairbank_outcomes", "What came of wishes: granted, or why not", ("outcome",), registry=self.registry)
        self.waiting = Gauge("fairbank_wishes_waiting", "Wishes that wait to be judged", registry=self.registry)
        self.in_progress = Gauge("fairbank_requests_in_progress", "Requests being worked on", registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is the template, so that no client can make up labels."""
        counted = self._answered.get((method, route, status))
        if counted is None:
            counted = self._answered[method, route, status] = (self._requests.labels(method, route, status), self._seconds.labels(route))
        counted[0].inc()
        counted[1].observe(seconds)

    def judged(self, outcomes: Sequence[Outcome]) -> None:
        """A batch was judged."""
        self._batches.observe(len(outcomes))
        granted = 0
        for each in outcomes:
            if isinstance(each, Refusal):
                self._outcomes.labels(each.reason.name).inc()
            else:
                granted += 1
        if granted:
            self._outcomes.labels("granted").inc(granted)

    def page(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)
