"""Advanced reservation: nodes set aside for a time, for certain users or for maintenance."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Reservation of nodes from `begin` up to, not including, `end`. Other jobs must not overlap
    it.

        users, accounts, groups  who may use it; the members of any of them
        maintenance              no job can use it
        flexible                 FLEX: its jobs may also run before, after and outside its nodes
        any_nodes                ANY_NODES: its jobs may also use other nodes
        ignores_jobs             IGNORE_JOBS: jobs may have run on its nodes when it was created
        overlapping              OVERLAP: its nodes may be those of other reservations
        partition, features      from which its nodes were chosen; empty: from any
        licenses                 that it keeps from other jobs, by name

    Raises InvalidInput, naming the field.
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
    groups: frozenset[str] = frozenset()
    ignores_jobs: bool = False
    overlapping: bool = False
    partition: str = ""
    features: str = ""
    licenses: Mapping[str, int] = {}

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput(
                "a reservation without a name", field="reservation.name", remedy="give it one"
            )
        if self.end <= self.begin:
            what = f"reservation {self.name} ends at {self.end} but begins at {self.begin}"
            raise InvalidInput(what, field="reservation.end", remedy="a later time")
        if not self.nodes:
            raise InvalidInput(
                f"reservation {self.name} has no nodes",
                field="reservation.nodes",
                remedy="name at least one",
            )

    def is_for(self, user: str, account: str) -> bool:
        """Return whether the user or account may use it; everyone may if none are named."""
        return not (self.users or self.accounts) or user in self.users or account in self.accounts

    def is_over(self, now: int) -> bool:
        """Return whether it has ended."""
        return self.end <= now

    def is_active(self, now: int) -> bool:
        """Return whether its jobs can start now."""
        return self.begin <= now < self.end
