"""Terms of allocations and caps, as the model has them."""

from __future__ import annotations

from typing import Any

from fairbank.bank import wish as w
from fairbank.bank.allocation import AllocationEvent
from tests.bank.model.words import Words

LIFE = {
    ("active", "freeze"): "frozen",
    ("frozen", "thaw"): "active",
    ("active", "end"): "ended",
    ("frozen", "end"): "ended",
    ("ended", "reopen"): "active",
}


class Terms(Words):
    """The wishes of terms and caps, each answered by a word."""

    def _open(self, wish: w.Open, at: int) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if self.projects[wish.project]["removed"]:
            return "PROJECT_REMOVED"
        terms = {
            "project": wish.project,
            "resource": wish.resource,
            "start": wish.start,
            "end": wish.end,
        }
        against = self._bad_period(0, terms)
        if not against:
            number = len(self.allocations) + 1
            self.allocations[number] = terms | {
                "state": "active",
                "shared": wish.shared,
                "limit": wish.credit_limit,
            }
            self.words[number, None] = [
                self.allocations[number] | {"over": [0]}
            ]  # no entry has this number: none opens it again
            self.credit.append((number, wish.deposit))
        return against or "ok"

    def _bad_period(self, number: int, terms: dict[str, Any]) -> str:
        if terms["end"] <= terms["start"]:
            return "INVALID_PERIOD"
        others = [each for other, each in self.allocations.items() if other != number]
        same = [
            each
            for each in others
            if all(each[what] == terms[what] for what in ("project", "resource"))
        ]
        return (
            "OVERLAP"
            if any(
                max(each["start"], terms["start"]) < min(each["end"], terms["end"]) for each in same
            )
            else ""
        )

    def _amend(self, wish: w.Amend, at: int) -> str:
        old = self.allocations.get(wish.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        more = (
            wish.event is AllocationEvent.REOPEN
            or (wish.end or 0) > at
            or (wish.credit_limit or 0) > old["limit"]
        )
        if more and self.projects[old["project"]]["removed"]:
            return "PROJECT_REMOVED"
        given = {
            "start": wish.start,
            "end": wish.end,
            "shared": wish.shared,
            "limit": wish.credit_limit,
        }
        new = old | {what: value for what, value in given.items() if value is not None}
        event = None if wish.event is None else wish.event.value
        over = old["state"] == "ended" or old["end"] <= at  # whether or not the sweep came by
        stands = (
            "ended" if over and not (old["state"] == "frozen" and event == "thaw") else old["state"]
        )
        new["state"] = LIFE.get((stands, event), "") if event else stands
        if not new["state"]:
            return "WRONG_STATE"
        if event == "end":  # the period ends now, but is never empty
            new["end"] = min(new["end"], max(at, new["start"] + 1))
        if (
            new["state"] == "ended" and old["state"] == "frozen" and new["start"] < at
        ):  # the freeze outlives the period
            new["state"] = "frozen"
        if against := self._bad_period(wish.allocation, new):
            return against
        if new["limit"] < old["limit"] and self.free(wish.allocation) + new["limit"] < 0:
            return "LIMIT_IN_USE"
        if event == "reopen" and new["end"] <= at:
            return "ALLOCATION_EXPIRED"
        if (
            over
            and event != "reopen"
            and new["end"] > at
            and (old["start"], old["end"]) != (new["start"], new["end"])
        ):
            return "ALLOCATION_EXPIRED"
        self._now(wish.allocation, new, at)
        return "ok"

    def _now(self, number: int, new: dict[str, Any], at: int, undoes: int | None = None) -> None:
        """New terms. Where these only say that the time is over, what was before may be undone all the same."""
        old, self.allocations[number] = self.allocations[number], new
        over = self.words[number, None][-1]["over"]
        self._say((number, None), undoes, new)
        if (
            undoes is None
            and old["state"] != "ended"
            and new == old | {"state": "ended"}
            and at >= new["end"]
        ):
            self.words[number, None][-1]["over"] = list(over)

    def _expire(self, wish: w.Expire, at: int) -> str:
        old = self.allocations.get(wish.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        if old["state"] != "active" or at < old["end"]:
            return "WRONG_STATE" if old["state"] != "active" else "NOT_DUE"
        self._now(wish.allocation, old | {"state": "ended"}, at)
        return "ok"

    def _setcap(self, wish: w.SetCap, at: int, undoes: int | None = None) -> str:
        if wish.allocation not in self.allocations:
            return "UNKNOWN_ALLOCATION"
        if wish.by is not None and not self._may_cap(wish, wish.by):
            return "ROLE_ABOVE"
        about = (wish.allocation, wish.uid)
        if undoes is None and wish.cap == self.caps.get(about):
            return "again"
        self._say(about, undoes, {"cap": wish.cap}, {"cap": None})
        self.caps[about] = wish.cap
        return "ok"

    def _may_cap(self, wish: w.SetCap, by: int) -> bool:
        below = ("pi", "coordinator", "member", None)
        mine, other = (
            below.index(self.members.get((wish.project or 0, uid))) for uid in (by, wish.uid)
        )
        return bool(
            wish.project == self.allocations[wish.allocation]["project"]
            and mine < 2
            and mine < other
        )
