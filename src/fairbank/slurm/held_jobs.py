"""Release of jobs that the plug-in held for lack of credit, once the bank would pay for them.

Only where the site wants that: docs/decisions/0013. Few jobs are released at a time, each only a
few times.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from fairbank.slurm.commands import SlurmCommands
    from fairbank.slurm.parsers.squeue import HeldJob

_log = logging.getLogger(__name__)

QUOTES_MAX = 100
"""Jobs for which the bank is asked for a price in one round."""

RELEASES_MAX = 5
"""Releases of one job. A job that is held again each time lacks something that a quote does not
show; an operator has to check it."""

FORGOTTEN_SECONDS = 7 * 24 * 3_600.0
"""Time for which a job is remembered after its hold: it may be held again when it should start."""

ERRORS_MAX = 3
"""Errors after which the rest of a round is left for the next: each may have cost a time-out."""


class HoldQuote(msgspec.Struct, frozen=True):
    """Price of a job and available credit of the allocation that would pay, in SU-minutes."""

    amount: int
    allocation: int | None
    available: int
    fits: bool


class HeldJobRecord(msgspec.Struct):
    """Times at which a job was last held and last quoted (None: never), and its releases so far."""

    last_held: float
    last_quoted: float | None = None
    releases: int = 0


class ReleaseSchedule:
    """Schedule of quotes: the jobs that have waited longest come first.

    Args:
        again: seconds between two quotes of the same job.
    """

    def __init__(self, again: float) -> None:
        self._again = again
        self._records: dict[str, HeldJobRecord] = {}

    def due(self, held: Iterable[HeldJob], now: float) -> list[HeldJob]:
        """Return the jobs to quote now, at most QUOTES_MAX, and count them as quoted."""
        waiting: list[tuple[float, HeldJob]] = []
        for job in held:
            record = self._records.setdefault(job.name, HeldJobRecord(now))
            record.last_held = now
            waited = record.last_quoted is None or now - record.last_quoted >= self._again
            if waited and record.releases < RELEASES_MAX:
                waiting.append((record.last_quoted or 0.0, job))
        self._records = {
            name: record
            for name, record in self._records.items()
            if now - record.last_held < FORGOTTEN_SECONDS
        }
        jobs = [job for _, job in sorted(waiting, key=lambda pair: pair[0])[:QUOTES_MAX]]
        for job in jobs:
            self._records[job.name].last_quoted = now
        return jobs

    def put_back(self, job: HeldJob) -> None:
        """Make a job due at once: it was not quoted or not released after all."""
        self._records[job.name].last_quoted = None

    def count_release(self, job: HeldJob) -> None:
        """Count a release of the job."""
        self._records[job.name].releases += 1


def affordable_jobs(quotes: Sequence[tuple[HeldJob, HoldQuote]]) -> list[HeldJob]:
    """Return the jobs that can all be paid together, in this order, each by its own allocation."""
    reserved: Counter[int | None] = Counter()
    jobs: list[HeldJob] = []
    for job, quote in quotes:
        if quote.fits and reserved[quote.allocation] + quote.amount <= quote.available:
            reserved[quote.allocation] += quote.amount
            jobs.append(job)
    return jobs


class Releaser:
    """Rounds of releases.

    Args:
        client: the client of a bank that shows it all projects.
        slurm: commands of a user who may release jobs.
        again: seconds between two quotes of the same job.
    """

    def __init__(self, client: Client, slurm: SlurmCommands, again: float) -> None:
        self._client, self._slurm, self._schedule = client, slurm, ReleaseSchedule(again)
        self._error: FairbankError | None = None
        self._released = 0

    def run_round(self, now: float) -> None:
        """Release what can be paid now. An error is logged once, until another one replaces it."""
        try:
            self._round(now)
        except FairbankError as error:
            self._log_error(error)
        except (OSError, KeyError, TypeError, ValueError) as error:
            self._log_error(
                InvalidInput(
                    f"the answer is not understood: {error!r}",
                    remedy="check that the bank is as new as this agent",
                )
            )
        else:
            self._error = None

    def _round(self, now: float) -> None:
        """Release each job by itself, so that one that fails delays no other.

        Raises the first error at the end of the round.
        """
        held = self._slurm.held_jobs()
        quotes, errors = self._quotes(self._schedule.due(held.rows, now))
        for job in affordable_jobs(quotes):
            if len(errors) >= ERRORS_MAX:
                self._schedule.put_back(job)
                continue
            try:
                self._slurm.release(job.name)
            except FairbankError as error:
                errors.append(error)
                continue
            self._schedule.count_release(job)
            self._released += 1
            _log.info("job %s of %s is released: there is credit for it now", job.name, job.account)
        errors += [
            InvalidInput(f"cannot read {line}", remedy="check the job with squeue")
            for line in held.unreadable
        ]
        if errors:
            raise errors[0]

    def _quotes(
        self, due: Sequence[HeldJob]
    ) -> tuple[list[tuple[HeldJob, HoldQuote]], list[FairbankError]]:
        """Return the bank's quotes up to its first error. The rest is due in the next round."""
        quotes: list[tuple[HeldJob, HoldQuote]] = []
        for count, job in enumerate(due, 1):
            try:
                quote = self._quote(job)
            except FairbankError as error:
                for unquoted in due[count:]:
                    self._schedule.put_back(unquoted)
                return quotes, [error]
            if quote is not None:
                quotes.append((job, quote))
        return quotes, []

    def _quote(self, job: HeldJob) -> HoldQuote | None:
        """Return the bank's quote, or None for a job that it cannot price."""
        request = {
            "cluster": self._slurm.cluster,
            "account": job.account,
            "partition": job.partition,
            "qos": job.qos,
            "tres": job.tres,
            "time_limit": job.limit_seconds,
            "owner_uid": job.uid,
        }
        try:
            quote = self._client.post("/quote", request)["data"]
        except (InvalidInput, NotFound):
            return None
        return HoldQuote(quote["amount"], quote["allocation"], quote["available"], quote["fits"])

    def _log_error(self, error: FairbankError) -> None:
        if self._error is None or self._error.message != error.message:
            _log.warning(
                "jobs that can be paid now are not released: %s; try: %s",
                error.message,
                error.remedy,
            )
        self._error = error

    def status(self) -> dict[str, Any]:
        """Return the number of releases and the last error, as JSON."""
        error = self._error
        return {
            "released": self._released,
            "error": None if error is None else error.message,
            "remedy": None if error is None else error.remedy,
        }
