"""Projects and their members."""

from __future__ import annotations

from msgspec import Struct, structs

from fairbank.bank.project import Member, Project
from fairbank.rest.schemas.server import RoleWord


class MemberRow(Struct, frozen=True, kw_only=True):
    """A member of a project."""

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
    """A new project. `entry` recorded it; null if the same project existed before."""

    entry: int | None


class ProjectCard(ProjectRow, frozen=True, kw_only=True):
    """A project with its members."""

    members: list[MemberRow]


def project_row(project: Project) -> ProjectRow:
    """Return a project as lists show it."""
    return ProjectRow(**structs.asdict(project))


def project_card(project: Project, members: list[Member]) -> ProjectCard:
    """Return a project with its members."""
    return ProjectCard(
        **structs.asdict(project_row(project)), members=[member_row(member) for member in members]
    )


def member_row(member: Member) -> MemberRow:
    """Return a member's uid and role."""
    return MemberRow(uid=member.uid, role=member.role.value)
