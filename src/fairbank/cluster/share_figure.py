"""Fair share from day to day: how an association stood, as it is kept, and which of that is asked for."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairbank.values.time import Instant


class ShareFigure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How an association of a cluster stood on a day, which is counted from 1970 in UTC.

    `user` is empty for an account, `partition` where it is for all. `shares` None: the root has none; 2**31-1: those of its parent.
    `usage` is decayed, in billing-seconds; `effective` the part that counts as its own. `level` is None where it has none and where
    nothing was used, `factor` for accounts.
    """

    cluster: str
    day: int
    account: str
    user: str
    partition: str
    at: Instant
    shares: int | None
    norm_shares: float
    usage: float
    effective: float | None
    level: float | None
    factor: float | None


class ShareQuery(NamedTuple):
    """What of the figures is wanted: days from `since` up to, not including, `until`; of all clusters and accounts where None."""

    since: int
    until: int
    cluster: str | None = None
    accounts: frozenset[str] | None = None
    users: bool = False
    """Also of users; else of accounts only."""

    def has(self, figure: ShareFigure) -> bool:
        return (
            self.since <= figure.day < self.until
            and (self.cluster is None or figure.cluster == self.cluster)
            and (self.accounts is None or figure.account in self.accounts)
            and (self.users or not figure.user)
        )


def in_order(figure: ShareFigure) -> tuple[str, int, str, str, str]:
    """The order of figures: by cluster and day, then by association."""
    return figure.cluster, figure.day, figure.account, figure.user, figure.partition
