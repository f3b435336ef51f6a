"""The bank told in the slowest way, from the words of its specification: what was granted is kept in plain dicts and
every figure is counted again from all of it. The product is compared with this after each step; nothing is shared but
the wishes themselves, with who asks and what was said.
"""

from __future__ import annotations

from typing import Any

from fairbank.bank import wish as w
from fairbank.cluster.job import Run

LIFE = {
    ("active", "freeze"): "frozen",
    ("frozen", "thaw"): "active",
    ("active", "end"): "ended",
    ("frozen", "end"): "ended",
    ("ended", "reopen"): "active",
}


class Model:
    """What was granted, and the words of the answers: `ok`, `again`, or the name of a reason to refuse.

    Questions are numbered from 0 as they come; `like` is the question that was answered before as the last one is now.
    """

    def __init__(self, *, enforce: bool, write_off: bool, late: bool) -> None:
        self.enforce, self.write_off, self.late = enforce, write_off, late
        self.projects: dict[int, dict[str, Any]] = {}
        self.members: dict[tuple[int, int], str] = {}
        self.tokens: dict[int, dict[str, Any]] = {}
        self.allocations: dict[int, dict[str, Any]] = {}
        self.credit: list[tuple[int, int]] = []
        self.runs: dict[Run, dict[str, Any]] = {}
        self.caps: dict[tuple[int, int], int | None] = {}
        self.answers: dict[tuple[int, str], tuple[w.Asked, str, int]] = {}
        self.asked: list[w.Asked] = []
        self.reverse: dict[int, w.Request] = {}
        """What takes back each entry, by the number that whoever asks was told."""
        self.words: dict[tuple[int, int | None], list[dict[str, Any]]] = {}
        """All terms that each allocation ever had, and all caps of each user in it; `over` are the entries that may then be undone."""
        self.swept: set[int] = set()
        """Entries that only say that a time was over."""
        self.refunded: dict[int, int] = {}
        self.undone: set[int] = set()
        self.like: int | None = None

    # --- figures, each counted again ---

    def deposited(self, where: int) -> int:
        return sum(amount for number, amount in self.credit if number == where)

    def held(self, where: int, uid: int | None = None) -> int:
        return sum(run["held"] for run in self.runs.values() if run["where"] == where and uid in (None, run["owner"]))

    def charged(self, where: int, uid: int | None = None) -> int:
        return sum(run["charged"] - run["back"] for run in self.runs.values() if run["where"] == where and uid in (None, run["owner"]))

    def paid(self) -> list[Run]:
        """The runs that were charged something."""
        return [number for number, run in self.runs.items() if run["charged"]]

    def free(self, where: int) -> int:
        """What may leave the allocation again."""
        return self.deposited(where) - self.charged(where) - self.held(where)

    def left(self, where: int) -> int:
        return self.free(where) + int(self.allocations[where]["limit"])

    # --- asking ---

    def ask(self, asked: w.Asked) -> str:
        """The word of the answer to a wish."""
        wish, self.like = asked.wish, None
        self.asked.append(asked)
        if (asked.actor, str(wish.key)) in self.answers:
            before, word, number = self.answers[asked.actor, str(wish.key)]
            if not self._is_the_same(before, asked):
                return "KEY_TAKEN"
            self.like = number
            return "again" if word == "ok" else word
        word = str(getattr(self, f"_{type(wish).__name__.lower()}")(wish, asked.at))
        usage = isinstance(wish, w.Charge | w.Release) and word != "ok"  # it happened: it may be said again until it counts
        if wish.key and word not in ("again", "NO_HOLD") and not usage:  # what came before its hold may be said again after it
            self.answers[asked.actor, wish.key] = (asked, word, len(self.asked) - 1)
        return word

    def told(self, entry: int, amount: int) -> None:
        """The number of the entry that the last question, granted just now, has made."""
        wish = self.asked[-1].wish
        match wish:
            case w.Deposit():
                self.reverse[entry] = w.Withdraw(allocation=wish.allocation, amount=wish.amount, undoes=entry)
            case w.Withdraw():
                self.reverse[entry] = w.Deposit(allocation=wish.allocation, amount=wish.amount, undoes=entry)
            case w.Transfer():
                self.reverse[entry] = w.Transfer(source=wish.target, target=wish.source, amount=wish.amount, undoes=entry)
            case w.Refund():
                self.reverse[entry], self.refunded[entry] = w.Recharge(run=wish.run, undoes=entry), amount
            case w.Open():
                if wish.deposit:
                    self.reverse[entry] = w.Withdraw(allocation=len(self.allocations), amount=wish.deposit, undoes=entry)
            case w.Amend() | w.Expire():
                over = self.words[wish.allocation, None][-1]["over"]
                if over and (isinstance(wish, w.Expire) or wish.undoes is None):  # it left what was before to be undone
                    self.swept.add(entry)
                over.insert(0, entry)
                self.reverse[entry] = w.Amend(allocation=wish.allocation, project=0, resource="", undoes=entry)
            case w.SetCap():
                words = self.words[wish.allocation, wish.uid]
                words[-1]["over"].insert(0, entry)
                self.reverse[entry] = w.SetCap(allocation=wish.allocation, uid=wish.uid, cap=words[-2]["cap"], undoes=entry)

    def _against_undoing(self, wish: Any) -> str:
        """Each entry once, and by its reverse alone."""
        if wish.undoes is None:
            return ""
        if wish.undoes in self.undone:
            return "UNDONE"
        due = self.reverse.get(wish.undoes)
        facts = ("allocation", "source", "target", "amount", "run", "uid")
        alike = type(due) is type(wish) and all(getattr(due, what, None) == getattr(wish, what, None) for what in facts)
        return "" if alike else "NO_REVERSE"

    def _say(self, about: tuple[int, int | None], undoes: int | None, word: dict[str, Any]) -> None:
        """Something new about terms or a cap: nothing said before may be undone now, but for what it took us back to."""
        if undoes is not None:
            self.undone.add(undoes)
        words = self.words[about]
        words.append(word | {"over": [] if undoes is None else list(self._before(about, undoes)["over"])})

    def _before(self, about: tuple[int, int | None], entry: int) -> dict[str, Any]:
        """The words before those of an entry."""
        words = self.words[about]
        return words[next(place for place, each in enumerate(words) if each["over"][:1] == [entry]) - 1]

    @staticmethod
    def _is_the_same(before: w.Asked, now: w.Asked) -> bool:
        """One report is one however it was priced; a wish without a report is itself."""
        return now.said == before.said and (now.said is not None or now.wish == before.wish)

    def _repeats(self, number: int) -> bool:
        """Whether the last question reports what the question of this number reported."""
        said = self.asked[-1].said
        return said is not None and said == self.asked[number].said

    def _again(self, number: int) -> str:
        self.like = number
        return "again"

    # --- runs ---

    def _hold(self, wish: w.Hold, at: int) -> str:
        known = self.runs.get(wish.run)
        if known:
            if known["state"] != "held":
                return "RUN_RESOLVED"
            first = self.asked[known["opened"]].wish
            facts = [(each.owner, each.start, each.partition, each.line[0], each.resource) for each in (wish, first)]
            same = facts[0] == facts[1] and wish.amount in (first.amount, known["held"])
            return self._again(known["opened"]) if same or self._repeats(known["opened"]) else "RUN_TAKEN"
        offers = self._offers(wish)
        willing = [where for where in offers if not self._against(where, wish.owner, wish.amount)]
        if not offers:
            return "NO_ALLOCATION" if self.enforce else "ok"  # let through, nothing is held
        if not willing and self.enforce:
            return self._against(offers[0], wish.owner, wish.amount)
        self.runs[wish.run] = self._run((willing or offers)[0], wish.owner) | {"held": wish.amount, "until": wish.until}
        return "ok"

    def _offers(self, wish: Any) -> list[int]:
        """The run's own project first, then what its parents share."""
        return [
            number
            for place, project in enumerate(wish.line)
            for number, each in self.allocations.items()
            if (each["project"], each["resource"]) == (project, wish.resource)
            and each["start"] <= wish.start < each["end"]
            and not (each["state"] == "ended" and each["end"] - each["start"] == 1)  # ended before it began
            and (place == 0 or each["shared"])
        ]

    def _against(self, where: int, uid: int, more: int) -> str:
        if self.allocations[where]["state"] == "frozen":
            return "FROZEN"
        if more > self.left(where):
            return "OVERDRAWN"
        cap = self.caps.get((where, uid))
        return "CAPPED" if cap is not None and self.held(where, uid) + self.charged(where, uid) + more > cap else ""

    def _run(self, where: int, owner: int) -> dict[str, Any]:
        now = len(self.asked) - 1
        run = {"where": where, "owner": owner, "state": "held", "held": 0, "charged": 0, "back": 0, "off": 0, "until": 0}
        return run | {"opened": now, "set": now}

    def _adjust(self, wish: w.Adjust, at: int) -> str:
        run = self.runs.get(wish.run)
        if not run or run["state"] != "held":
            return "RUN_RESOLVED" if run else "NO_HOLD"
        if (run["held"], run["until"]) == (wish.amount, wish.until) or self._repeats(run["set"]):
            return self._again(run["set"])
        more = wish.amount - run["held"]
        against = self._against(run["where"], run["owner"], more) if more > 0 else ""
        if against and self.enforce:
            return against
        run.update(held=wish.amount, until=wish.until, set=len(self.asked) - 1)
        return "ok"

    def _charge(self, wish: w.Charge, at: int) -> str:
        return self._resolve(wish, "charged", wish.amount)

    def _release(self, wish: w.Release, at: int) -> str:
        return self._resolve(wish, "released", 0)

    def _resolve(self, wish: w.Charge | w.Release, state: str, cost: int) -> str:
        run = self.runs.get(wish.run)
        if run and run["state"] in ("charged", "released"):
            same = (run["state"], run["charged"] + run["off"]) == (state, cost)
            return self._again(run["set"]) if same or self._repeats(run["set"]) else "RUN_RESOLVED"
        if not run:
            offers = self._offers(wish)
            if not offers or not self.late:
                return "NO_HOLD" if offers else "NO_ALLOCATION"
            where = self._late_payer(offers, wish.owner or 0, cost)
            run = self.runs[wish.run] = self._run(where, wish.owner or 0)
        room = max(0, self.left(run["where"]) + run["held"])
        paid = min(cost, room) if self.enforce and self.write_off else cost
        run.update(state=state, held=0, charged=paid, off=cost - paid, set=len(self.asked) - 1)
        return "ok"

    def _late_payer(self, offers: list[int], uid: int, cost: int) -> int:
        """Who would have held it; then who has the credit, capped before frozen; then whoever is not frozen; then the first."""
        rich = [where for where in offers if self.left(where) >= cost]
        willing = [where for where in rich if not self._against(where, uid, cost)]
        capped = [where for where in rich if self._against(where, uid, cost) == "CAPPED"]
        thawed = [where for where in offers if self.allocations[where]["state"] != "frozen"]
        return (willing + capped + rich + thawed + offers)[0]

    def _lapse(self, wish: w.Lapse, at: int) -> str:
        run = self.runs.get(wish.run)
        if not run or run["state"] != "held":
            return "RUN_RESOLVED" if run else "NO_HOLD"
        if at < run["until"]:
            return "NOT_DUE"
        run.update(state="lapsed", held=0, set=len(self.asked) - 1)
        return "ok"

    def _refund(self, wish: w.Refund, at: int) -> str:
        run = self.runs.get(wish.run)
        if not run or run["state"] != "charged":
            return "WRONG_STATE" if run else "NO_HOLD"
        most = run["charged"] - run["back"]
        back = most if wish.amount is None else wish.amount
        if not back:
            return "NOTHING_BACK"
        if back > most:
            return "TOO_MUCH_BACK"
        run["back"] += back
        return "ok"

    def _recharge(self, wish: w.Recharge, at: int) -> str:
        run = self.runs.get(wish.run)
        if not run:
            return "NO_HOLD"
        if against := self._against_undoing(wish):
            return against
        back = self.refunded[wish.undoes]
        if back > max(0, self.left(run["where"])) and self.enforce and self.write_off:
            return "NOT_ENOUGH"  # of a charge some would be written off, and half a refund is not taken back
        run["back"] -= back
        self.undone.add(wish.undoes)
        return "ok"

    # --- credit ---

    def _deposit(self, wish: w.Deposit, at: int) -> str:
        return self._move(wish, (wish.allocation, wish.amount))

    def _withdraw(self, wish: w.Withdraw, at: int) -> str:
        return self._move(wish, (wish.allocation, -wish.amount))

    def _transfer(self, wish: w.Transfer, at: int) -> str:
        ends = [self.allocations.get(number) for number in (wish.source, wish.target)]
        if all(ends) and wish.source == wish.target:
            return "SAME_ALLOCATION"
        if all(ends) and len({each["resource"] for each in ends if each}) > 1:
            return "OTHER_RESOURCE"
        if all(ends) and (against := self._against_undoing(wish)):
            return against
        if all(ends) and any(each["state"] != "active" or each["end"] <= at for each in ends if each):
            return "WRONG_STATE"
        return self._move(wish, (wish.source, -wish.amount), (wish.target, wish.amount))

    def _move(self, wish: w.Deposit | w.Withdraw | w.Transfer, *moves: tuple[int, int]) -> str:
        """All of it or none."""
        if any(where not in self.allocations for where, _ in moves):
            return "UNKNOWN_ALLOCATION"
        if against := self._against_undoing(wish):
            return against
        if any(amount < 0 and self.free(where) + amount < 0 for where, amount in moves):
            return "NOT_ENOUGH"
        self.credit += moves
        self.undone |= {wish.undoes or 0}
        return "ok"

    # --- terms ---

    def _open(self, wish: w.Open, at: int) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        terms = {"project": wish.project, "resource": wish.resource, "start": wish.start, "end": wish.end}
        against = self._bad_period(0, terms)
        if not against:
            number = len(self.allocations) + 1
            self.allocations[number] = terms | {"state": "active", "shared": wish.shared, "limit": wish.credit_limit}
            self.words[number, None] = [self.allocations[number] | {"over": [0]}]  # no entry has this number: none opens it again
            self.credit.append((number, wish.deposit))
        return against or "ok"

    def _bad_period(self, number: int, terms: dict[str, Any]) -> str:
        if terms["end"] <= terms["start"]:
            return "BAD_PERIOD"
        others = [each for other, each in self.allocations.items() if other != number]
        same = [each for each in others if all(each[what] == terms[what] for what in ("project", "resource"))]
        return "OVERLAP" if any(max(each["start"], terms["start"]) < min(each["end"], terms["end"]) for each in same) else ""

    def _amend(self, wish: w.Amend, at: int) -> str:
        old = self.allocations.get(wish.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        if against := self._against_undoing(wish):
            return against
        if wish.undoes is not None:
            return self._put_back(wish, wish.undoes, old)
        given = {"start": wish.start, "end": wish.end, "shared": wish.shared, "limit": wish.credit_limit}
        new = old | {what: value for what, value in given.items() if value is not None}
        event = None if wish.event is None else wish.event.value
        over = old["state"] == "ended" or old["end"] <= at  # whether or not the sweep came by
        stands = "ended" if over and not (old["state"] == "frozen" and event == "thaw") else old["state"]
        new["state"] = LIFE.get((stands, event), "") if event else stands
        if not new["state"]:
            return "WRONG_STATE"
        if event == "end":  # the period ends now, but is never empty
            new["end"] = min(new["end"], max(at, new["start"] + 1))
        if new["state"] == "ended" and old["state"] == "frozen" and new["start"] < at:  # the freeze outlives the period
            new["state"] = "frozen"
        if against := self._bad_period(wish.allocation, new):
            return against
        if new["limit"] < old["limit"] and self.free(wish.allocation) + new["limit"] < 0:
            return "LIMIT_IN_USE"
        if event == "reopen" and new["end"] <= at:
            return "OVER"
        if over and event != "reopen" and new["end"] > at and (old["start"], old["end"]) != (new["start"], new["end"]):
            return "OVER"
        self._now(wish.allocation, new, at)
        return "ok"

    def _now(self, number: int, new: dict[str, Any], at: int, undoes: int | None = None) -> None:
        """New terms. Where these only say that the time is over, what was before may be undone all the same."""
        old, self.allocations[number] = self.allocations[number], new
        over = self.words[number, None][-1]["over"]
        self._say((number, None), undoes, new)
        if undoes is None and old["state"] != "ended" and new == old | {"state": "ended"} and at >= new["end"]:
            self.words[number, None][-1]["over"] = list(over)

    def _put_back(self, wish: w.Amend, undoes: int, old: dict[str, Any]) -> str:
        about = (wish.allocation, None)
        if undoes not in self.words[about][-1]["over"]:
            return "CHANGED_SINCE"
        if undoes in self.swept:
            return "OVER"
        new = {what: value for what, value in self._before(about, undoes).items() if what != "over"}
        given = {"start": wish.start, "end": wish.end, "shared": wish.shared, "limit": wish.credit_limit, "event": wish.event}
        if any(value not in (None, new.get(what)) for what, value in given.items()):
            return "NO_REVERSE"
        if against := self._bad_period(wish.allocation, new):
            return against
        if new["limit"] < old["limit"] and self.free(wish.allocation) + new["limit"] < 0:
            return "LIMIT_IN_USE"
        self._now(wish.allocation, new, 0, undoes)
        return "ok"

    def _expire(self, wish: w.Expire, at: int) -> str:
        old = self.allocations.get(wish.allocation)
        if not old:
            return "UNKNOWN_ALLOCATION"
        if old["state"] != "active" or at < old["end"]:
            return "WRONG_STATE" if old["state"] != "active" else "NOT_DUE"
        self._now(wish.allocation, old | {"state": "ended"}, at)
        return "ok"

    def _setcap(self, wish: w.SetCap, at: int) -> str:
        if wish.allocation not in self.allocations:
            return "UNKNOWN_ALLOCATION"
        if wish.by is not None and not self._may_cap(wish, wish.by):
            return "ROLE_ABOVE"
        about = (wish.allocation, wish.uid)
        words = self.words.setdefault(about, [{"cap": None, "over": [0]}])
        if against := self._against_undoing(wish):
            return against
        if wish.undoes is not None and wish.undoes not in words[-1]["over"]:
            return "CHANGED_SINCE"
        if wish.undoes is not None and wish.cap != self._before(about, wish.undoes)["cap"]:
            return "NO_REVERSE"
        self._say(about, wish.undoes, {"cap": wish.cap})
        self.caps[about] = wish.cap
        return "ok"

    def _may_cap(self, wish: w.SetCap, by: int) -> bool:
        below = ("pi", "coordinator", "member", None)
        mine, other = (below.index(self.members.get((wish.project or 0, uid))) for uid in (by, wish.uid))
        return bool(wish.project == self.allocations[wish.allocation]["project"] and mine < 2 and mine < other)

    # --- the office ---

    def _createproject(self, wish: w.CreateProject, at: int) -> str:
        facts = {"gname": wish.gname, "gid": wish.gid, "account": wish.account, "parent": wish.parent}
        if facts in self.projects.values():
            return "again"
        if any(each[what] == facts[what] for each in self.projects.values() for what in ("gname", "gid", "account")):
            return "EXISTS"
        if wish.parent is not None and wish.parent not in self.projects:
            return "UNKNOWN_PROJECT"
        self.projects[len(self.projects) + 1] = facts
        return "ok"

    def _setmember(self, wish: w.SetMember, at: int) -> str:
        if wish.project not in self.projects:
            return "UNKNOWN_PROJECT"
        if wish.by is not None:
            below = ("pi", "coordinator", "member")
            mine = below.index(self.members.get((wish.project, wish.by), "member"))
            touched = {self.members.get((wish.project, wish.uid)), wish.role and wish.role.value} - {None}
            if mine == below.index("member") or any(below.index(role) <= mine for role in touched if role):
                return "ROLE_ABOVE"
        self.members.pop((wish.project, wish.uid), None)
        if wish.role is not None:
            self.members[wish.project, wish.uid] = wish.role.value
        return "ok"

    def _issuetoken(self, wish: w.IssueToken, at: int) -> str:
        facts = {"uid": wish.uid, "label": wish.label, "scopes": wish.scopes, "expires": wish.expires}
        for token in self.tokens.values():
            if token["digest"] == wish.digest:
                return "again" if all(token[what] == value for what, value in facts.items()) else "TOKEN_TAKEN"
        self.tokens[len(self.tokens) + 1] = facts | {"digest": wish.digest, "created": at, "revoked": None}
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
