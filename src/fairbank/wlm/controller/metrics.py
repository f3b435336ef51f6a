"""Metrics of the controller for Prometheus, collected when it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairbank.wlm.controller.core_runner import CoreRunner

PREFIX = "fairbank_wlm_"
GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {  # description, labels
    "jobs": ("Jobs, and arrays that have not started, by state", ("state",)),
    "nodes": ("Nodes by state", ("state",)),
    "cpus": ("CPUs of all nodes", ()),
    "cpus_allocated": ("CPUs that jobs have", ()),
    "steps": ("Steps that run", ()),
    "state_writable": ("1 if the state can be stored, else 0", ()),
    "agent_connected": ("1 if the agent of the bank is connected, else 0", ()),
    "agent_messages": ("Messages to the agent that it has not acknowledged", ()),
    "accounts": ("Accounts of the bank that are known", ()),
    "up_seconds": ("Time since the start of the controller", ()),
}
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "jobs_submitted": ("Jobs and tasks of arrays that were accepted", ()),
    "jobs_started": ("Jobs and tasks of arrays that began", ()),
    "steps_ended": ("Steps that have ended, by state; batch scripts are none", ("state",)),
    "runs_ended": ("Runs that have ended, by state", ("state",)),
    "passes": ("Passes of the scheduler: main ones, and those with backfill", ("pass",)),
    "pass_seconds": ("Time for passes", ("pass",)),
    "requests": ("Requests of commands: ok, or the error", ("request", "result")),
    "request_seconds": ("Time for requests", ("request",)),
    "commits": ("Commits of the state", ()),
    "commit_seconds": ("Time for commits", ()),
}
Values = Mapping[tuple[str, ...], float]


class ControllerMetrics(Collector):
    """Metrics of one controller."""

    def __init__(self, runner: CoreRunner, is_agent_connected: Callable[[], bool]) -> None:
        self._runner, self._is_agent_connected = runner, is_agent_connected
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def page(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        for family, kinds, values in (
            (GaugeMetricFamily, GAUGES, self._gauges()),
            (CounterMetricFamily, COUNTERS, self._counters()),
        ):
            for name, (text, labels) in kinds.items():
                metric = family(PREFIX + name, text, labels=labels)
                for key, value in sorted(values[name].items()):
                    metric.add_metric(key, value)
                yield metric

    def _gauges(self) -> Mapping[str, Values]:
        runner, state = self._runner, self._runner.state
        allocated = sum(grant.cpus for node in state.nodes for _, grant in state.grants_on(node))
        conditions = Counter(node.state.value for node in state.table.nodes)
        return {
            "jobs": _by_word(Counter(job.state.base for job in state.jobs.values())),
            "nodes": _by_word(conditions),
            "cpus": {(): sum(node.cpus for node in state.configured.values())},
            "cpus_allocated": {(): allocated},
            "steps": {(): len(state.steps)},
            "state_writable": {(): runner.failure is None},
            "agent_connected": {(): self._is_agent_connected()},
            "agent_messages": {(): len(state.messages)},
            "accounts": {(): len(state.bank_accounts)},
            "up_seconds": {(): runner.up_seconds},
        }

    def _counters(self) -> Mapping[str, Values]:
        planner, totals = self._runner.planner, self._runner.totals
        passes = {("main",): planner.main, ("backfill",): planner.backfill}
        return {
            "jobs_submitted": {(): totals.submitted},
            "jobs_started": {(): totals.started},
            "steps_ended": _by_word(totals.ended_steps),
            "runs_ended": _by_word(totals.ended),
            "passes": {kind: one.count for kind, one in passes.items()},
            "pass_seconds": {kind: one.total / 1_000_000 for kind, one in passes.items()},
            "requests": dict(totals.requests.items()),
            "request_seconds": _by_word(totals.request_seconds),
            "commits": {(): totals.commits},
            "commit_seconds": {(): totals.commit_seconds},
        }


def _by_word(counts: Mapping[str, float]) -> Values:
    return {(word,): count for word, count in counts.items()}
