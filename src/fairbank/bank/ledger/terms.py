"""The rules of allocations themselves: opening them, changing their terms, capping users."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import NEXT, Allocation, AllocationEvent, AllocationState, overlapping
from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.ledger.office import above, no_longer
from fairbank.bank.ledger.outcome import Done, Outcome, done
from fairbank.bank.ledger.posting import post
from fairbank.bank.policy import is_countable
from fairbank.bank.refusal import Reason, Refusal
from fairbank.bank.run import UserSums
from fairbank.bank.wish import Amend, Asked, Expire, Open, SetCap
from fairbank.bank.working_set import WorkingSet
from fairbank.core.time import Instant, iso
from fairbank.core.units import SuMinutes

_ACTIVE, _FROZEN, _ENDED = AllocationState.ACTIVE, AllocationState.FROZEN, AllocationState.ENDED
_replace = msgspec.structs.replace


def open_allocation(work: WorkingSet, asked: Asked, wish: Open) -> Outcome:
    """Make an allocation whose period overlaps no other of its project and resource."""
    if wish.project not in work.projects:
        return Refusal(reason=Reason.UNKNOWN_PROJECT, project=wish.project)
    if work.projects[wish.project].removed:
        return Refusal(reason=Reason.PROJECT_REMOVED, project=wish.project)
    if wish.end <= wish.start:
        return Refusal(
            reason=Reason.BAD_PERIOD,
            project=wish.project,
            resource=wish.resource,
            about=_period(wish),
        )
    if not is_countable(wish.credit_limit + wish.deposit):
        return Refusal(reason=Reason.TOO_LARGE, asked=wish.deposit, project=wish.project)
    other = overlapping(wish.start, wish.end, work.funds(wish.project, wish.resource))
    if other is not None:
        return _overlap(wish, other, f"end is {iso(wish.end)}")
    fresh = Allocation(
        id=next(work.allocation_ids),
        project=wish.project,
        resource=wish.resource,
        category=wish.category,
        start=wish.start,
        end=wish.end,
        shared=wish.shared,
        credit_limit=wish.credit_limit,
    )
    work.open(fresh)
    if not wish.deposit:
        return done(post(work, asked, Kind.OPEN, 0, fresh, facts_of_terms(fresh)), fresh)
    # The last entry answers, so it carries the key: asked again, the same figures come back.
    keyless = _replace(asked, wish=_replace(wish, key=None))
    post(work, keyless, Kind.OPEN, 0, fresh, facts_of_terms(fresh))
    richer = _replace(work.allocations[fresh.id], deposited=wish.deposit)
    return done(post(work, asked, Kind.DEPOSIT, wish.deposit, richer), richer)


def facts_of_terms(allocation: Allocation) -> dict[str, object]:
    """The terms as the journal keeps them, so that the allocation's row can be checked against it; the credit limit is among the sums."""
    return {
        "project": allocation.project,
        "resource": allocation.resource,
        "category": allocation.category,
        "start": allocation.start,
        "end": allocation.end,
        "shared": allocation.shared,
        "state": allocation.state.value,
    }


def amend(work: WorkingSet, asked: Asked, wish: Amend) -> Outcome:
    """Change period, credit limit, sharing or state. A limit cannot fall below what is already drawn on it.

    What is over is ended, swept or not: it gets time again only by being reopened, and reopening needs some.
    """
    old = work.allocations.get(wish.allocation)
    if old is None or (old.project, old.resource) != (wish.project, wish.resource):
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=wish.allocation)
    if (_gives_time(wish, asked.at) or (wish.credit_limit or 0) > old.credit_limit) and (
        gone := no_longer(work, old)
    ) is not None:
        return gone
    before = _state_before(old, wish.event, asked.at)
    state = before if wish.event is None else NEXT.get((before, wish.event))
    if state is None:
        about = (
            None if wish.event is None else f"allocation {old.id} is {_why_not(before, wish.event)}"
        )
        return Refusal(
            reason=Reason.WRONG_STATE,
            allocation=old.id,
            project=old.project,
            resource=old.resource,
            about=about,
        )
    start = old.start if wish.start is None else wish.start
    end = old.end if wish.end is None else wish.end
    if wish.event is AllocationEvent.END:
        end = Instant(min(end, max(asked.at, start + 1)))  # so that another may follow
    new = _replace(
        old,
        state=_FROZEN if state is _ENDED and old.state is _FROZEN and start < asked.at else state,
        start=start,
        end=end,
        shared=old.shared if wish.shared is None else wish.shared,
        credit_limit=old.credit_limit if wish.credit_limit is None else wish.credit_limit,
    )
    no = _objection(work, old, new)
    if no is not None:
        return no
    no = _over(old, new, wish.event, asked.at)
    if no is not None:
        return no
    return done(post(work, asked, Kind.TERMS, 0, new, facts_of_terms(new)), new)


def _gives_time(wish: Amend, now: int) -> bool:
    return wish.event is AllocationEvent.REOPEN or (wish.end is not None and wish.end > now)


def _state_before(old: Allocation, event: AllocationEvent | None, now: int) -> AllocationState:
    """The state that an event meets: the one by the clock; but a freeze outlives the end, so it can be thawed then, too."""
    return _FROZEN if event is AllocationEvent.THAW and old.state is _FROZEN else old.state_at(now)


def _over(
    old: Allocation, new: Allocation, event: AllocationEvent | None, now: int
) -> Refusal | None:
    """Whoever reopens says until when, and nothing else gives time to what has ended: then its period tells which runs it pays."""
    moved = (new.start, new.end) != (old.start, old.end)
    if event is AllocationEvent.REOPEN and new.end <= now:
        about = f"allocation {old.id} ended {iso(new.end)}"
    elif (
        event is not AllocationEvent.REOPEN
        and moved
        and new.end > now
        and old.state_at(now) is _ENDED
    ):
        about = f"allocation {old.id} has ended, and another period alone does not reopen it"
    else:
        return None
    return Refusal(
        reason=Reason.OVER,
        allocation=old.id,
        project=old.project,
        resource=old.resource,
        about=about,
    )


def put_back(work: WorkingSet, asked: Asked, before: Entry, *, undoes: int) -> Outcome:
    """Say all terms as entry `before` said them, the state among them: that takes entry `undoes` back, whole."""
    old, facts = work.allocations[before.book], facts_of(before)
    if (gone := no_longer(work, old)) is not None:  # what was, may be time
        return gone
    new = _replace(
        old,
        state=AllocationState(facts["state"]),
        start=Instant(facts["start"]),
        end=Instant(facts["end"]),
        shared=facts["shared"],
        credit_limit=SuMinutes(before.credit_limit),
    )
    if (no := _objection(work, old, new)) is not None:
        return no
    return done(post(work, asked, Kind.TERMS, 0, new, facts_of_terms(new), undoes=undoes), new)


def expire(work: WorkingSet, asked: Asked, wish: Expire) -> Outcome:
    """End an active allocation whose period is over. A frozen one is over by the clock, and its freeze stands."""
    old = work.allocations.get(wish.allocation)
    if old is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=wish.allocation)
    if old.state is not _ACTIVE:
        return Refusal(
            reason=Reason.WRONG_STATE,
            allocation=old.id,
            about=f"allocation {old.id} is {old.state.value}",
        )
    if asked.at < old.end:
        return Refusal(reason=Reason.NOT_DUE, allocation=old.id)
    new = _replace(old, state=_ENDED)
    return done(post(work, asked, Kind.TERMS, 0, new, facts_of_terms(new)), new)


def _why_not(state: AllocationState, event: AllocationEvent) -> str:
    """`frozen already`, or which states the event needs; what is planned is active, and has not begun."""
    if (state, event) in _AS_IT_IS:
        return f"{state.value} already"
    needed = [before for before, each in NEXT if each is event]
    states = " or ".join(
        "planned or active" if each is AllocationState.ACTIVE else each.value for each in needed
    )
    return f"{state.value}, and only {states} allows {event.value}"


_AS_IT_IS = frozenset({(after, event) for (_, event), after in NEXT.items()})


def _period(terms: Open | Allocation) -> str:
    return f"start {iso(terms.start)}, end {iso(terms.end)}"


def _objection(work: WorkingSet, old: Allocation, new: Allocation) -> Refusal | None:
    if new.end <= new.start:
        return Refusal(
            reason=Reason.BAD_PERIOD,
            allocation=old.id,
            project=old.project,
            resource=old.resource,
            about=_period(new),
        )
    other = overlapping(
        new.start,
        new.end,
        (each for each in work.funds(old.project, old.resource) if each.id != old.id),
    )
    if other is not None:
        return _overlap(
            new,
            other,
            f"start is {iso(new.start)}" if new.end == old.end else f"end is {iso(new.end)}",
        )
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


def _overlap(terms: Open | Allocation, other: Allocation, moved: str) -> Refusal:
    """`moved` is the side of the period that is asked for."""
    about = f"{moved}, and allocation {other.id} is for {iso(other.start)} to {iso(other.end)}"
    return Refusal(
        reason=Reason.OVERLAP,
        allocation=other.id,
        project=terms.project,
        resource=terms.resource,
        about=about,
    )


def set_cap(work: WorkingSet, asked: Asked, wish: SetCap, *, undoes: int | None = None) -> Outcome:
    """Cap one user inside an allocation, or lift the cap; but for staff, a user whose role is below the asker's.

    A cap below what is drawn already only stops new holds. `undoes` is the entry that is taken back by it, if one is.
    """
    allocation = work.allocations.get(wish.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=wish.allocation)
    if wish.by is not None and (
        wish.project != allocation.project or not above(work, allocation.project, wish.by, wish.uid)
    ):
        return Refusal(reason=Reason.ROLE_ABOVE, project=allocation.project)
    sums = work.sums_of(allocation.id, wish.uid)
    if undoes is None and wish.cap == sums.cap:
        return Done(
            entry=0,
            amount=wish.cap or 0,
            allocation=allocation.id,
            available=allocation.available,
            again=True,
        )
    work.put_user(allocation.id, wish.uid, UserSums(sums.charged, sums.held, wish.cap))
    return done(
        post(
            work,
            asked,
            Kind.CAP,
            wish.cap or 0,
            allocation,
            {"cap": wish.cap},
            undoes=undoes,
            owner=wish.uid,
        ),
        allocation,
    )
