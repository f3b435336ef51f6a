"""Reference page of the server's metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from fairbank.rest.metrics import ServerMetrics
from fairbank.wlm.controller.metrics import COUNTERS, GAUGES, PREFIX

HEAD = """\
# Metrics

`GET /metrics` answers staff in the text format of Prometheus. The metrics of the agent are on
[its own page](agent.md).

A request to the ledger is a hold, a charge, a deposit and so on; an HTTP request may carry many.
`outcome` is `granted` or a [reason of a refusal](refusals.md), `route` the path with its
parameters' names.

| Metric | Type | Labels | Meaning |
| --- | --- | --- | --- |
"""


WORKLOAD_MANAGER = """
## Workload manager

The controller of the [embedded workload manager](wlm.md) answers `GET /metrics` and `GET /health`
at `metrics.sock` in the directory of the cluster, and at a port of 127.0.0.1 if
[`metrics_port`](wlm-settings.md) is set. Totals count from its start.

| Metric | Type | Labels | Meaning |
| --- | --- | --- | --- |
"""


def metrics_page() -> str:
    """Return the metrics of the server, from its own registry, and of the workload manager."""
    lines = []
    for metric in vars(ServerMetrics()).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            (family,) = metric.describe()
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = ", ".join(f"`{label}`" for label in metric._labelnames)
            lines.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    lines += WORKLOAD_MANAGER.splitlines()
    for suffix, kind, families in (("", "gauge", GAUGES), ("_total", "counter", COUNTERS)):
        for word, (text, names) in families.items():
            labels = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| `{PREFIX}{word}{suffix}` | {kind} | {labels} | {text} |")
    return HEAD + "\n".join(lines) + "\n"
