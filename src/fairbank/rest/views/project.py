"""Projects and their members, as the shapes that travel."""

from __future__ import annotations

import msgspec

from fairbank.bank.project import Member, Project
from fairbank.rest.bodies import answers


def project_row(project: Project) -> answers.ProjectRow:
    """A project as lists show it."""
    return answers.ProjectRow(**msgspec.structs.asdict(project))


def project_card(project: Project, members: list[Member]) -> answers.ProjectCard:
    """A project with its members."""
    return answers.ProjectCard(
        **msgspec.structs.asdict(project_row(project)),
        members=[member_row(each) for each in members],
    )


def member_row(member: Member) -> answers.MemberRow:
    """A member's uid and role."""
    return answers.MemberRow(uid=member.uid, role=member.role.value)
