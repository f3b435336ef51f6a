"""Undo of an entry: once, and whole, by the opposite entry in the same journal
(docs/decisions/0015).

The reverse is checked by the rule of its own kind, as if it had been requested, and names the entry
that it undoes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairbank.bank.allocation import AllocationState
from fairbank.bank.entry import REGISTRY, UNDOING, Entry, Kind, facts_of, undone_entry
from fairbank.bank.project import Role
from fairbank.bank.refusals import Detail, Reason, Refusal
from fairbank.bank.requests import Deposit, Refund, SetCap, SetMember, Transfer, Undo, Withdraw
from fairbank.bank.rules import allocation_terms, credit, registry
from fairbank.bank.rules.context import Outcome, RuleContext
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import Run
from fairbank.core.errors import Corrupt
from fairbank.core.units import SuMinutes


def undo(context: RuleContext, request: Undo) -> Outcome:
    """Undo an entry, if its kind can be undone, and nothing has undone it or has changed the same
    since.

    The journal of the entry is locked, so two requests never both find it unchanged.
    """
    entry = context.data.run_entries.get(request.entry)
    if entry is None or entry.allocation != request.allocation:
        return Refusal(Reason.UNKNOWN_ENTRY, Detail.ENTRY, facts={"of_entry": request.entry})
    if (refusal := _taken_back(context.data, entry)) is not None:
        return refusal
    context = context._replace(undoes=entry.id)
    allocation, amount, run = entry.allocation, SuMinutes(entry.amount), request.run
    match entry.kind:
        case Kind.DEPOSIT:
            return credit.withdraw(context, Withdraw(allocation=allocation, amount=amount))
        case Kind.WITHDRAW:
            return credit.deposit(context, Deposit(allocation=allocation, amount=amount))
        case Kind.TRANSFER_OUT:
            back = Transfer(source=facts_of(entry)["to"], target=allocation, amount=amount)
            return credit.transfer(context, back)
        case Kind.REFUND if run is not None:
            return credit.recharge(context, run, entry)
        case Kind.RECHARGE if run is not None:
            return credit.refund(context, Refund(run=run, amount=amount))
        case Kind.TERMS | Kind.CAP | Kind.MEMBER:
            before = _entry_before(context.data.entries_like(entry), entry)
            if isinstance(before, Refusal):
                return before
            return _restore(context, request, entry, before)
    return _never(entry, run)


def _restore(context: RuleContext, request: Undo, entry: Entry, before: Entry | None) -> Outcome:
    """Set the terms, the cap or the role to those of the entry before; None: it was the first."""
    if entry.kind is Kind.TERMS:
        if before is None:
            raise Corrupt(
                f"no entry opens allocation {entry.allocation}", remedy="fairbank audit verify"
            )
        return allocation_terms.put_back(context, before)
    facts, earlier = facts_of(entry), {} if before is None else facts_of(before)
    if entry.kind is Kind.CAP:
        cap = SetCap(
            allocation=entry.allocation,
            uid=entry.owner or 0,
            cap=earlier.get("cap"),
            project=request.project,
            by=request.by,
        )
        return allocation_terms.set_cap(context, cap)
    role = earlier.get("role")
    member = SetMember(
        project=facts["project"],
        uid=facts["uid"],
        role=None if role is None else Role(role),
        by=request.by,
    )
    return registry.set_member(context, member)


_UNDONE = frozenset(UNDOING.values())


def cannot_undo(entry: Entry, run: Run | None) -> Refusal | None:
    """Return the refusal for a kind of entry that is never undone; None for the other kinds."""
    return None if entry.kind in _UNDONE else _never(entry, run)


def _never(entry: Entry, run: Run | None) -> Refusal:
    return Refusal(
        Reason.CANNOT_UNDO,
        _INSTEAD.get(entry.kind, Detail.ENTRY),
        allocation=entry.allocation or None,
        run=None if run is None else str(run),
        facts={"kind": entry.kind.value, "run_id": entry.run},
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
    Kind.REFUSAL: Detail.RECORD,
    Kind.DECLINED: Detail.RECORD,
    Kind.NOTE: Detail.RECORD,
    Kind.PROJECT: Detail.PROJECT,
    Kind.TOKEN: Detail.TOKEN,
}


def _entry_before(entries: Sequence[Entry], entry: Entry) -> Entry | Refusal | None:
    """Return the entry before an entry about the same, None if it is the first, or why it is not
    undone.

    Only the last change is undone, so that no later change is lost. Undone changes do not count,
    nor do entries of upkeep, which only record that time has passed.

    Args:
        entries: all entries about the same, in their order.
        entry: the one to undo.
    """
    standing = _standing(entries)
    if entry not in standing:
        undone = {undone_entry(other) for other in entries}
        later = [other for other in standing if other.seq > entry.seq and other.id not in undone]
        return Refusal(
            Reason.CHANGED_SINCE,
            Detail.CHANGED,
            allocation=entry.allocation or None,
            facts={"by_entry": later[-1].id, "of_entry": entry.id},
        )
    place = entries.index(entry)
    before = entries[place - 1] if place else None
    if before is not None and _is_expiry(entry, before):
        return Refusal(
            Reason.ALLOCATION_EXPIRED,
            Detail.SWEPT,
            allocation=entry.allocation,
            facts={"of_entry": entry.id, "near_end": facts_of(entry)["end"]},
        )
    return before


def _standing(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that lead to the present state, newest first.

    They are the last one and, as long as an entry undoes another, the one before that.
    """
    standing, place = [], len(entries) - 1
    places = {other.id: place for place, other in enumerate(entries)}
    while place >= 0:
        standing.append(entries[place])
        back = undone_entry(entries[place])
        if place and _is_expiry(entries[place], entries[place - 1]):
            place -= 1
        else:
            place = -1 if back is None else places.get(back, 0) - 1
    return standing


def _is_expiry(entry: Entry, before: Entry) -> bool:
    """Return whether an entry only records that the period was over, as upkeep does."""
    if entry.kind is not Kind.TERMS or undone_entry(entry) is not None:
        return False
    now, then, ended = facts_of(entry), facts_of(before), AllocationState.ENDED.value
    if then["state"] == ended or entry.at < now["end"]:
        return False
    expired = {**then, "state": ended, "undoes": None}
    return expired == {**now, "undoes": None} and entry.credit_limit == before.credit_limit


def _taken_back(data: TransactionData, entry: Entry) -> Refusal | None:
    other = data.undoing_entries.get(entry.id)
    if other is None:
        return None
    user = str(other.actor)
    if other.acting_as is not None:
        user += f" as user {other.acting_as}"
    return Refusal(
        Reason.ALREADY_UNDONE,
        Detail.UNDONE,
        allocation=None if entry.allocation == REGISTRY else entry.allocation,
        facts={"of_entry": entry.id, "by_entry": other.id, "by_user": user},
    )
