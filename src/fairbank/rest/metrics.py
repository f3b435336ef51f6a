"""What the server counts of itself, for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from fairbank.bank.refusals import Refusal
from fairbank.bank.rules import Outcome

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_WISHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


class Metrics:
    """One registry a server, so that two servers in one process do not count for each other."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answered = _Requests(self.registry).answered
        self._batches = Histogram(
            "fairbank_batch_wishes",
            "Requests judged in one go",
            buckets=_WISHES,
            registry=self.registry,
        )
        self._outcomes = Counter(
            "fairbank_outcomes",
            "What came of requests: granted, or why not",
            ("outcome",),
            registry=self.registry,
        )
        self.waiting = Gauge(
            "fairbank_wishes_waiting", "Requests that wait to be judged", registry=self.registry
        )
        self.in_progress = Gauge(
            "fairbank_requests_in_progress", "Requests being worked on", registry=self.registry
        )

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


class _Requests(Collector):
    """Requests answered and their times, in tallies of our own: the library's locks and checks take as long as to read a report.

    One thread counts, the event loop's; what others read meanwhile may lack the last one.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts: Tally[tuple[str, str, int]] = Tally()
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._buckets: dict[str, list[int]] = {}
        registry.register(self)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is the template, so that no client can make up labels."""
        self._counts[method, route, status] += 1
        self._sums[route] += seconds
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(_SECONDS) + 1)
        buckets[bisect_left(_SECONDS, seconds)] += 1

    def collect(self) -> Iterator[Metric]:
        """What Prometheus is told, each bucket with those below it."""
        requests = CounterMetricFamily(
            "fairbank_requests", "Requests answered", labels=("method", "route", "status")
        )
        for (method, route, status), count in list(self._counts.items()):
            requests.add_metric((method, route, str(status)), count)
        yield requests
        times = HistogramMetricFamily(
            "fairbank_request_seconds", "Time to the answer", labels=("route",)
        )
        for route, buckets in list(self._buckets.items()):
            bounds = [*map(str, map(float, _SECONDS)), "+Inf"]
            times.add_metric(
                (route,),
                list(zip(bounds, accumulate(buckets), strict=True)),
                sum_value=self._sums[route],
            )
        yield times
