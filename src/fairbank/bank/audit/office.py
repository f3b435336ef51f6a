"""What the entries of the office's book leave behind: projects and members."""

from __future__ import annotations

from typing import Any

from fairbank.bank.audit.finding import Findings
from fairbank.bank.entry import Kind
from fairbank.bank.project import Member, Project, Role


class OfficeRows:
    """The rows that the office's entries, read so far, lead to."""

    def __init__(self, findings: Findings) -> None:
        self.projects: dict[int, Project] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self._findings = findings

    def apply(self, kind: Kind, facts: dict[str, Any]) -> None:
        """Take one entry in, given its details. Raises KeyError, TypeError or ValueError when they lack something."""
        if kind is Kind.PROJECT:
            number = facts["project"]
            self.projects[number] = Project(
                id=number, gname=facts["gname"], gid=facts["gid"], account=facts["account"], parent=facts["parent"]
            )
        elif kind is Kind.MEMBER:
            where = (facts["project"], facts["uid"])
            self.members.pop(where, None)
            if facts["role"] is not None:
                self.members[where] = Member(*where, Role(facts["role"]))

    def check_project(self, row: Project) -> None:
        """Compare with a project's row; the project is then done with."""
        self._findings.compare(f"the row of project {row.id}", row, self.projects.pop(row.id, None))

    def check_member(self, row: Member) -> None:
        """Compare with a member's row; the member is then done with."""
        self._findings.compare(f"the role of user {row.uid} in project {row.project}", row, self.members.pop((row.project, row.uid), None))

    def check_left_over(self) -> None:
        """What the journal speaks of and no row was shown for is missing."""
        for project in self.projects:
            self._findings.add(f"the row of project {project} is missing")
        for number, uid in self.members:
            self._findings.add(f"the role of user {uid} in project {number} is missing")
