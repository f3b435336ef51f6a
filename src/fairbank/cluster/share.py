"""Fair share of associations, as the bank keeps it by day."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.core.time import Instant


class Share(msgspec.Struct, frozen=True):
    """Fair share of an association.

    `user` is empty for an account, `partition` if the association is for all partitions. `shares`
    is None for the root and ON_PARENT for an association that uses its parent's shares. `usage` is
    decayed, in billing-seconds; `effective` is the fraction that counts as its own. `level` is None
    for the root and on the parent's shares, `factor` for accounts.
    """

    account: str
    user: str = ""
    partition: str = ""
    shares: int | None = None
    norm_shares: float = 0.0
    usage: float = 0.0
    effective: float | None = None
    level: float | None = None
    factor: float | None = None
    cluster: str = ""

    @property
    def shown_shares(self) -> str | int | None:
        """Shares as sshare prints them."""
        return "parent" if self.shares == ON_PARENT else self.shares


class ShareRecord(
    Share, forbid_unknown_fields=True, frozen=True, array_like=True, gc=False, kw_only=True
):
    """Fair share on a day, counted from 1970 in UTC. `level` is also None if nothing was used."""

    day: int
    at: Instant


ShareKey = tuple[str, int, str, str, str]
"""Sort key of a record: cluster, day, then association."""


class ShareQuery(NamedTuple):
    """Query for records from day `since` up to, not including, `until`.

    None selects all clusters or accounts. `users` also selects users, otherwise only accounts;
    `users_of` selects users only in these accounts. With `limit` the result is a page of the
    records after `after`, in the order of the store.
    """

    since: int
    until: int
    cluster: str | None = None
    accounts: frozenset[str] | None = None
    users: bool = False
    users_of: frozenset[str] | None = None
    after: ShareKey | None = None
    limit: int | None = None

    def is_match(self, figure: ShareRecord) -> bool:
        """Return whether a record is one that the query asks for."""
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
