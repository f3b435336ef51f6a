"""Identity of the user who sends a request, perhaps on behalf of another user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.project import Role
from fairbank.bank.query import Visibility
from fairbank.core.errors import Forbidden
from fairbank.core.time import Instant

FULL = frozenset({"read", "write"})
"""Scopes of a user who signed in without a token."""


class Staff(msgspec.Struct, frozen=True):
    """Staff and agents named in the settings."""

    superusers: frozenset[int] = frozenset()
    admins: frozenset[int] = frozenset()
    agents: Mapping[int, frozenset[str]] = {}


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Authenticated user. `actor` signed in; `uid` is the user whose permissions count: the actor,
    or the user acted as.

    `roles` are the uid's roles in projects, `clusters` those it may report runs for, and `scopes`
    what the credential allows. `until` is when the credential ends and `token` its number; None
    without a token.
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
    def visibility(self) -> Visibility:
        """Return what the user may see: staff everything, others their projects and what they
        own.
        """
        if self.superuser or self.admin:
            return Visibility(everything=True)
        return Visibility(uid=self.uid, projects=frozenset(self.roles))


def identity_of(
    actor: int,
    staff: Staff,
    roles: Mapping[int, Role],
    *,
    acting_as: int | None = None,
    scopes: frozenset[str] = FULL,
    until: Instant | None = None,
    token: int | None = None,
) -> Identity:
    """Return the identity of a signed-in user.

    Acting as another user leaves one's own permissions behind.

    Args:
        actor: user who signed in.
        staff: staff and agents of the settings.
        roles: roles of the user whose permissions count.
        acting_as: that user, if not the actor.
        scopes: scopes of the credential.
        until: end of the credential.
        token: number of the token, if the user signed in with one.

    Raises:
        Forbidden: the actor may not act as that user, or an admin would act as a superuser.
    """
    uid = actor if acting_as is None else acting_as
    if uid != actor:
        if actor not in staff.superusers and actor not in staff.admins:
            raise Forbidden(
                "only staff may act as another user",
                field="X-Fairbank-As",
                remedy="send the request as yourself",
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
    return Identity(
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
