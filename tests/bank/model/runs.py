"""Requests of the model about runs."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from tests.bank.model.ledger_state import LedgerState


class Runs(LedgerState):
    """Requests about runs. The answer is a word."""

    def _hold(self, request: w.Hold, at: int) -> str:
        reported = request.reported
        known = self.runs.get(reported.run)
        if known:
            if known["state"] != "held":
                return "RUN_CLOSED"
            first = self.submitted[known["opened"]].request
            facts = [
                (
                    report.owner,
                    report.reported.start,
                    report.reported.partition,
                    report.chain[0],
                    report.resource,
                )
                for report in (request, first)
            ]
            same = facts[0] == facts[1] and request.amount in (first.amount, known["held"])
            return (
                self._repeated(known["opened"])
                if same or self._repeats(known["opened"])
                else "HOLD_EXISTS"
            )
        candidates = self._candidates(request)
        willing = [
            number
            for number in candidates
            if not self._against(number, request.owner, request.amount)
        ]
        if not candidates:
            return "NO_ALLOCATION" if self.enforce else "ok"  # the job runs without a hold
        if not willing and self.enforce:
            return self._against(candidates[0], request.owner, request.amount)
        self.runs[reported.run] = self._run((willing or candidates)[0], request.owner) | {
            "held": request.amount,
            "until": reported.until,
            "project": request.chain[0],
        }
        return "ok"

    def _candidates(self, request: Any) -> list[int]:
        """Return allocations of the run's project, then shared allocations of its parents."""
        return [
            number
            for place, project in enumerate(request.chain)
            for number, allocation in self.allocations.items()
            if (allocation["project"], allocation["resource"]) == (project, request.resource)
            and allocation["start"] <= request.reported.start < allocation["end"]
            and allocation["state"] != "cancelled"  # ended before it began
            and (place == 0 or allocation["shared"])
        ]

    def _against(self, number: int, uid: int, more: int) -> str:
        if self.allocations[number]["state"] == "frozen":
            return "FROZEN"
        cap = self.caps.get((number, uid))
        own = self.held(number, uid) + self.charged(number, uid)
        if cap is not None and cap - own < self.left(number) and own + more > cap:
            return "CAPPED"
        return "INSUFFICIENT_CREDIT" if more > self.left(number) else ""

    def _run(self, number: int, owner: int) -> dict[str, Any]:
        now = len(self.submitted) - 1
        run = {
            "allocation": number,
            "owner": owner,
            "state": "held",
            "held": 0,
            "charged": 0,
            "refunded": 0,
            "written_off": 0,
            "until": 0,
        }
        return run | {"opened": now, "set": now}

    def _adjust(self, request: w.Adjust, at: int) -> str:
        run, until = self.runs.get(request.reported.run), request.reported.until
        if not run and not self.enforce:
            return "ok"  # the job runs without a hold
        if not run or run["state"] != "held":
            return "RUN_CLOSED" if run else "NO_HOLD"
        if not self._repeats(run["set"]) and not self._matches_hold(run, request):
            return "REPORT_MISMATCH"
        if (run["held"], run["until"]) == (request.amount, until) or self._repeats(run["set"]):
            return self._repeated(run["set"])
        more = request.amount - run["held"]
        against = self._against(run["allocation"], run["owner"], more) if more > 0 else ""
        if against and self.enforce:
            return against
        run.update(held=request.amount, until=until, set=len(self.submitted) - 1)
        return "ok"

    def _charge(self, request: w.Charge, at: int) -> str:
        return self._resolve(request, "charged", request.amount)

    def _release(self, request: w.Release, at: int) -> str:
        return self._resolve(request, "released", 0)

    def _resolve(self, request: w.Charge | w.Release, state: str, cost: int) -> str:
        run = self.runs.get(request.reported.run)
        if run and not self._repeats(run["set"]) and not self._matches_hold(run, request):
            return "REPORT_MISMATCH"
        if run and run["state"] in ("charged", "released"):
            same = (run["state"], run["charged"] + run["written_off"]) == (state, cost)
            return self._repeated(run["set"]) if same or self._repeats(run["set"]) else "RUN_CLOSED"
        if not run:
            candidates = self._candidates(request)
            if not candidates or not self.late:
                return "NO_HOLD" if candidates else "NO_ALLOCATION"
            number = self._late_payer(candidates, request.owner, cost)
            run = self._run(number, request.owner) | {"project": request.chain[0]}
            self.runs[request.reported.run] = run
        available = max(0, self.left(run["allocation"]) + run["held"])
        paid = min(cost, available) if self.enforce and self.write_off else cost
        run.update(
            state=state, held=0, charged=paid, written_off=cost - paid, set=len(self.submitted) - 1
        )
        return "ok"

    def _matches_hold(self, run: dict[str, Any], request: w.Adjust | w.Charge | w.Release) -> bool:
        return (request.owner, request.chain[0]) == (run["owner"], run["project"])

    def _late_payer(self, candidates: list[int], uid: int, cost: int) -> int:
        """Return the allocation that pays: one that could hold the cost, else one with the credit,
        else one that is not frozen.
        """
        rich = [number for number in candidates if self.left(number) >= cost]
        willing = [number for number in rich if not self._against(number, uid, cost)]
        capped = [number for number in rich if self._against(number, uid, cost) == "CAPPED"]
        thawed = [number for number in candidates if self.allocations[number]["state"] != "frozen"]
        return (willing + capped + rich + thawed + candidates)[0]

    def _lapse(self, request: w.Lapse, at: int) -> str:
        run = self.runs.get(request.run)
        if not run or run["state"] != "held":
            return "RUN_CLOSED" if run else "NO_HOLD"
        if at < run["until"]:
            return "NOT_DUE"
        run.update(state="lapsed", held=0, set=len(self.submitted) - 1)
        return "ok"

    def _refund(self, request: w.Refund, at: int) -> str:
        run = self.runs.get(request.run)
        if not run or run["state"] != "charged":
            return "WRONG_STATE" if run else "NO_HOLD"
        most = run["charged"] - run["refunded"]
        amount = most if request.amount is None else request.amount
        if not amount:
            return "NOTHING_TO_REFUND"
        if amount > most:
            return "REFUND_TOO_LARGE"
        run["refunded"] += amount
        return "ok"
