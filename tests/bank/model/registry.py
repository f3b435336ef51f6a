"""Requests of the model about projects, members and tokens."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from tests.bank.model.changes import ChangeHistory


class RegistryModel(ChangeHistory):
    """Requests about projects, members and tokens. The answer is a word."""

    def _createproject(self, request: w.CreateProject, at: int) -> str:
        facts = {
            "gname": request.gname,
            "gid": request.gid,
            "account": request.account,
            "parent": request.parent,
            "removed": False,
        }
        if facts in self.projects.values():
            return "again"
        return self._store_project(len(self.projects) + 1, facts, request.parent)

    def _store_project(self, number: int, facts: dict[str, Any], parent: int | None) -> str:
        if self._taken(number, facts):
            return "EXISTS"
        if parent and parent not in self.projects:
            return "UNKNOWN_PROJECT"
        if parent and self.projects[parent]["removed"]:
            return "PROJECT_REMOVED"
        above = parent
        while above:
            if above == number:
                return "PARENT_CYCLE"
            above = self.projects[above]["parent"]
        old = self.projects.get(number)
        if (
            old
            and (old["gid"], old["account"]) != (facts["gid"], facts["account"])
            and self._was_used(number)
        ):
            return "IDENTITY_LOCKED"
        self.projects[number] = facts
        return "ok"

    def _taken(self, number: int, facts: dict[str, Any]) -> bool:
        others = [project for other, project in self.projects.items() if other != number]
        return any(
            project[what] == facts[what]
            for project in others
            for what in ("gname", "gid", "account")
        )

    def _was_used(self, number: int) -> bool:
        ran = any(
            self.submitted[run["opened"]].request.chain[:1] == (number,)
            for run in self.runs.values()
        )
        return ran or any(
            allocation["project"] == number for allocation in self.allocations.values()
        )

    def _amendproject(self, request: w.AmendProject, at: int) -> str:
        if request.project not in self.projects:
            return "UNKNOWN_PROJECT"
        old = self.projects[request.project]
        new = old | {
            what: value
            for what in ("gname", "gid", "account")
            if (value := getattr(request, what)) is not None
        }
        new |= {} if request.parent is None else {"parent": request.parent or None}
        new["removed"] = old["removed"] and not request.restore
        above = (
            self.projects.get(new["parent"])
            if old["removed"] and not new["removed"] and not request.parent
            else None
        )
        if above and above["removed"]:
            taken = self._taken(request.project, new)
            return "EXISTS" if taken else "PROJECT_REMOVED"
        return "again" if new == old else self._store_project(request.project, new, request.parent)

    def _removeproject(self, request: w.RemoveProject, at: int) -> str:
        if request.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[request.project]["removed"]:
            return "again"
        if any(
            project["parent"] == request.project and not project["removed"]
            for project in self.projects.values()
        ):
            return "PROJECT_IN_USE"
        theirs = {
            number: allocation
            for number, allocation in self.allocations.items()
            if allocation["project"] == request.project
        }
        if any(
            self.held(number)
            or (their["state"] not in ("ended", "cancelled") and their["end"] > at)
            for number, their in theirs.items()
        ):
            return "PROJECT_IN_USE"
        if any(
            run["state"] == "held"
            and self.submitted[run["opened"]].request.chain[0] == request.project
            for run in self.runs.values()
        ):
            return "PROJECT_IN_USE"
        self.projects[request.project]["removed"] = True
        return "ok"

    def _setmember(self, request: w.SetMember, at: int, undoes: int | None = None) -> str:
        if request.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[request.project]["removed"]:
            return "PROJECT_REMOVED"
        if request.by is not None:
            below = ("pi", "coordinator", "member")
            mine = below.index(self.members.get((request.project, request.by), "member"))
            touched = {
                self.members.get((request.project, request.uid)),
                request.role and request.role.value,
            } - {None}
            if mine == below.index("member") or any(
                below.index(role) <= mine for role in touched if role
            ):
                return "ROLE_ABOVE"
        role = None if request.role is None else request.role.value
        if undoes is None and self.members.get((request.project, request.uid)) == role:
            return "again" if role else "NOT_A_MEMBER"
        self.members.pop((request.project, request.uid), None)
        if role is not None:
            self.members[request.project, request.uid] = role
        self._record(("role", request.project, request.uid), undoes, {"role": role}, {"role": None})
        return "ok"

    def _issuetoken(self, request: w.IssueToken, at: int) -> str:
        grant = request.grant
        facts = {
            "uid": grant.uid,
            "label": grant.label,
            "scopes": grant.scopes,
            "expires": grant.expires,
        }
        for token in self.tokens.values():
            if token["digest"] == grant.digest:
                return (
                    "again"
                    if all(token[what] == value for what, value in facts.items())
                    else "TOKEN_TAKEN"
                )
        self.tokens[len(self.tokens) + 1] = facts | {
            "digest": grant.digest,
            "created": at,
            "revoked": None,
        }
        return "ok"

    def _revoketoken(self, request: w.RevokeToken, at: int) -> str:
        token = self.tokens.get(request.token)
        mine = token is not None and (request.uid is None or request.uid == token["uid"])
        if token is None or not mine or token["revoked"] is not None or at >= token["expires"]:
            return "UNKNOWN_TOKEN"
        token["revoked"] = at
        return "ok"

    def _auditnote(self, request: w.AuditNote, at: int) -> str:
        return "ok"
