"""Reference page of the server's metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from fairbank.rest.metrics import ServerMetrics

HEAD = """\
# Metrics of the server

`GET /metrics` answers staff in the text format of Prometheus. The metrics of the agent are on
[its own page](agent.md).

A request to the ledger is a hold, a charge, a deposit and so on; an HTTP request may carry many.
`outcome` is `granted` or a [reason of a refusal](refusals.md), `route` the path with its
parameters' names.

| Metric | Type | Labels | Meaning |
| --- | --- | --- | --- |
"""


def metrics_page() -> str:
    """Return the table of the metrics, from the server's own registry."""
    lines = []
    for metric in vars(ServerMetrics()).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            (family,) = metric.describe()
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = ", ".join(f"`{label}`" for label in metric._labelnames)
            lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return HEAD + "\n".join(lines) + "\n"
