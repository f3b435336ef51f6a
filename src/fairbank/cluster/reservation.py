"""Advanced reservations: nodes that are set aside for a time, for some people or for maintenance."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import Malformed
from fairbank.core.time import Instant


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Who may use these nodes from `begin` up to, not including, `end`; nobody else's job may overlap with it.

    users, accounts       who may ask for it; those of either, where both are named
    maintenance           for nobody: the nodes are worked on
    flexible              its jobs may also run before and after it and beyond its nodes (FLEX)
    any_nodes             its jobs run beyond its nodes too (ANY_NODES)

    Raises Malformed, naming the field.
    """

    name: str
    nodes: tuple[str, ...]
    begin: Instant
    end: Instant
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    maintenance: bool = False
    flexible: bool = False
    any_nodes: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise Malformed(
                "a reservation without a name", field="reservation.name", remedy="give it one"
            )
        if self.end <= self.begin:
            what = f"reservation {self.name} ends at {self.end}, which is not after it begins at {self.begin}"
            raise Malformed(what, field="reservation.end", remedy="a later time")
        if not self.nodes:
            raise Malformed(
                f"reservation {self.name} has no nodes",
                field="reservation.nodes",
                remedy="name at least one",
            )

    def is_for(self, user: str, account: str) -> bool:
        """Whether a job of theirs may ask for it: where nobody is named, anybody."""
        return not (self.users or self.accounts) or user in self.users or account in self.accounts

    def is_over(self, now: int) -> bool:
        """Whether it is past."""
        return self.end <= now

    def is_active(self, now: int) -> bool:
        """Whether its jobs may start."""
        return self.begin <= now < self.end
