"""What the agent counts of itself: for Prometheus, and for `fairbank agent status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.looking import Looks

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


def status(core: Core, looks: Looks, now: float, ahead: float) -> dict[str, Any]:
    """All that a person may want to know, as JSON. Instants are seconds since 1970."""
    bank, oldest = looks.standing(core.bank), core.queue.oldest()
    return {
        "outbox": {
            "letters": len(core.queue),
            "on_disk_only": core.queue.on_disk_only,
            "later": len(core.later),
            "oldest_seconds": None if oldest is None else max(0.0, round(now - oldest, 3)),
            "trouble": core.disk_trouble,
        },
        "bank": {
            "reachable": bank.reachable,
            "since": int(bank.since + ahead),
            "failures": bank.failures,
            "trouble": None if bank.trouble is None else bank.trouble.message,
            "remedy": None if bank.trouble is None else bank.trouble.remedy,
        },
        "senders": {
            "size": core.senders,
            "busy": core.busy,
            "minimum": core.limits.minimum,
            "maximum": core.limits.maximum,
        },
        "questions": len(core.questions),
        "runs": len(core.memory),
        "answers": _tallied(core, "answers"),
        "heard": _tallied(core, "heard"),
        "told": {kind: _tallied(core, f"told {kind}") for kind in ("hold", "adjust", "complete")},
        "failures": _tallied(core, "failures"),
        "mishaps": core.mishaps.told(ahead),
    }


def _tallied(core: Core, what: str) -> dict[str, int]:
    return {how: count for (each, how), count in sorted(core.tally.items()) if each == what}


class Metrics(Collector):
    """The same for Prometheus, read off when it asks."""

    def __init__(self, core: Core, looks: Looks) -> None:
        self._core, self._looks = core, looks
        self.plugins = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._waits = Histogram(
            "fairbank_agent_answer_seconds",
            "From a question to its verdict",
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
        """All that there is, counted or not."""
        return iter(self._registry.collect())

    def collect(self) -> Iterator[Metric]:
        core = self._core
        bank, oldest = self._looks.standing(core.bank), core.queue.oldest()
        waited, asked = (
            0.0 if oldest is None else max(0.0, self._now - oldest),
            int(bank.reachable is not None),
        )
        for name, about, value in (
            ("letters", "Reports that the bank has not answered", len(core.queue)),
            (
                "letters_on_disk_only",
                "Those of fairbank_agent_letters that are not in memory",
                core.queue.on_disk_only,
            ),
            (
                "letters_later",
                "Ends that the bank's clock finds too early, told again later; not among letters",
                len(core.later),
            ),
            ("oldest_letter_seconds", "How long the oldest report in memory has waited", waited),
            (
                "bank_asked",
                "Whether the bank was asked yet; before that bank_up and bank_since_seconds say nothing",
                asked,
            ),
            (
                "bank_up",
                "Whether the bank answers, and takes reports of this cluster; 0 until it was asked",
                int(bool(bank.reachable)),
            ),
            (
                "bank_since_seconds",
                "For how long fairbank_agent_bank_up has been what it is",
                max(0.0, self._now - bank.since),
            ),
            ("disk_ok", "Whether the outbox can be written", int(core.disk_trouble is None)),
            ("senders", "Requests to the bank that may be under way at once", core.senders),
            ("senders_busy", "Requests to the bank that are under way", core.busy),
            ("questions", "Questions that are not answered yet", len(core.questions)),
            ("runs", "Runs that are known and have not ended", len(core.memory)),
            ("plugins", "Plug-ins that are connected", self.plugins),
        ):
            yield GaugeMetricFamily(f"fairbank_agent_{name}", about, value=value)
        for what, about, label in (
            ("heard", "Frames of the plug-in", "kind"),
            (
                "answers",
                "Questions settled, by how: the bank's word or the policy of the partition",
                "how",
            ),
            ("told hold", "Holds told to the bank, by what came of them", "came"),
            ("told adjust", "Changed limits told, by what came of them", "came"),
            ("told complete", "Ends told, by what came of them", "came"),
            ("aside", "Frames of the plug-in that were not understood, and put aside", "kind"),
            ("mishaps", "What a person should look at, as fairbank agent status tells it", "what"),
            ("failures", "Requests to the bank that failed", "trouble"),
            (
                "looks",
                "Looks at the bank, while there was nothing to tell it, that found it away",
                "trouble",
            ),
        ):
            family = CounterMetricFamily(
                f"fairbank_agent_{what.replace(' ', '_')}", about, labels=[label]
            )
            for how, count in _tallied(core, what).items():
                family.add_metric([how], count)
            yield family
