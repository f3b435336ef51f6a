"""What takes back what."""

from __future__ import annotations

from typing import Any, NamedTuple

from fairbank.bank import wish as w
from fairbank.bank.project import Role
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes
from tests.bank.model.credit import Credit
from tests.bank.model.office import Office
from tests.bank.model.runs import Runs
from tests.bank.model.terms import Terms

NOWHERE = 999
"""A book that is not there, of entries that are not."""


class Recharge(NamedTuple):
    """A refund taken back."""

    run: Run
    amount: int


class Before(NamedTuple):
    """What was said of something before."""

    about: tuple[Any, ...]


class Undoing(Runs, Credit, Terms, Office):
    """Each entry is undone once, by its reverse; terms, caps and roles only as long as nothing newer was said of them."""

    def told(self, entry: int, amount: int) -> None:
        """The number of the entry that the last question, granted just now, has made."""
        wish = self.asked[-1].wish
        if isinstance(wish, w.Undo):
            moved = isinstance(
                self.reverse[wish.entry], w.Transfer
            )  # its first half stands in the other book
            self.undone[wish.entry] = entry + 1 if moved else entry
        back: Any = None
        match self.reverse[wish.entry] if isinstance(wish, w.Undo) else wish:
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

    def _undo(self, wish: w.Undo, at: int) -> str:
        """Each entry once, by its reverse."""
        if wish.book == NOWHERE:
            return "UNKNOWN_ENTRY"
        if wish.entry in self.undone:
            self.against = self.undone[wish.entry]
            return "UNDONE"
        match self.reverse.get(wish.entry):
            case None:
                return "NOT_UNDONE"
            case Recharge() as back:
                word = self._recharge(back)
            case Before(about):
                word = self._put_back(about, wish, at)
            case back:
                word = str(getattr(self, f"_{type(back).__name__.lower()}")(back, at))
        return word

    def _put_back(self, about: tuple[Any, ...], wish: w.Undo, at: int) -> str:
        """What was said before is said again, if nothing was said since."""
        over = self.words[about][-1]["over"]
        if wish.entry not in over:
            self.against = min(
                each for each in over if each > wish.entry and each not in self.undone
            )
            return "CHANGED_SINCE"
        if wish.entry in self.swept:
            return "OVER"
        before = {
            what: value for what, value in self._before(about, wish.entry).items() if what != "over"
        }
        if "cap" in before:
            back = w.SetCap(
                allocation=wish.book,
                uid=wish.uid or 0,
                cap=before["cap"],
                project=wish.project,
                by=wish.by,
            )
            return self._setcap(back, at, wish.entry)
        if "role" in before:
            role = before["role"] and Role(before["role"])
            return self._setmember(
                w.SetMember(project=about[1], uid=about[2], role=role, by=wish.by), at, wish.entry
            )
        old = self.allocations[wish.book]
        if self.projects[old["project"]]["removed"]:
            return "PROJECT_REMOVED"
        if against := self._bad_period(wish.book, before):
            return against
        if before["limit"] < old["limit"] and self.free(wish.book) + before["limit"] < 0:
            return "LIMIT_IN_USE"
        self._now(wish.book, before, 0, wish.entry)
        return "ok"

    def _recharge(self, back: Recharge) -> str:
        run = self.runs[back.run]
        if back.amount > max(0, self.left(run["where"])) and self.enforce and self.write_off:
            return "NOT_ENOUGH"  # of a charge some would be written off, and half a refund is not taken back
        run["back"] -= back.amount
        return "ok"
