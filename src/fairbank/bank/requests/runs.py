"""Requests about runs: what clusters report of them, and refunds."""

from __future__ import annotations

from fairbank.bank.requests.base import BaseRequest
from fairbank.cluster.job import Run
from fairbank.cluster.job_details import JobDetails
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Hold(BaseRequest, frozen=True, kw_only=True, tag="hold"):
    """A run starts: set its highest possible cost aside.

    `line` names the projects whose credit may be drawn on, the run's own first, then its parents; it is empty where no
    project has the `account` that was reported, or the one that has it was `removed`. `billing` is the price of one hour in SU (as
    text, exact) and `limit_seconds` the time limit: like `account` only to explain a refusal. `job details` are kept as they are told.
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
    """A running job's time limit changed: its hold becomes `amount` and lapses at `until`.

    `start` is the one reported. Fields from `line` on as in Hold: they tell whose run it is, where it has no hold; else owner and
    project must be those of the hold, where they are told. `priced_in` as in Charge.
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
    """A run ended. The fields from `line` on, as in Hold, say who pays only when its hold never arrived; else owner and project
    must be those of the hold, where they are told."""

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
    """It cost `amount`; `priced_in` is the partition whose weights say so, None where none was asked."""

    amount: SuMinutes
    priced_in: str | None = None


class Release(Ending, frozen=True, kw_only=True, tag="release"):
    """It costs nothing: a node failed, or it never ran."""

    elapsed_seconds: int = 0


class Unpriced(Ending, frozen=True, kw_only=True, tag="unpriced"):
    """The bank cannot tell what it cost: `why`. It is refused and kept, to count when it is said again."""

    why: str


class Lapse(BaseRequest, frozen=True, kw_only=True, tag="lapse"):
    """Nothing was heard of a run until its hold's deadline: give the credit back. Only the sweep asks this."""

    run: Run


class Refund(BaseRequest, frozen=True, kw_only=True, tag="refund"):
    """Give back `amount` of what a run was charged; None gives back all that is left of it."""

    run: Run
    amount: SuMinutes | None = None
