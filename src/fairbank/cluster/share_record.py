"""Fair share from day to day: how an association stood, as it is kept, and which of that is asked for."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairbank.core.time import Instant


class ShareRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How an association of a cluster stood on a day, which is counted from 1970 in UTC.

    `user` is empty for an account, `partition` where it is for all. `shares` None: the root has none; ON_PARENT: those of its parent.
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


ShareKey = tuple[str, int, str, str, str]
"""Where a figure stands in their order: by cluster and day, then by association."""


class ShareQuery(NamedTuple):
    """What of the figures is wanted: days from `since` up to, not including, `until`; of all clusters and accounts where None.

    `users`: also of users, else of accounts only; `users_of`: of users only in these accounts. With `limit` a page: so many that come
    behind `after`, in the order of the store.
    """

    since: int
    until: int
    cluster: str | None = None
    accounts: frozenset[str] | None = None
    users: bool = False
    users_of: frozenset[str] | None = None
    after: ShareKey | None = None
    limit: int | None = None

    def matches(self, figure: ShareRecord) -> bool:
        return (
            self.since <= figure.day < self.until
            and (self.cluster is None or figure.cluster == self.cluster)
            and (self.accounts is None or figure.account in self.accounts)
            and (
                not figure.user
                or (self.users and (self.users_of is None or figure.account in self.users_of))
            )
            and (self.after is None or share_key(figure) > self.after)
        )


def share_key(figure: ShareRecord) -> ShareKey:
    return figure.cluster, figure.day, figure.account, figure.user, figure.partition
