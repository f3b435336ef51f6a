"""Status of the bank as reports and probes find it: up or down, retries, number of senders.

Jobs are decided, and reports sent, by what reports find. A probe is sent while there is nothing to
report. It is for status and metrics, and it stands in for a report while the bank is down: else
nothing would find out that the bank is back. It never clears an error while a report waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput
from fairbank.rest.client import Client
from fairbank.rest.client.bulk_reports import cannot_connect, not_a_bank
from fairbank.rest.schemas.answers import Myself

if TYPE_CHECKING:
    from fairbank.agent.reports.flow import ReportFlow

_log = logging.getLogger(__name__)

STABLE_SECONDS = 2.0  # of answers, before the agent relies on the bank again
GROW_SECONDS = 0.02  # wait of a report that adds a sender
SHRINK_SECONDS = 5.0  # idle time that removes a sender

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds

PROBE_SECONDS = 60.0  # without a report, after which a bank that answered is probed again
_CHECK_SECONDS = 0.25

_SPLIT_AFTER, _DROP_AFTER = 3, 6  # attempts; server errors may pass by themselves


class SenderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of concurrent requests to the bank, and size of a request.

    `batch`: reports in one request. `gather`: seconds that a report waits for others to go with it
    when no job waits for its result, such as an end.
    """

    minimum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    maximum: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    batch: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1_000
    gather: Annotated[float, msgspec.Meta(ge=0, le=60, extra={"unit": "seconds"})] = 0.1


def resize_pool(size: int, limits: SenderSettings, *, waited: float, idle: float) -> int:
    """Return the new number of senders.

    Args:
        size: present number.
        limits: smallest and largest number.
        waited: seconds that a report has waited beyond its time.
        idle: seconds for which all senders have been idle.
    """
    if waited >= GROW_SECONDS and size < limits.maximum:
        return size + 1
    if idle >= SHRINK_SECONDS and size > limits.minimum:
        return size - 1
    return min(max(size, limits.minimum), limits.maximum)


def retry_pause(failures: int, longest: float = LONGEST_PAUSE) -> float:
    """Return the seconds until the next request after so many failures in a row."""
    # The exponent is capped because 2 ** 10_000 after a long outage would be slow.
    return float(min(longest, FIRST_PAUSE * 2 ** min(failures - 1, 16))) if failures else 0.0


def after_failure(
    error: FairbankError, size: int, attempts: int
) -> Literal["retry", "split", "drop"]:
    """Return what to do with the reports of a request that failed as a whole.

    A bank that is down or denies access is retried without end: nothing is wrong with the reports.
    One report that the bank cannot decode, or fails at again and again, is found by halving.

    Args:
        size: reports in it.
        attempts: requests so far that carried its first report.
    """
    if isinstance(error, InvalidInput):
        return "split" if size > 1 else "drop"
    # The base class itself is a server error (HTTP 500); its subclasses say what is wrong.
    if type(error) is not FairbankError or attempts < _SPLIT_AFTER:
        return "retry"
    if size > 1:
        return "split"
    return "drop" if attempts >= _DROP_AFTER else "retry"


class BankStatus:
    """State of the bank: does it answer reports, and since when; times are monotonic seconds.

    Invariant: `down_since` is None exactly while `error` is None and `failures` is 0.
    `contacted_at` is the time of the last result or failure, `answered_at` of the last result, None
    before the first. `silent_since` is the arrival of the first question that waited in vain since
    then: a bank that accepts requests and answers none is up until a request times out.
    """

    def __init__(self, now: float) -> None:
        self.since = self.retry_at = now
        self.down_since: float | None = None
        self.error: FairbankError | None = None
        self.failures = 0
        self.contacted_at: float | None = None
        self.answered_at: float | None = None
        self.silent_since: float | None = None

    @property
    def is_up(self) -> bool:
        return self.down_since is None

    @property
    def outage_since(self) -> float | None:
        """Start of the outage in which questions wait in vain; None if there is none."""
        starts = [at for at in (self.down_since, self.silent_since) if at is not None]
        return min(starts, default=None)

    def record_success(self, now: float) -> bool:
        """Record an answer; return whether the bank was down before."""
        was_down = not self.is_up
        if was_down:
            self.since = now
        self.contacted_at = self.answered_at = self.retry_at = now
        self.silent_since = None
        self.down_since, self.error, self.failures = None, None, 0
        return was_down

    def record_failure(self, error: FairbankError, now: float) -> bool:
        """Record a failed request; return whether the bank was up before."""
        was_up = self.is_up
        if was_up:
            self.down_since = self.since = now
        self.contacted_at, self.error = now, error
        self.failures += 1
        self.retry_at = now + retry_pause(self.failures)
        return was_up

    def record_no_answer(self, received: float) -> bool:
        """Record that a question that arrived at `received` waited in vain; return whether it is
        news.
        """
        if self.answered_at is not None and self.answered_at >= received:
            return False  # the bank has answered others meanwhile
        is_news = self.silent_since is None or received < self.silent_since
        if is_news:
            self.silent_since = received
        return is_news

    def is_stable(self, now: float) -> bool:
        """Return whether the bank has answered long enough to be relied on."""
        return self.outage_since is None and now - self.since >= STABLE_SECONDS


class Reachability(NamedTuple):
    """Reachability of the bank; `reachable` is None before the first report or probe.

    `since` is in monotonic seconds.
    """

    reachable: bool | None
    since: float
    failures: int = 0
    error: FairbankError | None = None


class ProbeResults:
    """Results of the probes so far. `at` is the end of the last one, None before the first."""

    def __init__(self) -> None:
        self.at: float | None = None
        self.clusters: Set[str] = frozenset()
        self._last = Reachability(None, 0.0)

    def record(
        self, error: FairbankError | None, clusters: Set[str], flow: ReportFlow, now: float
    ) -> bool:
        """Record a probe.

        Args:
            error: why the bank would accept no reports, None if it would.
            clusters: the clusters that it was asked about.
            flow: reports of the agent.
            now: monotonic seconds.

        Returns:
            Whether the reachability changed.
        """
        bank = flow.bank
        before, reachable = self.reachability(bank), error is None
        changed = before.reachable is not reachable
        since = now if changed else before.since
        failures = 0 if reachable else before.failures + 1
        self._last = Reachability(reachable, since, failures, error)
        self.at, self.clusters = now, clusters
        if not bank.is_up and flow.is_idle:
            if error is None:
                bank.record_success(now)
            else:
                bank.record_failure(error, now)
        return changed

    def reachability(self, bank: BankStatus) -> Reachability:
        """Return the reachability by reports and probes.

        An error that a report found stands until a report succeeds; else the later one counts.
        """
        contacted = bank.contacted_at
        if bank.is_up and self.at is not None and (contacted is None or contacted < self.at):
            return self._last
        if contacted is None:
            return Reachability(None, bank.since)
        since = bank.since
        if bank.is_up and self.at is not None:
            since = max(since, self._last.since if self._last.reachable else self.at)
        elif self._last.reachable is False and (bank.answered_at or 0.0) <= self._last.since:
            since = min(since, self._last.since)  # a probe found the same outage earlier
        return Reachability(bank.is_up, since, bank.failures, bank.error)

    def is_due(self, flow: ReportFlow, clusters: Set[str], now: float) -> bool:
        """Return whether to probe: at first, for a new cluster, after a pause, and after errors.

        Not while reports wait, which will find out; nor before a plug-in has named its cluster.

        Args:
            flow: reports of the agent.
            clusters: clusters of the plug-ins that are connected.
            now: monotonic seconds.
        """
        bank = flow.bank
        if not clusters or not flow.is_idle:
            return False
        if not bank.is_up:
            return now >= bank.retry_at
        current = self.reachability(bank)
        if current.reachable is None or not clusters <= self.clusters:
            return True
        pause = retry_pause(current.failures) if current.failures else PROBE_SECONDS
        return now >= max(bank.contacted_at or 0.0, self.at or 0.0) + pause


class BankProbe:
    """Task that probes the bank as long as the agent lives."""

    def __init__(
        self,
        flow: ReportFlow,
        client: Client,
        counts: Counter[tuple[str, ...]],
        connected_clusters: Callable[[], Set[str]],
    ) -> None:
        """Prepare the task.

        Args:
            flow: reports of the agent.
            counts: counts of the agent, for the errors.
            connected_clusters: returns the clusters of the plug-ins that are connected.
        """
        self.results = ProbeResults()
        self._flow, self._client, self._counts = flow, client, counts
        self._connected_clusters = connected_clusters
        self._thread = ThreadPoolExecutor(1, "probe")

    async def run(self) -> None:
        """Run until the task is cancelled."""
        clusters: Set[str] = frozenset()
        while True:
            # While slurmctld is away, those that it had.
            clusters = self._connected_clusters() or clusters
            if self.results.is_due(self._flow, clusters, time.monotonic()):
                await self._probe(clusters)
            await asyncio.sleep(_CHECK_SECONDS)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _probe(self, clusters: Set[str]) -> None:
        loop = asyncio.get_running_loop()
        error = await loop.run_in_executor(self._thread, probe, self._client, clusters)
        changed = self.results.record(error, clusters, self._flow, time.monotonic())
        if error is not None:
            self._counts["probe_errors", error.title] += 1
        if changed and error is not None:
            _log.warning("%s; %s", error.message, error.remedy or "the agent retries by itself")
        elif changed:
            _log.info("the bank answers, and accepts reports of %s", ", ".join(sorted(clusters)))


def probe(client: Client, clusters: Set[str]) -> FairbankError | None:
    """Return why the bank would accept no reports of these clusters; block until it answered."""
    try:
        identity = read_identity(client.get("/whoami").get("data"))
    except FairbankError as error:
        return error
    except OSError as error:
        return cannot_connect(error)
    errors = (missing_right(identity, cluster) for cluster in sorted(clusters))
    return next((error for error in errors if error is not None), None)


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
