"""Rows that follow from the registry: projects, members and tokens."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.bank.audit.findings import Findings
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.token import Token


class ExpectedRegistry:
    """Projects, members and tokens by the entries of the registry that were read."""

    def __init__(self, findings: Findings) -> None:
        self.projects: dict[int, Project] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self.tokens: dict[int, Token] = {}
        self._findings = findings

    def apply(self, entry: Entry, facts: dict[str, Any]) -> None:
        """Apply one entry. Raises KeyError, TypeError or ValueError for bad details."""
        if entry.kind is Kind.PROJECT:
            number = facts["project"]
            self.projects[number] = Project(
                id=number,
                gname=facts["gname"],
                gid=facts["gid"],
                account=facts["account"],
                parent=facts["parent"],
                removed=facts.get("removed", False),
            )
        elif entry.kind is Kind.MEMBER:
            where = (facts["project"], facts["uid"])
            self.members.pop(where, None)
            if facts["role"] is not None:
                self.members[where] = Member(*where, Role(facts["role"]))
        elif entry.kind is Kind.TOKEN:
            self._token(entry, _token_of(facts))

    def _token(self, entry: Entry, token: Token) -> None:
        known = self.tokens.get(token.id)
        if known is not None and (
            token.revoked is None or known != msgspec.structs.replace(token, revoked=None)
        ):
            self._findings.add(
                f"this cannot follow: token {token.id} is made once, revoked once and otherwise"
                " stays as it is",
                entry,
            )
        self.tokens[token.id] = token

    def check_project(self, row: Project) -> None:
        """Compare with the row of a project, and forget the project."""
        self._findings.compare(f"the row of project {row.id}", row, self.projects.pop(row.id, None))

    def check_member(self, row: Member) -> None:
        """Compare with the row of a member, and forget the member."""
        self._findings.compare(
            f"the role of user {row.uid} in project {row.project}",
            row,
            self.members.pop((row.project, row.uid), None),
        )

    def check_token(self, row: Token) -> None:
        """Compare with the row of a token, and forget the token."""
        self._findings.compare(f"the row of token {row.id}", row, self.tokens.pop(row.id, None))

    def check_left_over(self) -> None:
        """Report the rows that the registry requires and that were not shown."""
        for project in self.projects:
            self._findings.add(f"the row of project {project} is missing")
        for number, uid in self.members:
            self._findings.add(f"the role of user {uid} in project {number} is missing")
        for number in self.tokens:
            self._findings.add(f"the row of token {number} is missing")


def _token_of(facts: dict[str, Any]) -> Token:
    return Token(
        id=facts["token"],
        digest=bytes.fromhex(facts["digest"]),
        uid=facts["uid"],
        label=facts["label"],
        scopes=tuple(facts["scopes"]),
        created=facts["created"],
        expires=facts["expires"],
        revoked=facts["revoked"],
        parent=facts["parent"],
    )
