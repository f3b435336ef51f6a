"""Requests about runs: reports of clusters, and refunds."""

from __future__ import annotations

from fairbank.bank.requests.base import BaseRequest
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Hold(BaseRequest, frozen=True, kw_only=True, tag="hold"):
    """Set the highest possible cost of a run aside when it starts.

    `chain` has the projects whose credit may be used: the run's own, then its parents. It is empty
    if no project has the reported `account`, or if that project was `removed`. `billing` is the
    price of one hour in SU (exact, as text), `limit_seconds` the time limit; both only explain a
    refusal, as `account` does. The job details are stored as reported.
    """

    run: Run
    chain: tuple[int, ...]
    resource: str
    owner: int
    amount: SuMinutes
    start: Instant
    until: Instant
    partition: str = ""
    account: str | None = None
    removed: int | None = None
    billing: str | None = None
    limit_seconds: int | None = None
    job_details: JobDetails | None = None


class Adjust(BaseRequest, frozen=True, kw_only=True, tag="adjust"):
    """Change a hold to `amount`, with deadline `until`, after the time limit of a running job
    changed.

    `start` is as reported. The fields from `chain` on are as in Hold: they name the payer of a run
    without a hold; otherwise owner and project must be those of the hold, if they are given.
    `priced_in` is as in Charge.
    """

    run: Run
    amount: SuMinutes
    until: Instant
    start: Instant | None = None
    chain: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    job_details: JobDetails | None = None
    priced_in: str | None = None


class Ending(BaseRequest, frozen=True, kw_only=True):
    """End of a run.

    The fields from `chain` on, as in Hold, name the payer if the hold never arrived; otherwise
    owner and project must be those of the hold, if they are given.
    """

    run: Run
    ended: Instant
    outcome: str
    elapsed_seconds: int
    chain: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    start: Instant | None = None
    partition: str = ""
    job_details: JobDetails | None = None


class Charge(Ending, frozen=True, kw_only=True, tag="charge"):
    """End of a run that cost `amount`, by the weights of partition `priced_in` if that is known."""

    amount: SuMinutes
    priced_in: str | None = None


class Release(Ending, frozen=True, kw_only=True, tag="release"):
    """End of a run that costs nothing: a node failed, or the run never started."""

    elapsed_seconds: int = 0


class Unpriced(Ending, frozen=True, kw_only=True, tag="unpriced"):
    """End of a run whose cost cannot be computed: `why`. It is refused, and counts when it is sent
    again.
    """

    why: str


class Lapse(BaseRequest, frozen=True, kw_only=True, tag="lapse"):
    """Release a hold whose deadline has passed without a report. Only upkeep sends it."""

    run: Run


class Refund(BaseRequest, frozen=True, kw_only=True, tag="refund"):
    """Refund `amount` of a run's charge; None refunds all that is left of it."""

    run: Run
    amount: SuMinutes | None = None
