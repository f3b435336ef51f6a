"""Fair share from day to day."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class ShareDay(Struct, frozen=True, kw_only=True):
    """How an association stood on a day (UTC), `at` the moment when Slurm was asked. `user` is null for an account, `partition` where it
    is for all; `shares` null for the root.

    `usage` is decayed, in billing-seconds; `effective` the part that counts as its own. `level` is null where it has none and where
    nothing was used, `factor` for accounts.
    """

    cluster: str
    day: str
    account: str
    user: str | None
    partition: str | None
    at: str
    shares: int | Literal["parent"] | None
    norm_shares: float
    usage: float
    effective: float | None
    level: float | None
    factor: float | None


class SharesKept(Struct, frozen=True, kw_only=True):
    """How many of the figures are kept now, or after a dry run would be, and of how many there were figures of that day already."""

    cluster: str
    day: str
    kept: int
    there: int
