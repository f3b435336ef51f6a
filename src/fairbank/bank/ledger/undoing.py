"""Taking an entry back: once, whoever asks, and whole, by the opposite of what it did in its own book (docs/decisions/0015).

The reverse is judged by the rule of its own kind, as if somebody had asked for it, and posted with the number of what it takes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairbank.bank.allocation import AllocationState
from fairbank.bank.entry import OFFICE, UNDOING, Entry, Kind, facts_of, undone_by
from fairbank.bank.ledger import credit, office, terms
from fairbank.bank.ledger.outcome import Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.wish import Asked, Deposit, Refund, SetCap, SetMember, Transfer, Undo, Withdraw
from fairbank.bank.working_set import WorkingSet
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt
from fairbank.core.time import iso
from fairbank.core.units import SuMinutes


def undo(work: WorkingSet, asked: Asked, wish: Undo, policy: Policy) -> Outcome:
    """Take back what an entry did, if it is there, is of a kind that is taken back, and nothing else took it back or came after it.

    Whoever undoes an entry locks the book it stands in, so two never find it untouched.
    """
    entry = work.told.get(wish.entry)
    if entry is None or entry.book != wish.book:
        return Refusal(reason=Reason.UNKNOWN_ENTRY, about=f"entry {wish.entry}")
    if (no := _taken_back(work, entry)) is not None:
        return no
    match entry.kind:
        case Kind.DEPOSIT:
            return credit.withdraw(
                work,
                asked,
                Withdraw(allocation=entry.book, amount=SuMinutes(entry.amount)),
                undoes=entry.id,
            )
        case Kind.WITHDRAW:
            return credit.deposit(
                work,
                asked,
                Deposit(allocation=entry.book, amount=SuMinutes(entry.amount)),
                undoes=entry.id,
            )
        case Kind.TRANSFER_OUT:
            back = Transfer(
                source=facts_of(entry)["to"], target=entry.book, amount=SuMinutes(entry.amount)
            )
            return credit.transfer(work, asked, back, undoes=entry.id)
        case Kind.REFUND if wish.run is not None:
            return credit.recharge(work, asked, wish.run, entry, policy)
        case Kind.RECHARGE if wish.run is not None:
            return credit.refund(
                work, asked, Refund(run=wish.run, amount=SuMinutes(entry.amount)), undoes=entry.id
            )
        case Kind.TERMS | Kind.CAP | Kind.MEMBER:
            return _say_as_before(work, asked, wish, entry)
    return _never(entry, wish.run)


_UNDONE = frozenset(UNDOING.values())


def no_undoing(entry: Entry, run: Run | None) -> Refusal | None:
    """That entries of this kind are not taken back at all, whoever asks; None where they are. `run` is the one that it is about."""
    return None if entry.kind in _UNDONE else _never(entry, run)


def _never(entry: Entry, run: Run | None) -> Refusal:
    name = None if run is None else str(run)
    return Refusal(
        reason=Reason.NOT_UNDONE, allocation=entry.book or None, run=name, about=entry.kind.value
    )


def _say_as_before(work: WorkingSet, asked: Asked, wish: Undo, entry: Entry) -> Outcome:
    """Terms, a cap or a role are those before the entry, whole."""
    before = _words_before(work.words_like(entry), entry)
    if isinstance(before, Refusal):
        return before
    return _PUT_BACK[entry.kind](work, asked, wish, entry, before)


def _terms(
    work: WorkingSet, asked: Asked, wish: Undo, entry: Entry, before: Entry | None
) -> Outcome:
    if before is None:
        raise Corrupt(f"no entry opens allocation {entry.book}", remedy="fairbank audit verify")
    return terms.put_back(work, asked, before, undoes=entry.id)


def _cap(work: WorkingSet, asked: Asked, wish: Undo, entry: Entry, before: Entry | None) -> Outcome:
    cap = None if before is None else facts_of(before)["cap"]
    back = SetCap(
        allocation=entry.book, uid=entry.owner or 0, cap=cap, project=wish.project, by=wish.by
    )
    return terms.set_cap(work, asked, back, undoes=entry.id)


def _role(
    work: WorkingSet, asked: Asked, wish: Undo, entry: Entry, before: Entry | None
) -> Outcome:
    facts, role = facts_of(entry), None if before is None else facts_of(before)["role"]
    back = SetMember(
        project=facts["project"],
        uid=facts["uid"],
        role=None if role is None else Role(role),
        by=wish.by,
    )
    return office.set_member(work, asked, back, undoes=entry.id)


_PUT_BACK: Mapping[Kind, Callable[[WorkingSet, Asked, Undo, Entry, Entry | None], Outcome]] = {
    Kind.TERMS: _terms,
    Kind.CAP: _cap,
    Kind.MEMBER: _role,
}


def _words_before(said: Sequence[Entry], entry: Entry) -> Entry | Refusal | None:
    """Of all that was ever `said` of the same, what came before `entry`; or why that is not put back. None where nothing was said before.

    Only the last words are taken back, so that no later ones are lost with them. Words that were taken back count no more, and neither do
    those of the sweep, which only says what the clock made of them.
    """
    standing = _standing(said)
    if entry not in standing:
        undone = {undone_by(each) for each in said}
        first = [each for each in standing if each.seq > entry.seq and each.id not in undone][-1]
        about = f"entry {first.id} changed it after entry {entry.id}"
        return Refusal(reason=Reason.CHANGED_SINCE, allocation=entry.book or None, about=about)
    before = said[place - 1] if (place := said.index(entry)) else None
    if before is not None and _only_expired(entry, before):
        about = f"entry {entry.id} says only that allocation {entry.book} ended {iso(facts_of(entry)['end'])}"
        return Refusal(reason=Reason.OVER, allocation=entry.book, about=about)
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
    return {**then, "state": ended, "undoes": None} == {
        **now,
        "undoes": None,
    } and entry.credit_limit == before.credit_limit


def _taken_back(work: WorkingSet, entry: Entry) -> Refusal | None:
    other = work.undoing.get(entry.id)
    if other is None:
        return None
    who = f"user {other.actor}" + ("" if other.acting_as is None else f" as user {other.acting_as}")
    about = f"entry {entry.id} was taken back by entry {other.id}, of {who}"
    return Refusal(
        reason=Reason.UNDONE, allocation=None if entry.book == OFFICE else entry.book, about=about
    )
