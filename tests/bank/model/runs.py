"""Runs, as the model has them."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from tests.bank.model.granted import Granted


class Runs(Granted):
    """Requests about runs, each answered with a word."""

    def _hold(self, request: w.Hold, at: int) -> str:
        known = self.runs.get(request.run)
        if known:
            if known["state"] != "held":
                return "RUN_CLOSED"
            first = self.asked[known["opened"]].request
            facts = [
                (each.owner, each.start, each.partition, each.chain[0], each.resource)
                for each in (request, first)
            ]
            same = facts[0] == facts[1] and request.amount in (first.amount, known["held"])
            return (
                self._again(known["opened"])
                if same or self._repeats(known["opened"])
                else "HOLD_EXISTS"
            )
        offers = self._offers(request)
        willing = [
            where for where in offers if not self._against(where, request.owner, request.amount)
        ]
        if not offers:
            return "NO_ALLOCATION" if self.enforce else "ok"  # let through, nothing is held
        if not willing and self.enforce:
            return self._against(offers[0], request.owner, request.amount)
        self.runs[request.run] = self._run((willing or offers)[0], request.owner) | {
            "held": request.amount,
            "until": request.until,
        }
        self.runs[request.run]["project"] = request.chain[0]
        return "ok"

    def _offers(self, request: Any) -> list[int]:
        """The run's own project first, then what its parents share."""
        return [
            number
            for place, project in enumerate(request.chain)
            for number, each in self.allocations.items()
            if (each["project"], each["resource"]) == (project, request.resource)
            and each["start"] <= request.start < each["end"]
            and not (
                each["state"] == "ended" and each["end"] - each["start"] == 1
            )  # ended before it began
            and (place == 0 or each["shared"])
        ]

    def _against(self, where: int, uid: int, more: int) -> str:
        if self.allocations[where]["state"] == "frozen":
            return "FROZEN"
        if more > self.left(where):
            return "INSUFFICIENT_CREDIT"
        cap = self.caps.get((where, uid))
        return (
            "CAPPED"
            if cap is not None and self.held(where, uid) + self.charged(where, uid) + more > cap
            else ""
        )

    def _run(self, where: int, owner: int) -> dict[str, Any]:
        now = len(self.asked) - 1
        run = {
            "where": where,
            "owner": owner,
            "state": "held",
            "held": 0,
            "charged": 0,
            "back": 0,
            "off": 0,
            "until": 0,
        }
        return run | {"opened": now, "set": now}

    def _adjust(self, request: w.Adjust, at: int) -> str:
        run = self.runs.get(request.run)
        if not run and request.owner is not None and not self.enforce:
            return "ok"  # let through, nothing is held
        if not run or run["state"] != "held":
            return "RUN_CLOSED" if run else "NO_HOLD"
        if not self._repeats(run["set"]) and not self._is_its_own(run, request):
            return "REPORT_MISMATCH"
        if (run["held"], run["until"]) == (request.amount, request.until) or self._repeats(
            run["set"]
        ):
            return self._again(run["set"])
        more = request.amount - run["held"]
        against = self._against(run["where"], run["owner"], more) if more > 0 else ""
        if against and self.enforce:
            return against
        run.update(held=request.amount, until=request.until, set=len(self.asked) - 1)
        return "ok"

    def _charge(self, request: w.Charge, at: int) -> str:
        return self._resolve(request, "charged", request.amount)

    def _release(self, request: w.Release, at: int) -> str:
        return self._resolve(request, "released", 0)

    def _resolve(self, request: w.Charge | w.Release, state: str, cost: int) -> str:
        run = self.runs.get(request.run)
        if run and not self._repeats(run["set"]) and not self._is_its_own(run, request):
            return "REPORT_MISMATCH"
        if run and run["state"] in ("charged", "released"):
            same = (run["state"], run["charged"] + run["off"]) == (state, cost)
            return self._again(run["set"]) if same or self._repeats(run["set"]) else "RUN_CLOSED"
        if not run:
            offers = self._offers(request)
            if not offers or not self.late:
                return "NO_HOLD" if offers else "NO_ALLOCATION"
            where = self._late_payer(offers, request.owner or 0, cost)
            run = self.runs[request.run] = self._run(where, request.owner or 0) | {
                "project": request.chain[0]
            }
        room = max(0, self.left(run["where"]) + run["held"])
        paid = min(cost, room) if self.enforce and self.write_off else cost
        run.update(state=state, held=0, charged=paid, off=cost - paid, set=len(self.asked) - 1)
        return "ok"

    def _is_its_own(self, run: dict[str, Any], request: w.Adjust | w.Charge | w.Release) -> bool:
        return request.owner is None or (request.owner, request.chain[0]) == (
            run["owner"],
            run["project"],
        )

    def _late_payer(self, offers: list[int], uid: int, cost: int) -> int:
        """Return the payer: who could hold it, else who has the credit, else who is not frozen."""
        rich = [where for where in offers if self.left(where) >= cost]
        willing = [where for where in rich if not self._against(where, uid, cost)]
        capped = [where for where in rich if self._against(where, uid, cost) == "CAPPED"]
        thawed = [where for where in offers if self.allocations[where]["state"] != "frozen"]
        return (willing + capped + rich + thawed + offers)[0]

    def _lapse(self, request: w.Lapse, at: int) -> str:
        run = self.runs.get(request.run)
        if not run or run["state"] != "held":
            return "RUN_CLOSED" if run else "NO_HOLD"
        if at < run["until"]:
            return "NOT_DUE"
        run.update(state="lapsed", held=0, set=len(self.asked) - 1)
        return "ok"

    def _refund(self, request: w.Refund, at: int) -> str:
        run = self.runs.get(request.run)
        if not run or run["state"] != "charged":
            return "WRONG_STATE" if run else "NO_HOLD"
        most = run["charged"] - run["back"]
        back = most if request.amount is None else request.amount
        if not back:
            return "NOTHING_TO_REFUND"
        if back > most:
            return "REFUND_TOO_LARGE"
        run["back"] += back
        return "ok"
