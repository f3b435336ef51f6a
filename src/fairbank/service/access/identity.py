"""Who asks: an authenticated user, perhaps acting as another, with what the bank knows of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.project import Role
from fairbank.bank.query import Sight
from fairbank.core.errors import Forbidden
from fairbank.core.time import Instant

FULL = frozenset({"read", "write"})
"""The scopes of somebody who signed in as themselves, not by a token."""


class Staff(msgspec.Struct, frozen=True):
    """The people and agents named in the settings."""

    superusers: frozenset[int] = frozenset()
    admins: frozenset[int] = frozenset()
    agents: Mapping[int, frozenset[str]] = {}


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """`actor` signed in; `uid` is whose rights count: the actor's own, or those of the user acted as.

    `roles` are the uid's roles in projects, `clusters` those it may report runs for, `scopes` what the credential allows,
    `until` when it ends, `token` its number; None where the user signed in as themselves.
    """

    actor: int
    uid: int
    superuser: bool = False
    admin: bool = False
    clusters: frozenset[str] = frozenset()
    roles: Mapping[int, Role] = {}
    scopes: frozenset[str] = FULL
    until: Instant | None = None
    token: int | None = None

    @property
    def acting_as(self) -> int | None:
        return self.uid if self.uid != self.actor else None

    @property
    def sight(self) -> Sight:
        """What this asker may see: staff everything, others their projects and what they own."""
        if self.superuser or self.admin:
            return Sight(everything=True)
        return Sight(uid=self.uid, projects=frozenset(self.roles))


def asker_of(
    actor: int,
    staff: Staff,
    roles: Mapping[int, Role],
    *,
    acting_as: int | None = None,
    scopes: frozenset[str] = FULL,
    until: Instant | None = None,
    token: int | None = None,
) -> Asker:
    """The asker behind a sign-in; `roles` are those of the user whose rights count.

    Acting as another user leaves one's own rights behind. Raises Forbidden when the actor may not, or when it would
    give an admin the rights of a superuser.
    """
    uid = actor if acting_as is None else acting_as
    if uid != actor:
        if actor not in staff.superusers and actor not in staff.admins:
            raise Forbidden(
                "only staff may act as another user",
                field="X-Fairbank-As",
                remedy="ask in your own name",
            )
        if uid in staff.superusers and actor not in staff.superusers:
            raise Forbidden(
                "an admin may not act as a superuser",
                field="X-Fairbank-As",
                remedy="name a user without that role",
            )
    own = (
        frozenset()
        if uid != actor
        else frozenset(
            scope.removeprefix("agent:") for scope in scopes if scope.startswith("agent:")
        )
    )
    named = staff.agents.get(uid, frozenset()) if "write" in scopes else frozenset()
    return Asker(
        actor=actor,
        uid=uid,
        superuser=uid in staff.superusers,
        admin=uid in staff.admins,
        clusters=own | named,
        roles=roles,
        scopes=scopes,
        until=until,
        token=token,
    )
