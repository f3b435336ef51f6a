"""Taking an entry back: once, whoever asks, and whole, by the opposite of what it did in its own book (docs/decisions/0015)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Amend, Asked, Deposit, Recharge, SetCap, Transfer, Withdraw
from fairbank.bank.working_set import WorkingSet

_OPPOSITE: Mapping[Kind, Kind] = {
    Kind.DEPOSIT: Kind.WITHDRAW,
    Kind.WITHDRAW: Kind.DEPOSIT,
    Kind.TRANSFER_OUT: Kind.TRANSFER_IN,
}


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


def refuse_restoring(work: WorkingSet, wish: Amend | SetCap, allocation: Allocation, stands: Callable[[Entry], bool]) -> Refusal | None:
    """Why terms or a cap may not be put back as they were before the entry that `wish` names; None when they may.

    They may while what that entry said still `stands`: later words are not lost with it, and once put back it stands no more.
    """
    if wish.undoes is None:
        return None
    entry = work.told.get(wish.undoes)
    if entry is None or entry.kind is not (Kind.TERMS if isinstance(wish, Amend) else Kind.CAP) or entry.book != allocation.id:
        return _no_reverse(wish.undoes, entry, allocation)
    if not stands(entry):
        about = f"what entry {wish.undoes} said was changed since, or taken back"
        return Refusal(reason=Reason.UNDONE, allocation=allocation.id, about=about)
    return None


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
    if wish.undoes is not None:
        work.undoing[wish.undoes] = entry
    return entry


def _reverses(wish: Deposit | Withdraw | Transfer, kind: Kind, allocation: Allocation, entry: Entry) -> bool:
    back = not isinstance(wish, Transfer) or facts_of(entry).get("to") == wish.source
    return back and _OPPOSITE.get(entry.kind) is kind and (entry.book, entry.amount) == (allocation.id, wish.amount)


def _about(entry: Entry) -> str:
    return f"entry {entry.id} is a {entry.kind.value} of {entry.amount} SU-minutes in the book of allocation {entry.book}"
