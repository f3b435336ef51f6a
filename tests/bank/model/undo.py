"""Undo of entries."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairbank.bank import requests as w
from fairbank.bank.project import Role
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes
from tests.bank.model.credit import Credit
from tests.bank.model.registry import RegistryHead
from tests.bank.model.runs import Runs
from tests.bank.model.terms import Terms

NOWHERE = 999
"""A book that is not there, of entries that are not."""


class Recharge(NamedTuple):
    """Undone refund."""

    run: Run
    amount: int


class Before(NamedTuple):
    """Earlier terms, cap or role."""

    about: tuple[Any, ...]


class Undoing(Runs, Credit, Terms, RegistryHead):
    """Undo by the opposite entry, once; of terms, caps and roles only the last change."""

    def told(self, entry: int, amount: int) -> None:
        """Record the entry that the last granted request has made."""
        request = self.asked[-1].request
        if isinstance(request, w.Undo):
            moved = isinstance(
                self.reverse[request.entry], w.Transfer
            )  # its first half stands in the other book
            self.undone[request.entry] = entry + 1 if moved else entry
        back: Any = None
        match self.reverse[request.entry] if isinstance(request, w.Undo) else request:
            case w.Deposit() as done:
                back = w.Withdraw(allocation=done.allocation, amount=done.amount)
            case w.Withdraw() as done:
                back = w.Deposit(allocation=done.allocation, amount=done.amount)
            case w.Transfer() as done:
                back = w.Transfer(source=done.target, target=done.source, amount=done.amount)
            case w.Refund() as done:
                back = Recharge(done.run, amount)
            case Recharge() as done:
                back = w.Refund(run=done.run, amount=SuMinutes(amount))
            case w.Open(deposit=credit) if credit:
                back = w.Withdraw(allocation=len(self.allocations), amount=credit)
            case w.Amend() | w.Expire() as done:
                back = Before((done.allocation, None))
                if self.words[back.about][-1]["over"]:  # it left what was before to be undone
                    self.swept.add(entry)
            case w.SetCap() as done:
                back = Before((done.allocation, done.uid))
            case w.SetMember() as done:
                back = Before(("role", done.project, done.uid))
            case Before() as done:
                back = done
        if isinstance(back, Before):
            self.words[back.about][-1]["over"].insert(0, entry)
        if back is not None:
            self.reverse[entry] = back

    def _undo(self, request: w.Undo, at: int) -> str:
        """Each entry once, by its reverse."""
        if request.book == NOWHERE:
            return "UNKNOWN_ENTRY"
        if request.entry in self.undone:
            self.against = self.undone[request.entry]
            return "ALREADY_UNDONE"
        match self.reverse.get(request.entry):
            case None:
                return "CANNOT_UNDO"
            case Recharge() as back:
                word = self._recharge(back)
            case Before(about):
                word = self._put_back(about, request, at)
            case back:
                word = str(getattr(self, f"_{type(back).__name__.lower()}")(back, at))
        return word

    def _put_back(self, about: tuple[Any, ...], request: w.Undo, at: int) -> str:
        """Restore the earlier terms, cap or role if nothing changed them since."""
        over = self.words[about][-1]["over"]
        if request.entry not in over:
            self.against = min(
                each for each in over if each > request.entry and each not in self.undone
            )
            return "CHANGED_SINCE"
        if request.entry in self.swept:
            return "ALLOCATION_EXPIRED"
        before = {
            what: value
            for what, value in self._before(about, request.entry).items()
            if what != "over"
        }
        if "cap" in before:
            back = w.SetCap(
                allocation=request.book,
                uid=request.uid or 0,
                cap=before["cap"],
                project=request.project,
                by=request.by,
            )
            return self._setcap(back, at, request.entry)
        if "role" in before:
            role = before["role"] and Role(before["role"])
            return self._setmember(
                w.SetMember(project=about[1], uid=about[2], role=role, by=request.by),
                at,
                request.entry,
            )
        old = self.allocations[request.book]
        if self.projects[old["project"]]["removed"]:
            return "PROJECT_REMOVED"
        if against := self._bad_period(request.book, before):
            return against
        if before["limit"] < old["limit"] and self.free(request.book) + before["limit"] < 0:
            return "LIMIT_IN_USE"
        self._now(request.book, before, 0, request.entry)
        return "ok"

    def _recharge(self, back: Recharge) -> str:
        run = self.runs[back.run]
        if back.amount > max(0, self.left(run["where"])) and self.enforce and self.write_off:
            return (  # of a charge some would be written off, and half a refund is not taken back
                "NOT_ENOUGH"
            )
        run["back"] -= back.amount
        return "ok"
