"""Rules of credit: deposit, withdraw, transfer, refund and recharge.

`undoes` is the entry that the new entry undoes, if any.
"""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.policy import Policy, is_countable
from fairbank.bank.refusals import Detail, Reason, Refusal
from fairbank.bank.requests import Deposit, Refund, SubmittedRequest, Transfer, Withdraw
from fairbank.bank.rules.balances import moved
from fairbank.bank.rules.outcome import Outcome, done, post
from fairbank.bank.rules.registry import removed_project
from fairbank.bank.run import RunState
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace


def deposit(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Deposit,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Deposit credit into an allocation."""
    allocation = data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if (gone := removed_project(data, allocation)) is not None:
        return gone
    after = _deposited(allocation, request.amount)
    if isinstance(after, Refusal):
        return after
    return done(post(data, submitted, Kind.DEPOSIT, request.amount, after, undoes=undoes), after)


def withdraw(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Withdraw,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Withdraw unused credit from an allocation; its credit limit cannot be withdrawn."""
    allocation = data.allocations.get(request.allocation)
    if allocation is None:
        return Refusal(reason=Reason.UNKNOWN_ALLOCATION, allocation=request.allocation)
    if request.amount > allocation.own_available:
        return _too_little(allocation, request.amount, _undo_detail(undoes))
    after = _replace(allocation, deposited=allocation.deposited - request.amount)
    return done(post(data, submitted, Kind.WITHDRAW, request.amount, after, undoes=undoes), after)


def transfer(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Transfer,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Move unused credit to another active allocation of the same resource: two entries or none."""
    source, target = data.allocations.get(request.source), data.allocations.get(request.target)
    if source is None or target is None:
        return Refusal(
            reason=Reason.UNKNOWN_ALLOCATION,
            allocation=request.source if source is None else request.target,
        )
    if source.id == target.id:
        return Refusal(reason=Reason.SAME_ALLOCATION, allocation=request.target)
    if source.resource != target.resource:
        return Refusal(
            reason=Reason.OTHER_RESOURCE, allocation=request.target, resource=source.resource
        )
    if (gone := removed_project(data, target)) is not None:
        return gone
    for each in (source, target):
        if each.state is not AllocationState.ACTIVE or each.end <= submitted.at:
            # Frozen credit stays where it is, and credit ends with its period. Staff can withdraw
            # and deposit instead.
            active = each.state is AllocationState.ACTIVE
            return Refusal(
                reason=Reason.WRONG_STATE,
                allocation=each.id,
                resource=each.resource,
                detail=Detail.PERIOD_OVER if active else Detail.STATE,
                facts={"state": each.state.value},
            )
    if request.amount > source.own_available:
        return _too_little(source, request.amount, _undo_detail(undoes))
    richer = _deposited(target, request.amount)
    if isinstance(richer, Refusal):
        return richer
    poorer = _replace(source, deposited=source.deposited - request.amount)
    entry = post(data, submitted, Kind.TRANSFER_OUT, request.amount, poorer, {"to": target.id})
    post(
        data,
        submitted,
        Kind.TRANSFER_IN,
        request.amount,
        richer,
        {"from": source.id},
        undoes=undoes,
    )
    return done(entry, poorer)


def refund(
    data: TransactionData,
    submitted: SubmittedRequest,
    request: Refund,
    *,
    undoes: int | None = None,
) -> Outcome:
    """Refund a run's charge, or a part, to the allocation and the user that paid it."""
    known = data.runs.get(request.run)
    if known is None:
        return Refusal(reason=Reason.NO_HOLD, run=str(request.run))
    if known.state is not RunState.CHARGED:
        return Refusal(
            reason=Reason.WRONG_STATE,
            detail=Detail.NOT_CHARGED,
            run=str(request.run),
            facts={"state": known.state.value},
        )
    left = known.charged - known.refunded
    amount = left if request.amount is None else request.amount
    if amount == 0:
        return Refusal(
            reason=Reason.NOTHING_TO_REFUND,
            run=str(request.run),
            allocation=known.allocation,
            detail=Detail.CHARGED,
            facts={"charged": known.charged, "refunded": known.refunded},
        )
    if amount > left:
        return Refusal(
            reason=Reason.REFUND_TOO_LARGE,
            asked=amount,
            available=left,
            run=str(request.run),
            allocation=known.allocation,
        )
    allocation = data.allocations[known.allocation]
    data.put_run(_replace(known, refunded=SuMinutes(known.refunded + amount)))
    after = moved(data, allocation, known.owner, charged=-amount)
    return done(
        post(
            data,
            submitted,
            Kind.REFUND,
            amount,
            after,
            undoes=undoes,
            run=known.id,
            owner=known.owner,
        ),
        after,
    )


def recharge(
    data: TransactionData, submitted: SubmittedRequest, run: Run, back: Entry, policy: Policy
) -> Outcome:
    """Undo a refund: charge the run that much again, in the same allocation and for the same user.

    The whole refund is undone or nothing.
    """
    known = data.runs.get(run)
    if known is None or known.id != back.run:
        return Refusal(reason=Reason.NO_HOLD, run=str(run))
    allocation, amount = data.allocations[known.allocation], back.amount
    split = policy.split(amount, allocation.available)
    if split.written_off:
        return _replace(
            _too_little(allocation, amount, Detail.WHOLE_REFUND),
            available=max(0, allocation.available),
            run=str(run),
        )
    if not is_countable(allocation.charged + amount):
        return Refusal(
            reason=Reason.TOO_LARGE, run=str(run), asked=amount, allocation=allocation.id
        )
    data.put_run(_replace(known, refunded=SuMinutes(known.refunded - amount)))
    after = moved(data, allocation, known.owner, charged=amount, below=split.overrun > 0)
    return done(
        post(
            data,
            submitted,
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


def _undo_detail(undoes: int | None) -> Detail:
    return Detail.NONE if undoes is None else Detail.WHOLE_ENTRY


def _too_little(allocation: Allocation, amount: int, detail: Detail) -> Refusal:
    return Refusal(
        reason=Reason.NOT_ENOUGH,
        asked=amount,
        available=max(0, allocation.own_available),
        allocation=allocation.id,
        project=allocation.project,
        resource=allocation.resource,
        detail=detail,
    )
