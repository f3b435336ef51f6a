"""The rules of credit: deposit, withdraw, transfer, refund and its reverse. `undoes` is the entry that is taken back by it, if one is."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.ledger.drawing import moved
from fairbank.bank.ledger.office import no_longer
from fairbank.bank.ledger.outcome import Outcome, done
from fairbank.bank.ledger.posting import post
from fairbank.bank.policy import Policy, is_countable
from fairbank.bank.refusal import TAKEN_BACK, Reason, Refusal
from fairbank.bank.run import RunState
from fairbank.bank.wish import Asked, Deposit, Refund, Transfer, Withdraw
from fairbank.bank.working_set import WorkingSet
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes, show_su

_replace = msgspec.structs.replace


def deposit(work: WorkingSet, asked: Asked, wish: Deposit, *, undoes: int | None = None) -> Outcome:
    """Put credit into an allocation."""
    allocation = work.allocations.get(wish.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=wish.allocation)
    if (gone := no_longer(work, allocation)) is not None:
        return gone
    after = _deposited(allocation, wish.amount)
    if isinstance(after, Refusal):
        return after
    return done(post(work, asked, Kind.DEPOSIT, wish.amount, after, undoes=undoes), after)


def withdraw(
    work: WorkingSet, asked: Asked, wish: Withdraw, *, undoes: int | None = None
) -> Outcome:
    """Take unused credit out of an allocation; a credit limit cannot be taken out."""
    allocation = work.allocations.get(wish.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=wish.allocation)
    if wish.amount > allocation.own_available:
        return _too_little(allocation, wish.amount, undoes)
    after = _replace(allocation, deposited=allocation.deposited - wish.amount)
    return done(post(work, asked, Kind.WITHDRAW, wish.amount, after, undoes=undoes), after)


def transfer(
    work: WorkingSet, asked: Asked, wish: Transfer, *, undoes: int | None = None
) -> Outcome:
    """Move unused credit from one active allocation to another of the same resource: two entries or none."""
    source, target = work.allocations.get(wish.source), work.allocations.get(wish.target)
    if source is None or target is None:
        return Refusal(
            reason=Reason.UNKNOWN_ALLOCATION,
            allocation=wish.source if source is None else wish.target,
        )
    if source.id == target.id:
        return Refusal(reason=Reason.SAME_ALLOCATION, allocation=wish.target)
    if source.resource != target.resource:
        return Refusal(
            reason=Reason.OTHER_RESOURCE, allocation=wish.target, resource=source.resource
        )
    if (gone := no_longer(work, target)) is not None:
        return gone
    for each in (source, target):
        if each.state is not AllocationState.ACTIVE or each.end <= asked.at:
            # What staff froze stays where it is, and credit does not outlive its period; staff have withdraw and deposit.
            over = (
                "its period is over"
                if each.state is AllocationState.ACTIVE
                else f"it is {each.state.value}"
            )
            return Refusal(
                reason=Reason.WRONG_STATE,
                allocation=each.id,
                resource=each.resource,
                about=f"allocation {each.id}: {over}",
            )
    if wish.amount > source.own_available:
        return _too_little(source, wish.amount, undoes)
    richer = _deposited(target, wish.amount)
    if isinstance(richer, Refusal):
        return richer
    poorer = _replace(source, deposited=source.deposited - wish.amount)
    entry = post(work, asked, Kind.TRANSFER_OUT, wish.amount, poorer, {"to": target.id})
    post(work, asked, Kind.TRANSFER_IN, wish.amount, richer, {"from": source.id}, undoes=undoes)
    return done(entry, poorer)


def refund(work: WorkingSet, asked: Asked, wish: Refund, *, undoes: int | None = None) -> Outcome:
    """Give back part or all of a run's charge, to the allocation and the user that carried it."""
    known = work.runs.get(wish.run)
    if known is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(wish.run))
    if known.state is not RunState.CHARGED:
        about = f"the run is {known.state.value}, and only what was charged is refunded"
        return Refusal(reason=Reason.WRONG_STATE, run=str(wish.run), about=about)
    left = known.charged - known.refunded
    amount = left if wish.amount is None else wish.amount
    if amount == 0:
        about = f"it was charged {show_su(known.charged)} SU, and {show_su(known.refunded)} SU of that were given back"
        return Refusal(
            reason=Reason.NOTHING_BACK, run=str(wish.run), allocation=known.allocation, about=about
        )
    if amount > left:
        return Refusal(
            reason=Reason.TOO_MUCH_BACK,
            asked=amount,
            available=left,
            run=str(wish.run),
            allocation=known.allocation,
        )
    allocation = work.allocations[known.allocation]
    work.put_run(_replace(known, refunded=SuMinutes(known.refunded + amount)))
    after = moved(work, allocation, known.owner, charged=-amount)
    return done(
        post(
            work, asked, Kind.REFUND, amount, after, undoes=undoes, run=known.id, owner=known.owner
        ),
        after,
    )


def recharge(work: WorkingSet, asked: Asked, run: Run, back: Entry, policy: Policy) -> Outcome:
    """Take the refund `back` of a run back, whole: the run is charged that much again, in the same allocation, for the same user.

    As with any charge of what was used, neither a user's cap nor a freeze stands against it, and where policy records what goes beyond
    the credit, this may. Where policy would write that off, what the refund gave back must still be there: half of it is not taken back.
    """
    known = work.runs.get(run)
    if known is None or known.id != back.run:
        return Refusal(reason=Reason.NO_HOLD, run=str(run))
    allocation, amount = work.allocations[known.allocation], back.amount
    split = policy.split(amount, allocation.available)
    if split.written_off:
        return _replace(
            _too_little(allocation, amount), available=max(0, allocation.available), run=str(run)
        )
    if not is_countable(allocation.charged + amount):
        return Refusal(
            reason=Reason.TOO_LARGE, run=str(run), asked=amount, allocation=allocation.id
        )
    work.put_run(_replace(known, refunded=SuMinutes(known.refunded - amount)))
    after = moved(work, allocation, known.owner, charged=amount, below=split.overrun > 0)
    return done(
        post(
            work,
            asked,
            Kind.RECHARGE,
            amount,
            after,
            undoes=back.id,
            run=known.id,
            owner=known.owner,
        ),
        after,
    )


def _deposited(allocation: Allocation, amount: int) -> Allocation | Refusal:
    total = allocation.deposited + amount
    if not is_countable(total + allocation.credit_limit):
        return Refusal(reason=Reason.TOO_LARGE, asked=amount, allocation=allocation.id)
    return _replace(allocation, deposited=total)


def _too_little(allocation: Allocation, amount: int, undoes: int | None = None) -> Refusal:
    return Refusal(
        reason=Reason.NOT_ENOUGH,
        asked=amount,
        available=max(0, allocation.own_available),
        allocation=allocation.id,
        project=allocation.project,
        resource=allocation.resource,
        about=None if undoes is None else TAKEN_BACK,
    )
