"""Undo of an entry: once, and whole, by the opposite entry in the same journal
(docs/decisions/0015).

The reverse is checked by the rule of its own kind, as if it had been requested, and names the entry
that it undoes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fairbank.bank.allocation import AllocationState
from fairbank.bank.entry import REGISTRY, UNDOING, Entry, Kind, facts_of, undone_by
from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.refusals import Detail, Reason, Refusal
from fairbank.bank.requests import (
    Deposit,
    Refund,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.rules import allocation_terms, credit, registry
from fairbank.bank.rules.outcome import Outcome
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt
from fairbank.core.units import SuMinutes


def undo(
    data: TransactionData, submitted: SubmittedRequest, request: Undo, policy: Policy
) -> Outcome:
    """Undo an entry, if its kind can be undone, and nothing has undone it or has changed the same
    since.

    The journal of the entry is locked, so two requests never both find it unchanged.
    """
    entry = data.run_entries.get(request.entry)
    if entry is None or entry.book != request.book:
        return Refusal(
            reason=Reason.UNKNOWN_ENTRY, detail=Detail.ENTRY, facts={"of_entry": request.entry}
        )
    if (no := _taken_back(data, entry)) is not None:
        return no
    match entry.kind:
        case Kind.DEPOSIT:
            return credit.withdraw(
                data,
                submitted,
                Withdraw(allocation=entry.book, amount=SuMinutes(entry.amount)),
                undoes=entry.id,
            )
        case Kind.WITHDRAW:
            return credit.deposit(
                data,
                submitted,
                Deposit(allocation=entry.book, amount=SuMinutes(entry.amount)),
                undoes=entry.id,
            )
        case Kind.TRANSFER_OUT:
            back = Transfer(
                source=facts_of(entry)["to"], target=entry.book, amount=SuMinutes(entry.amount)
            )
            return credit.transfer(data, submitted, back, undoes=entry.id)
        case Kind.REFUND if request.run is not None:
            return credit.recharge(data, submitted, request.run, entry, policy)
        case Kind.RECHARGE if request.run is not None:
            return credit.refund(
                data,
                submitted,
                Refund(run=request.run, amount=SuMinutes(entry.amount)),
                undoes=entry.id,
            )
        case Kind.TERMS | Kind.CAP | Kind.MEMBER:
            return _say_as_before(data, submitted, request, entry)
    return _never(entry, request.run)


_UNDONE = frozenset(UNDOING.values())


def cannot_undo(entry: Entry, run: Run | None) -> Refusal | None:
    """Return the refusal for a kind of entry that is never undone; None for the other kinds."""
    return None if entry.kind in _UNDONE else _never(entry, run)


def _never(entry: Entry, run: Run | None) -> Refusal:
    name = None if run is None else str(run)
    return Refusal(
        reason=Reason.CANNOT_UNDO,
        detail=_INSTEAD.get(entry.kind, Detail.ENTRY),
        allocation=entry.book or None,
        run=name,
        facts={"kind": entry.kind.value},
    )


# For these kinds of entries the refusal says what to do instead.
_INSTEAD: Mapping[Kind, Detail] = {
    Kind.TRANSFER_IN: Detail.TRANSFER_IN,
    Kind.HOLD: Detail.HOLD,
    Kind.ADJUST: Detail.ADJUST,
    Kind.CHARGE: Detail.CHARGE,
    Kind.RELEASE: Detail.RELEASE,
    Kind.LAPSE: Detail.LAPSE,
    Kind.OPEN: Detail.OPENING,
    Kind.PROJECT: Detail.PROJECT,
    Kind.TOKEN: Detail.TOKEN,
}


def _say_as_before(
    data: TransactionData, submitted: SubmittedRequest, request: Undo, entry: Entry
) -> Outcome:
    """Set the terms, the cap or the role to those before the entry."""
    before = _words_before(data.entries_like(entry), entry)
    if isinstance(before, Refusal):
        return before
    return _PUT_BACK[entry.kind](data, submitted, request, entry, before)


def _terms(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Undo,
    entry: Entry,
    before: Entry | None,
) -> Outcome:
    if before is None:
        raise Corrupt(f"no entry opens allocation {entry.book}", remedy="fairbank audit verify")
    return allocation_terms.put_back(data, submitted, before, undoes=entry.id)


def _cap(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Undo,
    entry: Entry,
    before: Entry | None,
) -> Outcome:
    cap = None if before is None else facts_of(before)["cap"]
    back = SetCap(
        allocation=entry.book, uid=entry.owner or 0, cap=cap, project=request.project, by=request.by
    )
    return allocation_terms.set_cap(data, submitted, back, undoes=entry.id)


def _role(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Undo,
    entry: Entry,
    before: Entry | None,
) -> Outcome:
    facts, role = facts_of(entry), None if before is None else facts_of(before)["role"]
    back = SetMember(
        project=facts["project"],
        uid=facts["uid"],
        role=None if role is None else Role(role),
        by=request.by,
    )
    return registry.set_member(data, submitted, back, undoes=entry.id)


_PUT_BACK: Mapping[
    Kind, Callable[[TransactionData, SubmittedRequest, Undo, Entry, Entry | None], Outcome]
] = {Kind.TERMS: _terms, Kind.CAP: _cap, Kind.MEMBER: _role}


def _words_before(said: Sequence[Entry], entry: Entry) -> Entry | Refusal | None:
    """Return the entry before an entry about the same, None if it is the first, or why it is not
    undone.

    Only the last change is undone, so that no later change is lost. Undone changes do not count,
    nor do entries of upkeep, which only record that time has passed.
    """
    standing = _standing(said)
    if entry not in standing:
        undone = {undone_by(each) for each in said}
        first = [each for each in standing if each.seq > entry.seq and each.id not in undone][-1]
        return Refusal(
            reason=Reason.CHANGED_SINCE,
            detail=Detail.CHANGED,
            allocation=entry.book or None,
            facts={"by_entry": first.id, "of_entry": entry.id},
        )
    before = said[place - 1] if (place := said.index(entry)) else None
    if before is not None and _only_expired(entry, before):
        return Refusal(
            reason=Reason.ALLOCATION_EXPIRED,
            detail=Detail.SWEPT,
            allocation=entry.book,
            facts={"of_entry": entry.id, "near_end": facts_of(entry)["end"]},
        )
    return before


def _standing(said: Sequence[Entry]) -> list[Entry]:
    """Return the entries that lead to the present state, newest first.

    They are the last one and, as long as an entry undoes another, the one before that.
    """
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
    """Return whether an entry only records that the period was over, as upkeep does."""
    if entry.kind is not Kind.TERMS or undone_by(entry) is not None:
        return False
    now, then, ended = facts_of(entry), facts_of(before), AllocationState.ENDED.value
    if then["state"] == ended or entry.at < now["end"]:
        return False
    return {**then, "state": ended, "undoes": None} == {
        **now,
        "undoes": None,
    } and entry.credit_limit == before.credit_limit


def _taken_back(data: TransactionData, entry: Entry) -> Refusal | None:
    other = data.undoing_entries.get(entry.id)
    if other is None:
        return None
    user = str(other.actor)
    if other.acting_as is not None:
        user += f" as user {other.acting_as}"
    return Refusal(
        reason=Reason.ALREADY_UNDONE,
        detail=Detail.UNDONE,
        allocation=None if entry.book == REGISTRY else entry.book,
        facts={"of_entry": entry.id, "by_entry": other.id, "by_user": user},
    )
