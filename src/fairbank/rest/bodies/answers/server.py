"""What the server says of itself, and of who asks."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

RoleWord = Literal["pi", "coordinator", "member"]


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class RoleIn(Struct, frozen=True, kw_only=True):
    project: int
    role: RoleWord


class Myself(Struct, frozen=True, kw_only=True):
    """Who the server takes you for; `actor` signed in, `uid` is whose rights count."""

    actor: int
    uid: int
    user: str | None
    superuser: bool
    admin: bool
    roles: list[RoleIn]
    clusters: list[str]
    scopes: list[str]
