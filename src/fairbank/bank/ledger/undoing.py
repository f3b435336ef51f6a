"""Taking an entry back: once, whoever asks, and whole, by the opposite of what it did in its own book (docs/decisions/0015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import UNDOING, Entry, Kind, facts_of, undone_by
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Amend, Asked, Deposit, Recharge, SetCap, Transfer, Withdraw
from fairbank.bank.working_set import WorkingSet
from fairbank.values.time import iso


def refuse_undoing(work: WorkingSet, wish: Deposit | Withdraw | Transfer, kind: Kind, allocation: Allocation) -> Refusal | None:
    """Why the entry of `kind` that `wish` asks for in `allocation` may not take back the entry it names; None when it may.

    Whoever undoes an entry locks the allocation it stands in, so two never find it untouched.
    """
    if wish.undoes is None:
        return None
    if (no := _taken_back(work, wish.undoes, allocation)) is not None:
        return no
    entry = work.told.get(wish.undoes)
    if entry is None or not _reverses(wish, kind, allocation, entry):
        return _no_reverse(wish.undoes, entry, allocation, wish.amount)
    return None


def refund_to_undo(work: WorkingSet, wish: Recharge, known: RunRecord, allocation: Allocation) -> Entry | Refusal:
    """The refund of the run that `wish` takes back, or why it may not."""
    if (no := _taken_back(work, wish.undoes, allocation)) is not None:
        return no
    entry = work.told.get(wish.undoes)
    if entry is None or (entry.kind, entry.run) != (Kind.REFUND, known.id):
        return _no_reverse(wish.undoes, entry, allocation)
    return entry


def words_before(work: WorkingSet, wish: Amend | SetCap, undoes: int, allocation: Allocation) -> Entry | Refusal | None:
    """The entry whose terms or cap `wish` puts back, or why it may not; None where nothing was said before: of a cap alone.

    It may take back the last words, so that no later ones are lost with them. Words that were taken back count no more, and neither do
    those of the sweep, which only says what the clock made of them.
    """
    if (no := _taken_back(work, undoes, allocation)) is not None:
        return no
    entry, kind = work.told.get(undoes), Kind.TERMS if isinstance(wish, Amend) else Kind.CAP
    if entry is None or (entry.kind, entry.book) != (kind, allocation.id) or (isinstance(wish, SetCap) and entry.owner != wish.uid):
        return _no_reverse(undoes, entry, allocation)
    said = work.words_like(entry)
    standing = _standing(said)
    if entry not in standing:
        undone = {undone_by(each) for each in said}
        later = [each for each in standing if each.id not in undone][-1]
        about = f"entry {later.id} changed it after entry {undoes}"
        return Refusal(reason=Reason.CHANGED_SINCE, allocation=allocation.id, about=about)
    before = said[place - 1] if (place := said.index(entry)) else None
    if before is not None and _only_expired(entry, before):
        about = f"entry {undoes} says only that allocation {allocation.id} ended {iso(allocation.end)}"
        return Refusal(reason=Reason.OVER, allocation=allocation.id, about=about)
    return before


def _standing(said: Sequence[Entry]) -> list[Entry]:
    """The words after which all is as it is now, newest first: the last ones, and where those took others back, the last before these."""
    standing, place = [], len(said) - 1
    places = {each.id: place for place, each in enumerate(said)}
    while place >= 0:
        standing.append(said[place])
        back = undone_by(said[place])
        if place and _only_expired(said[place], said[place - 1]):
            place -= 1
        else:
            place = -1 if back is None else places.get(back, 0) - 1
    return standing


def _only_expired(entry: Entry, before: Entry) -> bool:
    """Whether the terms only say what time made of those before: as the sweep writes them when a period is over."""
    if entry.kind is not Kind.TERMS or undone_by(entry) is not None:
        return False
    now, then, ended = facts_of(entry), facts_of(before), AllocationState.ENDED.value
    if then["state"] == ended or entry.at < now["end"]:
        return False
    return {**then, "state": ended, "undoes": None} == {**now, "undoes": None} and entry.credit_limit == before.credit_limit


def no_reverse(undoes: int, allocation: Allocation, due: str) -> Refusal:
    """That a wish asks for other terms, or another cap, than taking the entry back puts back: these are `due`."""
    return Refusal(reason=Reason.NO_REVERSE, allocation=allocation.id, about=f"before entry {undoes} there was {due}")


def _taken_back(work: WorkingSet, undoes: int, allocation: Allocation) -> Refusal | None:
    other = work.undoing.get(undoes)
    if other is None:
        return None
    who = f"user {other.actor}" + ("" if other.acting_as is None else f" as user {other.acting_as}")
    about = f"entry {undoes} was taken back by entry {other.id}, of {who}"
    return Refusal(reason=Reason.UNDONE, allocation=allocation.id, about=about)


def _no_reverse(undoes: int, entry: Entry | None, allocation: Allocation, asked: int = 0) -> Refusal:
    about = f"entry {undoes} is no such entry of allocation {allocation.id}" if entry is None else _about(entry)
    return Refusal(reason=Reason.NO_REVERSE, asked=asked, allocation=allocation.id, about=about)


def post_undoing(
    work: WorkingSet,
    asked: Asked,
    wish: Deposit | Withdraw | Transfer,
    kind: Kind,
    after: Allocation,
    facts: Mapping[str, int] | None = None,
) -> Entry:
    """Post the entry of `kind` with the fact that it takes another back, where it does."""
    told = {**(facts or {}), **({} if wish.undoes is None else {"undoes": wish.undoes})}  # in this order: stores look at the end
    entry = work.post(asked, kind, wish.amount, after, details=msgspec.json.encode(told).decode() if told else None)
    return entry if wish.undoes is None else work.undo(wish.undoes, entry)


def _reverses(wish: Deposit | Withdraw | Transfer, kind: Kind, allocation: Allocation, entry: Entry) -> bool:
    back = not isinstance(wish, Transfer) or facts_of(entry).get("to") == wish.source
    return back and UNDOING[kind] is entry.kind and (entry.book, entry.amount) == (allocation.id, wish.amount)


def _about(entry: Entry) -> str:
    words = entry.kind in (Kind.OPEN, Kind.TERMS, Kind.CAP)
    what = "says terms or a cap" if words else f"is of the kind {entry.kind.value}, over {entry.amount} SU-minutes,"
    return f"entry {entry.id} {what} in the book of allocation {entry.book}"
