"""Rules of allocations: create them, change their terms, cap users."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import (
    NEXT,
    Allocation,
    AllocationEvent,
    AllocationState,
    AllocationTerms,
    overlapping,
)
from fairbank.bank.entry import Entry, Kind, facts_of, terms_of
from fairbank.bank.policy import is_countable
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import Amend, Expire, Open, SetCap
from fairbank.bank.rules.context import Done, Outcome, RuleContext, done
from fairbank.bank.rules.grants import refuse_grant
from fairbank.bank.rules.registry import (
    is_above,
    refuse_project,
    removed_allocation,
    removed_project,
)
from fairbank.bank.run import UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant

_ACTIVE, _FROZEN, _ENDED = AllocationState.ACTIVE, AllocationState.FROZEN, AllocationState.ENDED
_CANCELLED, _REMOVED = AllocationState.CANCELLED, AllocationState.REMOVED
_NO_CHANGE = frozenset({(after, event) for (_, event), after in NEXT.items()})
_replace = msgspec.structs.replace


def open_allocation(context: RuleContext, request: Open) -> Outcome:
    """Create an allocation whose period overlaps no other of its project and resource."""
    data, terms = context.data, request.terms
    if (refusal := refuse_project(data, terms.project)) is not None:
        return refusal
    if terms.end <= terms.start:
        return _empty_period(terms, None)
    if not is_countable(terms.credit_limit + request.deposit):
        return Refusal(Reason.TOO_LARGE, requested=request.deposit, project=terms.project)
    fresh = Allocation(id=0, terms=terms)
    # Before the overlap: another period would not make the grant one of its category.
    if (outside := refuse_grant(context, _replace(fresh, deposited=request.deposit))) is not None:
        return outside
    others = data.allocations_of(terms.project, terms.resource)
    if (other := overlapping(terms.start, terms.end, others)) is not None:
        return _overlap(terms, other, "end")
    fresh = _replace(fresh, id=next(data.allocation_ids))
    data.open(fresh)
    if not request.deposit:
        return done(context.post(Kind.OPEN, 0, fresh, _facts_of_terms(fresh)), fresh)
    # The last entry answers, so it carries the key: asked again, the same figures come back.
    context.without_key().post(Kind.OPEN, 0, fresh, _facts_of_terms(fresh))
    richer = _replace(data.allocations[fresh.id], deposited=request.deposit)
    return done(context.post(Kind.DEPOSIT, request.deposit, richer), richer)


def _facts_of_terms(allocation: Allocation) -> dict[str, object]:
    """Return the terms for an entry. The credit limit is in the sums."""
    terms = allocation.terms
    short_term = {"partition": terms.partition, "reservation": terms.reservation}
    return {
        "project": terms.project,
        "resource": terms.resource,
        "category": terms.category,
        "start": terms.start,
        "end": terms.end,
        "shared": terms.shared,
        "state": allocation.state.value,
        **{name: value for name, value in short_term.items() if value is not None},
    }


def _put_terms(context: RuleContext, new: Allocation) -> Done:
    """Enter new terms."""
    return done(context.post(Kind.TERMS, 0, new, _facts_of_terms(new)), new)


def amend(context: RuleContext, request: Amend) -> Outcome:
    """Change period, credit limit, sharing or state, and while nothing was charged category and
    resource. A credit limit cannot fall below its used part.

    An allocation whose period is over has ended, even before upkeep records it. It gets more time
    only by the event REOPEN with an end in the future.
    """
    now, event = context.at, request.event
    old = context.data.allocations.get(request.allocation)
    named = (request.project, request.resource)
    if old is None or (old.terms.project, old.terms.resource) != named:
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    gives_time = event is AllocationEvent.REOPEN or (request.end is not None and request.end > now)
    gives_credit = (request.credit_limit or 0) > old.terms.credit_limit
    if event is None and (removed := removed_allocation(old)) is not None:
        return removed
    if (gives_time or gives_credit) and (gone := removed_project(context.data, old)) is not None:
        return gone
    # An event starts from the state by the clock, but a freeze outlives the end.
    thaws = event is AllocationEvent.THAW and old.state is _FROZEN
    before = _FROZEN if thaws else old.state_at(now)
    state = before if event is None else NEXT.get((before, event))
    if state is None:
        return _wrong_step(old, before, event)
    requested = {
        "category": request.category,
        "resource": request.new_resource,
        "start": request.start,
        "end": request.end,
        "shared": request.shared,
        "credit_limit": request.credit_limit,
    }
    changes = {name: value for name, value in requested.items() if value is not None}
    terms = _replace(old.terms, **changes)
    if event is AllocationEvent.END:
        # So that another may follow.
        terms = _replace(terms, end=Instant(min(terms.end, max(now, terms.start + 1))))
        if now <= terms.start:
            state = _CANCELLED
    if state is _ENDED and old.state in (_FROZEN, _CANCELLED):
        state = old.state  # a freeze outlives the end, and what was cancelled pays nothing
    new = _replace(old, state=state, terms=terms)
    is_new_grant = _is_relabelled(old.terms, terms)
    refusal = (
        _used(context.data, old, new, now)
        or refuse_grant(context, new, None if is_new_grant else old)
        or _conflict(context.data, old, new)
        or _over(old, new, event, now)
    )
    return refusal if refusal is not None else _put_terms(context, new)


def _is_relabelled(old: AllocationTerms, new: AllocationTerms) -> bool:
    """Return whether category or resource differ."""
    return (new.category, new.resource) != (old.category, old.resource)


def _used(data: TransactionData, old: Allocation, new: Allocation, now: int) -> Refusal | None:
    """Refuse to remove an allocation in which credit has moved, and to change category or resource
    of one that jobs were charged to or hold credit of.
    """
    changed = _is_relabelled(old.terms, new.terms)
    removes = new.state is _REMOVED and old.state is not _REMOVED
    if not changed and not removes:
        return None
    moved = data.kinds_moved(old.id)
    if not (moved if removes else old.held or Kind.CHARGE in moved):
        return None
    detail = Detail.MOVED if removes else Detail.CHARGED_OR_HELD
    if old.state_at(now) is _ENDED:
        detail = Detail.MOVED_AND_ENDED if removes else Detail.USED_AND_ENDED
    return Refusal(
        Reason.ALLOCATION_USED,
        detail,
        allocation=old.id,
        project=old.terms.project,
        resource=old.terms.resource,
    )


def _over(
    old: Allocation, new: Allocation, event: AllocationEvent | None, now: int
) -> Refusal | None:
    """Refuse to give time to an ended allocation, except to reopen it with an end in the future.

    So the period of an allocation always says which runs it pays.
    """
    if event is AllocationEvent.REOPEN:
        detail = Detail.ENDED if new.terms.end <= now else None
    else:
        moved = (new.terms.start, new.terms.end) != (old.terms.start, old.terms.end)
        gets_time = moved and new.terms.end > now and old.state_at(now) is _ENDED
        detail = Detail.HAS_ENDED if gets_time else None
    if detail is None:
        return None
    return Refusal(
        Reason.ALLOCATION_EXPIRED,
        detail,
        allocation=old.id,
        project=old.terms.project,
        resource=old.terms.resource,
        facts={"near_end": new.terms.end},
    )


def put_back(context: RuleContext, before: Entry) -> Outcome:
    """Set all terms to those of an earlier entry."""
    old, terms = context.data.allocations[before.allocation], terms_of(before)
    if (gone := removed_project(context.data, old)) is not None:  # the earlier terms may give time
        return gone
    if terms.resource != old.terms.resource:
        facts_of_refusal = Facts(kind=before.kind.value)
        return Refusal(
            Reason.CANNOT_UNDO, Detail.RESOURCE, allocation=old.id, facts=facts_of_refusal
        )
    new = _replace(old, terms=terms, state=AllocationState(facts_of(before)["state"]))
    refusal = _used(context.data, old, new, context.at) or _conflict(context.data, old, new)
    return refusal if refusal is not None else _put_terms(context, new)


def expire(context: RuleContext, request: Expire) -> Outcome:
    """End an active allocation whose period is over. A frozen one stays frozen."""
    old = context.data.allocations.get(request.allocation)
    if old is None:
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if old.state is not _ACTIVE:
        facts = Facts(state=old.state.value)
        return Refusal(Reason.WRONG_STATE, Detail.STATE, allocation=old.id, facts=facts)
    if context.at < old.terms.end:
        return Refusal(Reason.NOT_DUE, allocation=old.id)
    return _put_terms(context, _replace(old, state=_ENDED))


def _wrong_step(old: Allocation, state: AllocationState, event: AllocationEvent | None) -> Refusal:
    """Refuse an event that the state does not allow, with the states that do.

    A planned allocation is active, and has not begun.
    """
    needed = [before for before, transition in NEXT if transition is event]
    allowed = ["planned or active" if before is _ACTIVE else before.value for before in needed]
    return Refusal(
        Reason.WRONG_STATE,
        Detail.ALREADY if (state, event) in _NO_CHANGE else Detail.WRONG_STEP,
        allocation=old.id,
        project=old.terms.project,
        resource=old.terms.resource,
        facts={
            "state": state.value,
            "event": event.value if event else "",
            "allowed": " or ".join(allowed),
        },
    )


def _conflict(data: TransactionData, old: Allocation, new: Allocation) -> Refusal | None:
    """Return why new terms are refused: their period, or their credit limit."""
    terms = new.terms
    if terms.end <= terms.start:
        return _empty_period(terms, old.id)
    others = (
        allocation
        for allocation in data.allocations_of(terms.project, terms.resource)
        if allocation.id != old.id
    )
    other = None if new.state is _REMOVED else overlapping(terms.start, terms.end, others)
    if other is not None:
        return _overlap(terms, other, "start" if terms.end == old.terms.end else "end")
    if not is_countable(new.deposited + terms.credit_limit):
        return Refusal(Reason.TOO_LARGE, requested=terms.credit_limit, allocation=old.id)
    if terms.credit_limit < old.terms.credit_limit and new.remaining < 0:
        return Refusal(
            Reason.LIMIT_IN_USE,
            requested=-old.withdrawable,
            available=terms.credit_limit,
            allocation=old.id,
        )
    return None


def _empty_period(terms: AllocationTerms, allocation: int | None) -> Refusal:
    return Refusal(
        Reason.INVALID_PERIOD,
        Detail.OTHER_PERIOD,
        allocation=allocation,
        project=terms.project,
        resource=terms.resource,
        facts={"near_start": terms.start, "near_end": terms.end},
    )


def _overlap(terms: AllocationTerms, other: Allocation, field: str) -> Refusal:
    """Refuse a period. `field` is the side of it that the request changes: start or end."""
    return Refusal(
        Reason.OVERLAP,
        Detail.OTHER_PERIOD,
        allocation=other.id,
        project=terms.project,
        resource=terms.resource,
        facts={
            "field": field,
            "reported_time": terms.start if field == "start" else terms.end,
            "near_start": other.terms.start,
            "near_end": other.terms.end,
        },
    )


def set_cap(context: RuleContext, request: SetCap) -> Outcome:
    """Cap a user in an allocation, or remove the cap. Users other than staff need a role above the
    user's.

    A cap below what is used already only stops new holds.
    """
    data, uid, cap = context.data, request.uid, request.cap
    allocation = data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if (removed := removed_allocation(allocation)) is not None:
        return removed
    project = allocation.terms.project
    if request.by is not None and (
        request.project != project or not is_above(data, project, request.by, uid)
    ):
        return Refusal(Reason.ROLE_ABOVE, project=project)
    sums = data.sums_of(allocation.id, uid)
    # An undo is always entered, so that the entry that it undoes is marked as undone.
    if context.undoes is None and cap == sums.cap:
        return Done(
            entry=0,
            amount=cap or 0,
            allocation=allocation.id,
            remaining=allocation.remaining,
            again=True,
        )
    data.put_user(allocation.id, uid, UserSums(sums.charged, sums.held, cap))
    return done(context.post(Kind.CAP, cap or 0, allocation, {"cap": cap}, owner=uid), allocation)
