"""State of the server, and the authenticated user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from fairbank.service.access.identity import Identity

RoleWord = Literal["pi", "coordinator", "member"]


class Health(Struct, frozen=True, kw_only=True):
    """The server answers."""

    status: Literal["ok"] = "ok"


class ProjectRole(Struct, frozen=True, kw_only=True):
    """Role of the user in a project."""

    project: int
    role: RoleWord


class Myself(Struct, frozen=True, kw_only=True):
    """The authenticated user: `actor` signed in, `uid` has the permissions that count."""

    actor: int
    uid: int
    user: str | None
    superuser: bool
    admin: bool
    roles: list[ProjectRole]
    clusters: list[str]
    scopes: list[str]


def myself(identity: Identity, user: str | None) -> Myself:
    """Return the user and the permissions of a request; `user` is the login name."""
    return Myself(
        actor=identity.actor,
        uid=identity.uid,
        user=user,
        superuser=identity.superuser,
        admin=identity.admin,
        roles=[
            ProjectRole(project=project, role=role.value)
            for project, role in sorted(identity.roles.items())
        ],
        clusters=sorted(identity.clusters),
        scopes=sorted(identity.scopes),
    )
