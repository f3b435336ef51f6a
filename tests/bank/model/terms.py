"""Requests of the model about terms and caps."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from fairbank.bank.allocation import AllocationEvent
from tests.bank.model.changes import ChangeHistory

LIFE = {
    ("active", "freeze"): "frozen",
    ("frozen", "thaw"): "active",
    ("active", "end"): "ended",
    ("frozen", "end"): "ended",
    ("ended", "reopen"): "active",
}


class Terms(ChangeHistory):
    """Requests about terms and caps. The answer is a word."""

    def _open(self, request: w.Open, at: int) -> str:
        if request.terms.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[request.terms.project]["removed"]:
            return "PROJECT_REMOVED"
        terms = {
            "project": request.terms.project,
            "resource": request.terms.resource,
            "start": request.terms.start,
            "end": request.terms.end,
        }
        against = self._bad_period(0, terms)
        if not against:
            number = len(self.allocations) + 1
            self.allocations[number] = terms | {
                "state": "active",
                "shared": request.terms.shared,
                "limit": request.terms.credit_limit,
            }
            self.changes[number, None] = [
                self.allocations[number] | {"undoable": [0]}
            ]  # no entry has the number 0, so opening cannot be undone
            self.credit.append((number, request.deposit))
        return against or "ok"

    def _bad_period(self, number: int, terms: dict[str, Any]) -> str:
        if terms["end"] <= terms["start"]:
            return "INVALID_PERIOD"
        others = [allocation for other, allocation in self.allocations.items() if other != number]
        same = [
            allocation
            for allocation in others
            if all(allocation[what] == terms[what] for what in ("project", "resource"))
        ]
        return (
            "OVERLAP"
            if any(
                max(allocation["start"], terms["start"]) < min(allocation["end"], terms["end"])
                for allocation in same
            )
            else ""
        )

    def _amend(self, request: w.Amend, at: int) -> str:
        old = self.allocations.get(request.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        more = (
            request.event is AllocationEvent.REOPEN
            or (request.end or 0) > at
            or (request.credit_limit or 0) > old["limit"]
        )
        if more and self.projects[old["project"]]["removed"]:
            return "PROJECT_REMOVED"
        given = {
            "start": request.start,
            "end": request.end,
            "shared": request.shared,
            "limit": request.credit_limit,
        }
        new = old | {what: value for what, value in given.items() if value is not None}
        event = None if request.event is None else request.event.value
        has_ended = old["state"] in ("ended", "cancelled")
        is_over = has_ended or old["end"] <= at  # even before upkeep has ended it
        stands = (
            "ended"
            if is_over and not (old["state"] == "frozen" and event == "thaw")
            else old["state"]
        )
        new["state"] = LIFE.get((stands, event), "") if event else stands
        if not new["state"]:
            return "WRONG_STATE"
        if event == "end":  # the period ends now, but is never empty
            new["end"] = min(new["end"], max(at, new["start"] + 1))
            if at <= new["start"]:
                new["state"] = "cancelled"
        if new["state"] == "ended" and old["state"] in ("frozen", "cancelled"):
            new["state"] = old["state"]  # also after its period
        if against := self._bad_period(request.allocation, new):
            return against
        if new["limit"] < old["limit"] and self.free(request.allocation) + new["limit"] < 0:
            return "LIMIT_IN_USE"
        if event == "reopen" and new["end"] <= at:
            return "ALLOCATION_EXPIRED"
        if (
            is_over
            and event != "reopen"
            and new["end"] > at
            and (old["start"], old["end"]) != (new["start"], new["end"])
        ):
            return "ALLOCATION_EXPIRED"
        self._set_terms(request.allocation, new, at)
        return "ok"

    def _set_terms(
        self, number: int, new: dict[str, Any], at: int, undoes: int | None = None
    ) -> None:
        """Record new terms. If they only record the end, the terms before may still be undone."""
        old, self.allocations[number] = self.allocations[number], new
        undoable = self.changes[number, None][-1]["undoable"]
        self._record((number, None), undoes, new)
        if (
            undoes is None
            and old["state"] not in ("ended", "cancelled")
            and new == old | {"state": "ended"}
            and at >= new["end"]
        ):
            self.changes[number, None][-1]["undoable"] = list(undoable)

    def _expire(self, request: w.Expire, at: int) -> str:
        old = self.allocations.get(request.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        if old["state"] != "active" or at < old["end"]:
            return "WRONG_STATE" if old["state"] != "active" else "NOT_DUE"
        self._set_terms(request.allocation, old | {"state": "ended"}, at)
        return "ok"

    def _setcap(self, request: w.SetCap, at: int, undoes: int | None = None) -> str:
        if request.allocation not in self.allocations:
            return "UNKNOWN_ALLOCATION"
        if request.by is not None and not self._may_cap(request, request.by):
            return "ROLE_ABOVE"
        about = (request.allocation, request.uid)
        if undoes is None and request.cap == self.caps.get(about):
            return "again"
        self._record(about, undoes, {"cap": request.cap}, {"cap": None})
        self.caps[about] = request.cap
        return "ok"

    def _may_cap(self, request: w.SetCap, by: int) -> bool:
        below = ("pi", "coordinator", "member", None)
        mine, other = (
            below.index(self.members.get((request.project or 0, uid))) for uid in (by, request.uid)
        )
        return bool(
            request.project == self.allocations[request.allocation]["project"]
            and mine < 2
            and mine < other
        )
