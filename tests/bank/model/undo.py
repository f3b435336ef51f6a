"""Requests of the model to undo entries."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairbank.bank import requests as w
from fairbank.bank.project import Role
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes
from tests.bank.model.credit import Credit
from tests.bank.model.registry import RegistryModel
from tests.bank.model.runs import Runs
from tests.bank.model.terms import Terms

NOWHERE = 999
"""Number of an allocation that does not exist, for unknown entries."""


class Recharge(NamedTuple):
    """Undone refund."""

    run: Run
    amount: int


class Before(NamedTuple):
    """Earlier terms, cap or role."""

    about: tuple[Any, ...]


class UndoModel(Runs, Credit, Terms, RegistryModel):
    """Undo by the opposite entry, once; of terms, caps and roles only the last change."""

    def record_entry(self, entry: int, amount: int) -> None:
        """Record the entry that the last granted request has made."""
        request = self.submitted[-1].request
        if isinstance(request, w.Undo):
            moved = isinstance(
                self.reversals[request.entry], w.Transfer
            )  # the first of its two entries belongs to the other allocation
            self.undone[request.entry] = entry + 1 if moved else entry
        opposite: Any = None
        match self.reversals[request.entry] if isinstance(request, w.Undo) else request:
            case w.Deposit() as done:
                opposite = w.Withdraw(allocation=done.allocation, amount=done.amount)
            case w.Withdraw() as done:
                opposite = w.Deposit(allocation=done.allocation, amount=done.amount)
            case w.Transfer() as done:
                opposite = w.Transfer(source=done.target, target=done.source, amount=done.amount)
            case w.Refund() as done:
                opposite = Recharge(done.run, amount)
            case Recharge() as done:
                opposite = w.Refund(run=done.run, amount=SuMinutes(amount))
            case w.Open(deposit=credit) if credit:
                opposite = w.Withdraw(allocation=len(self.allocations), amount=credit)
            case w.Amend() | w.Expire() as done:
                opposite = Before((done.allocation, None))
                if self.changes[opposite.about][-1][
                    "undoable"
                ]:  # the change before it can still be undone
                    self.expiry_entries.add(entry)
            case w.SetCap() as done:
                opposite = Before((done.allocation, done.uid))
            case w.SetMember() as done:
                opposite = Before(("role", done.project, done.uid))
            case Before() as done:
                opposite = done
        if isinstance(opposite, Before):
            self.changes[opposite.about][-1]["undoable"].insert(0, entry)
        if opposite is not None:
            self.reversals[entry] = opposite

    def _undo(self, request: w.Undo, at: int) -> str:
        """Apply the opposite request, once per entry."""
        if request.allocation == NOWHERE:
            return "UNKNOWN_ENTRY"
        if request.entry in self.undone:
            self.against = self.undone[request.entry]
            return "ALREADY_UNDONE"
        match self.reversals.get(request.entry):
            case None:
                return "CANNOT_UNDO"
            case Recharge() as opposite:
                answer = self._recharge(opposite)
            case Before(about):
                answer = self._put_back(about, request, at)
            case opposite:
                answer = str(getattr(self, f"_{type(opposite).__name__.lower()}")(opposite, at))
        return answer

    def _put_back(self, about: tuple[Any, ...], request: w.Undo, at: int) -> str:
        """Restore the earlier terms, cap or role if nothing changed them since."""
        undoable = self.changes[about][-1]["undoable"]
        if request.entry not in undoable:
            self.against = min(
                entry for entry in undoable if entry > request.entry and entry not in self.undone
            )
            return "CHANGED_SINCE"
        if request.entry in self.expiry_entries:
            return "ALLOCATION_EXPIRED"
        before = {
            what: value
            for what, value in self._before(about, request.entry).items()
            if what != "undoable"
        }
        if "cap" in before:
            opposite = w.SetCap(
                allocation=request.allocation,
                uid=request.uid or 0,
                cap=before["cap"],
                project=request.project,
                by=request.by,
            )
            return self._setcap(opposite, at, request.entry)
        if "role" in before:
            role = before["role"] and Role(before["role"])
            return self._setmember(
                w.SetMember(project=about[1], uid=about[2], role=role, by=request.by),
                at,
                request.entry,
            )
        old = self.allocations[request.allocation]
        if self.projects[old["project"]]["removed"]:
            return "PROJECT_REMOVED"
        if against := self._bad_period(request.allocation, before):
            return against
        if before["limit"] < old["limit"] and self.free(request.allocation) + before["limit"] < 0:
            return "LIMIT_IN_USE"
        self._set_terms(request.allocation, before, 0, request.entry)
        return "ok"

    def _recharge(self, opposite: Recharge) -> str:
        run = self.runs[opposite.run]
        if (
            opposite.amount > max(0, self.left(run["allocation"]))
            and self.enforce
            and self.write_off
        ):
            return (  # part of the charge would be written off, and a refund is not undone in part
                "NOT_ENOUGH"
            )
        run["refunded"] -= opposite.amount
        return "ok"
