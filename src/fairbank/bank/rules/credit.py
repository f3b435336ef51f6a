"""Rules of credit: deposit, withdraw, transfer, refund and recharge."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.policy import is_countable
from fairbank.bank.refusals import Detail, Reason, Refusal
from fairbank.bank.requests import Deposit, Refund, Transfer, Withdraw
from fairbank.bank.rules.context import Done, Outcome, RuleContext, done, put_run
from fairbank.bank.rules.grants import refuse_grant
from fairbank.bank.rules.registry import removed_allocation, removed_project
from fairbank.bank.run import RunRecord, RunState
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace


def deposit(context: RuleContext, request: Deposit) -> Outcome:
    """Deposit credit into an allocation."""
    allocation = context.data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    gone = removed_project(context.data, allocation) or removed_allocation(allocation)
    if gone is not None:
        return gone
    after = _deposited(allocation, request.amount)
    if isinstance(after, Refusal):
        return after
    if (outside := refuse_grant(context, after, allocation)) is not None:
        return outside
    return done(context.post(Kind.DEPOSIT, request.amount, after), after)


def withdraw(context: RuleContext, request: Withdraw) -> Outcome:
    """Withdraw unused credit from an allocation; its credit limit cannot be withdrawn."""
    allocation = context.data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if request.amount > allocation.withdrawable:
        return _too_little(allocation, request.amount, _undo_detail(context))
    after = _replace(allocation, deposited=allocation.deposited - request.amount)
    return done(context.post(Kind.WITHDRAW, request.amount, after), after)


def transfer(context: RuleContext, request: Transfer) -> Outcome:
    """Move unused credit to another active allocation of the same resource: two entries or none."""
    data, amount = context.data, request.amount
    source, target = data.allocations.get(request.source), data.allocations.get(request.target)
    if source is None or target is None:
        unknown = request.source if source is None else request.target
        return Refusal(Reason.UNKNOWN_ALLOCATION, allocation=unknown)
    if source.id == target.id:
        return Refusal(Reason.SAME_ALLOCATION, allocation=request.target)
    if source.terms.resource != target.terms.resource:
        return Refusal(
            Reason.OTHER_RESOURCE, allocation=request.target, resource=source.terms.resource
        )
    if (gone := removed_project(data, target)) is not None:
        return gone
    for allocation in (source, target):
        active = allocation.state is AllocationState.ACTIVE
        if not active or allocation.terms.end <= context.at:
            # Frozen credit stays where it is, and credit ends with its period. Staff can withdraw
            # and deposit instead.
            return Refusal(
                Reason.WRONG_STATE,
                Detail.PERIOD_OVER if active else Detail.STATE,
                allocation=allocation.id,
                resource=allocation.terms.resource,
                facts={"state": allocation.state_at(context.at).value},
            )
    if amount > source.withdrawable:
        return _too_little(source, amount, _undo_detail(context, Detail.TRANSFER))
    richer = _deposited(target, amount)
    if isinstance(richer, Refusal):
        return richer
    if (outside := refuse_grant(context, richer, target, is_transfer=True)) is not None:
        return outside
    poorer = _replace(source, deposited=source.deposited - amount)
    # The reversal has two entries too; only the second names the entry that it undoes.
    out = context._replace(undoes=None).post(Kind.TRANSFER_OUT, amount, poorer, {"to": target.id})
    context.post(Kind.TRANSFER_IN, amount, richer, {"from": source.id})
    return done(out, poorer)


def refund(context: RuleContext, request: Refund) -> Outcome:
    """Refund a run's charge, or a part, to the allocation and the user that paid it."""
    run, known = str(request.run), context.data.runs.get(request.run)
    if known is None:
        return Refusal(Reason.NO_HOLD, run=run)
    if known.state is not RunState.CHARGED:
        return Refusal(
            Reason.WRONG_STATE, Detail.NOT_CHARGED, run=run, facts={"state": known.state.value}
        )
    left = known.charged - known.refunded
    amount = left if request.amount is None else request.amount
    if amount == 0:  # a request asks for at least 1, so nothing is left
        return Refusal(
            Reason.NOTHING_TO_REFUND,
            Detail.CHARGED,
            run=run,
            allocation=known.allocation,
            facts={"charged": known.charged, "refunded": known.refunded},
        )
    if amount > left:
        return Refusal(
            Reason.REFUND_TOO_LARGE,
            requested=amount,
            available=left,
            run=run,
            allocation=known.allocation,
        )
    record = _replace(known, refunded=SuMinutes(known.refunded + amount))
    return _change_charge(context, Kind.REFUND, record, -amount)


def recharge(context: RuleContext, run: Run, back: Entry) -> Outcome:
    """Undo a refund: charge the run that much again, in the same allocation and for the same user.

    The whole refund is undone or nothing.

    Args:
        context: request that undoes the refund.
        run: the run that was refunded.
        back: entry of the refund.
    """
    known = context.data.runs.get(run)
    if known is None or known.id != back.run:
        return Refusal(Reason.NO_HOLD, run=str(run))
    allocation, amount = context.data.allocations[known.allocation], back.amount
    split = context.policy.split(amount, allocation.remaining)
    if split.written_off:
        return _replace(
            _too_little(allocation, amount, Detail.WHOLE_REFUND),
            available=max(0, allocation.remaining),
            run=str(run),
        )
    if not is_countable(allocation.charged + amount):
        return Refusal(Reason.TOO_LARGE, run=str(run), requested=amount, allocation=allocation.id)
    record = _replace(known, refunded=SuMinutes(known.refunded - amount))
    return _change_charge(context, Kind.RECHARGE, record, amount, below=split.overrun > 0)


def _change_charge(
    context: RuleContext, kind: Kind, record: RunRecord, more: int, *, below: bool = False
) -> Done:
    after = put_run(context.data, record, charged=more, below=below)
    return done(context.post(kind, abs(more), after, run=record.id, owner=record.owner), after)


def _deposited(allocation: Allocation, amount: int) -> Allocation | Refusal:
    total = allocation.deposited + amount
    if not is_countable(total + allocation.terms.credit_limit):
        return Refusal(Reason.TOO_LARGE, requested=amount, allocation=allocation.id)
    return _replace(allocation, deposited=total)


def _undo_detail(context: RuleContext, of_movement: Detail = Detail.NONE) -> Detail:
    return of_movement if context.undoes is None else Detail.WHOLE_ENTRY


def _too_little(allocation: Allocation, amount: int, detail: Detail) -> Refusal:
    return Refusal(
        Reason.NOT_ENOUGH,
        detail,
        requested=amount,
        available=max(0, allocation.withdrawable),
        allocation=allocation.id,
        project=allocation.terms.project,
        resource=allocation.terms.resource,
    )
