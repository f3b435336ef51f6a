"""Projects and their members."""

from __future__ import annotations

from msgspec import Struct

from fairbank.rest.bodies.answers.server import RoleWord


class MemberRow(Struct, frozen=True, kw_only=True):
    uid: int
    role: RoleWord


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project. HADM's schema 1: project_id is `id`."""

    id: int
    gname: str
    gid: int
    account: str
    parent: int | None
    removed: bool


class EnteredProject(ProjectRow, frozen=True, kw_only=True):
    """A project after it was entered; `entry` is the one that says so, null where the very same project was there before."""

    entry: int | None


class ProjectCard(ProjectRow, frozen=True, kw_only=True):
    members: list[MemberRow]
