"""Probe of the bank while there is nothing to report: is it there, and does it take our reports?

A probe is for status and metrics only. Jobs are decided, and reports sent, by what reports find;
so a probe never clears an error that a report found either.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from fairbank.agent.reports.bank_status import BankStatus, retry_pause
from fairbank.agent.reports.flow import ReportFlow
from fairbank.agent.reports.results import cannot_connect, not_a_bank
from fairbank.core.errors import FairbankError, Forbidden
from fairbank.rest.client import Client
from fairbank.rest.schemas.server import Myself

_log = logging.getLogger(__name__)

PROBE_SECONDS = 60.0
"""Time without a report after which a bank that answered is probed again."""

_CHECK_SECONDS = 0.25


class Reachability(NamedTuple):
    """Reachability of the bank; `reachable` is None before the first report or probe.

    `since` is in monotonic seconds.
    """

    reachable: bool | None
    since: float
    failures: int = 0
    trouble: FairbankError | None = None


class ProbeResults:
    """Results of the probes so far. `at` is the end of the last one, None before the first."""

    def __init__(self) -> None:
        self.at: float | None = None
        self.clusters: Set[str] = frozenset()
        self._last = Reachability(None, 0.0)

    def record(
        self, trouble: FairbankError | None, clusters: Set[str], bank: BankStatus, now: float
    ) -> bool:
        """Record a probe.

        Args:
            trouble: why the bank would take no reports, None if it would.
            clusters: the clusters that it was asked about.
            bank: the bank's status by reports.
            now: monotonic seconds.

        Returns:
            Whether the reachability changed.
        """
        before, reachable = self.reachability(bank), trouble is None
        changed = before.reachable is not reachable
        since = now if changed else before.since
        failures = 0 if reachable else before.failures + 1
        self._last = Reachability(reachable, since, failures, trouble)
        self.at, self.clusters = now, clusters
        return changed

    def reachability(self, bank: BankStatus) -> Reachability:
        """Return the reachability by reports and probes.

        An error that a report found stands until a report succeeds; else the later one counts.
        """
        contacted = bank.contacted_at
        if bank.up and self.at is not None and (contacted is None or contacted < self.at):
            return self._last
        if contacted is None:
            return Reachability(None, bank.since)
        since = bank.since
        if bank.up and self.at is not None:
            since = max(since, self._last.since if self._last.reachable else self.at)
        return Reachability(bank.up, since, bank.failures, bank.trouble)

    def next_at(self, bank: BankStatus) -> float:
        """Return when to probe next if no report is sent meanwhile."""
        contacted = max(bank.contacted_at or 0.0, self.at or 0.0)
        failures = self.reachability(bank).failures
        return contacted + (retry_pause(failures) if failures else PROBE_SECONDS)


def is_probe_due(flow: ReportFlow, probes: ProbeResults, clusters: Set[str], now: float) -> bool:
    """Return whether to probe: at first, for a new cluster, after a long silence, and after errors.

    Not while reports wait, which will find out; nor before a plug-in has named its cluster; nor
    after an error that only a report can clear.

    Args:
        flow: reports of the agent.
        probes: results so far.
        clusters: clusters of the plug-ins that are connected.
        now: monotonic seconds.
    """
    if not clusters or flow.busy or len(flow.queue) or not flow.bank.up:
        return False
    is_first = probes.reachability(flow.bank).reachable is None
    return is_first or not clusters <= probes.clusters or now >= probes.next_at(flow.bank)


class BankProbe:
    """Task that probes the bank as long as the agent lives.

    `connected_clusters` returns the clusters of the plug-ins that are connected.
    """

    def __init__(
        self,
        flow: ReportFlow,
        counts: Counter[tuple[str, str]],
        client: Client,
        connected_clusters: Callable[[], Set[str]],
    ) -> None:
        self.results = ProbeResults()
        self._flow, self._counts = flow, counts
        self._client, self._connected_clusters = client, connected_clusters
        self._thread = ThreadPoolExecutor(1, "probe")

    async def run(self) -> None:
        """Run until the task is cancelled."""
        clusters: Set[str] = frozenset()
        while True:
            # While slurmctld is away, those that it had.
            clusters = self._connected_clusters() or clusters
            if is_probe_due(self._flow, self.results, clusters, time.monotonic()):
                await self._probe(clusters)
            await asyncio.sleep(_CHECK_SECONDS)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _probe(self, clusters: Set[str]) -> None:
        loop = asyncio.get_running_loop()
        trouble = await loop.run_in_executor(self._thread, probe, self._client, clusters)
        bank = self._flow.bank
        changed = self.results.record(trouble, clusters, bank, time.monotonic())
        if trouble is not None:
            self._counts["failed probes", trouble.title] += 1
        if changed and trouble is not None:
            _log.warning("%s; %s", trouble.message, trouble.remedy or "the agent retries by itself")
        elif changed:
            _log.info("the bank answers, and takes reports of %s", ", ".join(sorted(clusters)))


def probe(client: Client, clusters: Set[str]) -> FairbankError | None:
    """Return why the bank would take no reports of these clusters; block until it has answered."""
    try:
        identity = read_identity(client.get("/whoami").get("data"))
    except FairbankError as trouble:
        return trouble
    except OSError as error:
        return cannot_connect(error)
    return next(filter(None, (missing_right(identity, each) for each in sorted(clusters))), None)


def read_identity(answer: object) -> Myself:
    """Return our identity at the bank. Raises Unavailable if it is no bank's answer."""
    try:
        return msgspec.convert(answer, Myself)
    except msgspec.ValidationError as error:
        raise not_a_bank(error) from error


def missing_right(identity: Myself, cluster: str) -> FairbankError | None:
    """Return the error if this identity may not report runs of the cluster, else None."""
    if cluster in identity.clusters or (identity.superuser and "write" in identity.scopes):
        return None
    return Forbidden(
        f"uid {identity.uid} may not report runs of cluster {cluster}",
        field="cluster",
        remedy=f"agents = [{identity.uid}] under [clusters.{cluster}] in the bank's settings, "
        f"or a token with the scope agent:{cluster}",
    )
