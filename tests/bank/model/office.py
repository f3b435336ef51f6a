"""Projects, members and tokens, as the model has them."""

from __future__ import annotations

from typing import Any

from fairbank.bank import wish as w
from tests.bank.model.words import Words


class Office(Words):
    """The wishes of the office, each answered by a word."""

    def _createproject(self, wish: w.CreateProject, at: int) -> str:
        facts = {
            "gname": wish.gname,
            "gid": wish.gid,
            "account": wish.account,
            "parent": wish.parent,
            "removed": False,
        }
        if facts in self.projects.values():
            return "again"
        return self._entered(len(self.projects) + 1, facts, wish.parent)

    def _entered(self, number: int, facts: dict[str, Any], parent: int | None) -> str:
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
        others = [each for other, each in self.projects.items() if other != number]
        return any(
            each[what] == facts[what] for each in others for what in ("gname", "gid", "account")
        )

    def _was_used(self, number: int) -> bool:
        ran = any(
            self.asked[run["opened"]].wish.line[:1] == (number,) for run in self.runs.values()
        )
        return ran or any(each["project"] == number for each in self.allocations.values())

    def _amendproject(self, wish: w.AmendProject, at: int) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        old = self.projects[wish.project]
        new = old | {
            what: said
            for what in ("gname", "gid", "account")
            if (said := getattr(wish, what)) is not None
        }
        new |= {} if wish.parent is None else {"parent": wish.parent or None}
        new["removed"] = old["removed"] and not wish.restore
        above = (
            self.projects.get(new["parent"])
            if old["removed"] and not new["removed"] and not wish.parent
            else None
        )
        if above and above["removed"]:
            taken = self._taken(wish.project, new)
            return "EXISTS" if taken else "PROJECT_REMOVED"
        return "again" if new == old else self._entered(wish.project, new, wish.parent)

    def _removeproject(self, wish: w.RemoveProject, at: int) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[wish.project]["removed"]:
            return "again"
        if any(
            each["parent"] == wish.project and not each["removed"]
            for each in self.projects.values()
        ):
            return "PROJECT_IN_USE"
        theirs = {
            number: each
            for number, each in self.allocations.items()
            if each["project"] == wish.project
        }
        if any(
            self.held(number) or (each["state"] != "ended" and each["end"] > at)
            for number, each in theirs.items()
        ):
            return "PROJECT_IN_USE"
        if any(
            run["state"] == "held" and self.asked[run["opened"]].wish.line[0] == wish.project
            for run in self.runs.values()
        ):
            return "PROJECT_IN_USE"
        self.projects[wish.project]["removed"] = True
        return "ok"

    def _setmember(self, wish: w.SetMember, at: int, undoes: int | None = None) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[wish.project]["removed"]:
            return "PROJECT_REMOVED"
        if wish.by is not None:
            below = ("pi", "coordinator", "member")
            mine = below.index(self.members.get((wish.project, wish.by), "member"))
            touched = {
                self.members.get((wish.project, wish.uid)),
                wish.role and wish.role.value,
            } - {None}
            if mine == below.index("member") or any(
                below.index(role) <= mine for role in touched if role
            ):
                return "ROLE_ABOVE"
        role = None if wish.role is None else wish.role.value
        if undoes is None and self.members.get((wish.project, wish.uid)) == role:
            return "again" if role else "NOT_A_MEMBER"
        self.members.pop((wish.project, wish.uid), None)
        if role is not None:
            self.members[wish.project, wish.uid] = role
        self._say(("role", wish.project, wish.uid), undoes, {"role": role}, {"role": None})
        return "ok"

    def _issuetoken(self, wish: w.IssueToken, at: int) -> str:
        facts = {
            "uid": wish.uid,
            "label": wish.label,
            "scopes": wish.scopes,
            "expires": wish.expires,
        }
        for token in self.tokens.values():
            if token["digest"] == wish.digest:
                return (
                    "again"
                    if all(token[what] == value for what, value in facts.items())
                    else "TOKEN_TAKEN"
                )
        self.tokens[len(self.tokens) + 1] = facts | {
            "digest": wish.digest,
            "created": at,
            "revoked": None,
        }
        return "ok"

    def _revoketoken(self, wish: w.RevokeToken, at: int) -> str:
        token = self.tokens.get(wish.token)
        mine = token is not None and (wish.uid is None or wish.uid == token["uid"])
        if token is None or not mine or token["revoked"] is not None or at >= token["expires"]:
            return "UNKNOWN_TOKEN"
        token["revoked"] = at
        return "ok"

    def _note(self, wish: w.Note, at: int) -> str:
        return "ok"
