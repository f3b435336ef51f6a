"""Rules of allocations: create them, change their terms, cap users."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import NEXT, Allocation, AllocationEvent, AllocationState, overlapping
from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.policy import is_countable
from fairbank.bank.refusals import Detail, Facts, Reason, Refusal
from fairbank.bank.requests import Amend, Expire, Open, SetCap, SubmittedRequest
from fairbank.bank.rules.outcome import Done, Outcome, done, post
from fairbank.bank.rules.registry import above, removed_project
from fairbank.bank.run import UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

_ACTIVE, _FROZEN, _ENDED = AllocationState.ACTIVE, AllocationState.FROZEN, AllocationState.ENDED
_replace = msgspec.structs.replace


def open_allocation(data: TransactionData, submitted: SubmittedRequest, request: Open) -> Outcome:
    """Create an allocation whose period overlaps no other of its project and resource."""
    if request.project not in data.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=request.project)
    if data.projects[request.project].removed:
        return Refusal(reason=Reason.PROJECT_REMOVED, project=request.project)
    if request.end <= request.start:
        return Refusal(
            reason=Reason.INVALID_PERIOD,
            project=request.project,
            resource=request.resource,
            detail=Detail.OTHER_PERIOD,
            facts=_period(request),
        )
    if not is_countable(request.credit_limit + request.deposit):
        return Refusal(reason=Reason.TOO_LARGE, asked=request.deposit, project=request.project)
    other = overlapping(request.start, request.end, data.funds(request.project, request.resource))
    if other is not None:
        return _overlap(request, other, "end")
    fresh = Allocation(
        id=next(data.allocation_ids),
        project=request.project,
        resource=request.resource,
        category=request.category,
        start=request.start,
        end=request.end,
        shared=request.shared,
        credit_limit=request.credit_limit,
    )
    data.open(fresh)
    if not request.deposit:
        return done(post(data, submitted, Kind.OPEN, 0, fresh, facts_of_terms(fresh)), fresh)
    # The last entry answers, so it carries the key: asked again, the same figures come back.
    keyless = _replace(submitted, request=_replace(request, key=None))
    post(data, keyless, Kind.OPEN, 0, fresh, facts_of_terms(fresh))
    richer = _replace(data.allocations[fresh.id], deposited=request.deposit)
    return done(post(data, submitted, Kind.DEPOSIT, request.deposit, richer), richer)


def facts_of_terms(allocation: Allocation) -> dict[str, object]:
    """Return the terms as an entry stores them, by which the audit checks the row. The credit limit
    is in the sums.
    """
    return {
        "project": allocation.project,
        "resource": allocation.resource,
        "category": allocation.category,
        "start": allocation.start,
        "end": allocation.end,
        "shared": allocation.shared,
        "state": allocation.state.value,
    }


def amend(data: TransactionData, submitted: SubmittedRequest, request: Amend) -> Outcome:
    """Change period, credit limit, sharing or state. A credit limit cannot fall below its used
    part.

    An allocation whose period is over has ended, even before upkeep records it. It gets more time
    only by the event REOPEN with an end in the future.
    """
    old = data.allocations.get(request.allocation)
    if old is None or (old.project, old.resource) != (request.project, request.resource):
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if (_gives_time(request, submitted.at) or (request.credit_limit or 0) > old.credit_limit) and (
        gone := removed_project(data, old)
    ) is not None:
        return gone
    before = _state_before(old, request.event, submitted.at)
    state = before if request.event is None else NEXT.get((before, request.event))
    if state is None:
        return _wrong_step(old, before, request.event)
    start = old.start if request.start is None else request.start
    end = old.end if request.end is None else request.end
    if request.event is AllocationEvent.END:
        end = Instant(min(end, max(submitted.at, start + 1)))  # so that another may follow
    new = _replace(
        old,
        state=(
            _FROZEN if state is _ENDED and old.state is _FROZEN and start < submitted.at else state
        ),
        start=start,
        end=end,
        shared=old.shared if request.shared is None else request.shared,
        credit_limit=old.credit_limit if request.credit_limit is None else request.credit_limit,
    )
    no = _objection(data, old, new)
    if no is not None:
        return no
    no = _over(old, new, request.event, submitted.at)
    if no is not None:
        return no
    return done(post(data, submitted, Kind.TERMS, 0, new, facts_of_terms(new)), new)


def _gives_time(request: Amend, now: int) -> bool:
    return request.event is AllocationEvent.REOPEN or (
        request.end is not None and request.end > now
    )


def _state_before(old: Allocation, event: AllocationEvent | None, now: int) -> AllocationState:
    """Return the state from which an event starts: by the clock, but a freeze outlives the end."""
    return _FROZEN if event is AllocationEvent.THAW and old.state is _FROZEN else old.state_at(now)


def _over(
    old: Allocation, new: Allocation, event: AllocationEvent | None, now: int
) -> Refusal | None:
    """Refuse to give time to an ended allocation, except to reopen it with an end in the future.

    So the period of an allocation always says which runs it pays.
    """
    moved = (new.start, new.end) != (old.start, old.end)
    if event is AllocationEvent.REOPEN and new.end <= now:
        detail = Detail.ENDED
    elif (
        event is not AllocationEvent.REOPEN
        and moved
        and new.end > now
        and old.state_at(now) is _ENDED
    ):
        detail = Detail.HAS_ENDED
    else:
        return None
    return Refusal(
        reason=Reason.ALLOCATION_EXPIRED,
        detail=detail,
        allocation=old.id,
        project=old.project,
        resource=old.resource,
        facts={"near_end": new.end},
    )


def put_back(
    data: TransactionData, submitted: SubmittedRequest, before: Entry, *, undoes: int
) -> Outcome:
    """Set all terms to those of an earlier entry, which undoes entry `undoes`."""
    old, facts = data.allocations[before.book], facts_of(before)
    if (gone := removed_project(data, old)) is not None:  # the earlier terms may give time
        return gone
    new = _replace(
        old,
        state=AllocationState(facts["state"]),
        start=Instant(facts["start"]),
        end=Instant(facts["end"]),
        shared=facts["shared"],
        credit_limit=SuMinutes(before.credit_limit),
    )
    if (no := _objection(data, old, new)) is not None:
        return no
    return done(post(data, submitted, Kind.TERMS, 0, new, facts_of_terms(new), undoes=undoes), new)


def expire(data: TransactionData, submitted: SubmittedRequest, request: Expire) -> Outcome:
    """End an active allocation whose period is over. A frozen one has ended by the clock but stays
    frozen.
    """
    old = data.allocations.get(request.allocation)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if old.state is not _ACTIVE:
        return Refusal(
            reason=Reason.WRONG_STATE,
            allocation=old.id,
            detail=Detail.STATE,
            facts={"state": old.state.value},
        )
    if submitted.at < old.end:
        return Refusal(reason=Reason.NOT_DUE, allocation=old.id)
    new = _replace(old, state=_ENDED)
    return done(post(data, submitted, Kind.TERMS, 0, new, facts_of_terms(new)), new)


def _wrong_step(old: Allocation, state: AllocationState, event: AllocationEvent | None) -> Refusal:
    """Refuse an event that the state does not allow, with the states that do.

    A planned allocation is active, and has not begun.
    """
    needed = [before for before, each in NEXT if each is event]
    return Refusal(
        reason=Reason.WRONG_STATE,
        detail=Detail.ALREADY if (state, event) in _NO_CHANGE else Detail.WRONG_STEP,
        allocation=old.id,
        project=old.project,
        resource=old.resource,
        facts={
            "state": state.value,
            "event": event.value if event else "",
            "allowed": " or ".join(
                "planned or active" if each is _ACTIVE else each.value for each in needed
            ),
        },
    )


_NO_CHANGE = frozenset({(after, event) for (_, event), after in NEXT.items()})


def _period(terms: Open | Allocation) -> Facts:
    return {"near_start": terms.start, "near_end": terms.end}


def _objection(data: TransactionData, old: Allocation, new: Allocation) -> Refusal | None:
    if new.end <= new.start:
        return Refusal(
            reason=Reason.INVALID_PERIOD,
            allocation=old.id,
            project=old.project,
            resource=old.resource,
            detail=Detail.OTHER_PERIOD,
            facts=_period(new),
        )
    other = overlapping(
        new.start,
        new.end,
        (each for each in data.funds(old.project, old.resource) if each.id != old.id),
    )
    if other is not None:
        return _overlap(new, other, "start" if new.end == old.end else "end")
    if not is_countable(new.deposited + new.credit_limit):
        return Refusal(reason=Reason.TOO_LARGE, asked=new.credit_limit, allocation=old.id)
    if new.credit_limit < old.credit_limit and new.available < 0:
        return Refusal(
            reason=Reason.LIMIT_IN_USE,
            asked=-old.own_available,
            available=new.credit_limit,
            allocation=old.id,
        )
    return None


def _overlap(terms: Open | Allocation, other: Allocation, field: str) -> Refusal:
    """Refuse a period. `field` is the side of it that the request changes: start or end."""
    return Refusal(
        reason=Reason.OVERLAP,
        detail=Detail.OTHER_PERIOD,
        allocation=other.id,
        project=terms.project,
        resource=terms.resource,
        facts={
            "field": field,
            "reported_time": terms.start if field == "start" else terms.end,
            "near_start": other.start,
            "near_end": other.end,
        },
    )


def set_cap(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: SetCap,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Cap a user in an allocation, or remove the cap. Users other than staff need a role above the
    user's.

    A cap below what is used already only stops new holds. `undoes` is the entry that this undoes,
    if any.
    """
    allocation = data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if request.by is not None and (
        request.project != allocation.project
        or not above(data, allocation.project, request.by, request.uid)
    ):
        return Refusal(reason=Reason.ROLE_ABOVE, project=allocation.project)
    sums = data.sums_of(allocation.id, request.uid)
    if undoes is None and request.cap == sums.cap:
        return Done(
            entry=0,
            amount=request.cap or 0,
            allocation=allocation.id,
            available=allocation.available,
            again=True,
        )
    data.put_user(allocation.id, request.uid, UserSums(sums.charged, sums.held, request.cap))
    return done(
        post(
            data,
            submitted,
            Kind.CAP,
            request.cap or 0,
            allocation,
            {"cap": request.cap},
            undoes=undoes,
            owner=request.uid,
        ),
        allocation,
    )
