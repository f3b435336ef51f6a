"""What takes back what."""

from __future__ import annotations

from typing import Any

from fairbank.bank import wish as w
from tests.bank.model.granted import Granted


class Undoing(Granted):
    """Each entry is undone once, and by its reverse alone; terms and caps only as long as nothing newer was said of them."""

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
