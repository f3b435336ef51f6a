"""Sums of an allocation: whether it can pay more, and how they change."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.entry import Kind
from fairbank.bank.refusals import Reason
from fairbank.bank.requests import Charge, Release
from fairbank.bank.run import RunState, UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace

# Looked up once: before Python 3.12 the lookup of a member costs as much as creating a value.
_FROZEN = AllocationState.FROZEN
RESOLUTION = {Charge: (Kind.CHARGE, RunState.CHARGED), Release: (Kind.RELEASE, RunState.RELEASED)}
"""Kind of entry and state of the run, by the request that ends it."""


def obstacle(data: TransactionData, allocation: Allocation, owner: int, more: int) -> Reason | None:
    """Return the reason why an allocation cannot pay `more` for a user; None if it can.

    A freeze counts until it is thawed, even after the period.
    """
    if allocation.state is _FROZEN:
        return Reason.FROZEN
    if more > allocation.available:
        return Reason.INSUFFICIENT_CREDIT
    sums = data.sums_of(allocation.id, owner)
    if sums.cap is not None and sums.charged + sums.held + more > sums.cap:
        return Reason.CAPPED
    return None


def moved(
    data: TransactionData,
    allocation: Allocation,
    owner: int,
    *,
    charged: int = 0,
    held: int = 0,
    below: bool = False,
) -> Allocation:
    """Return an allocation with changed sums, and change the sums of the owner.

    Args:
        data: rows of the transaction.
        allocation: allocation that pays.
        owner: owner of the run.
        charged: change of the charges, in SU-minutes.
        held: change of the holds, in SU-minutes.
        below: policy lets `available` go below zero.
    """
    sums = data.sums_of(allocation.id, owner)
    data.put_user(
        allocation.id,
        owner,
        UserSums(SuMinutes(sums.charged + charged), SuMinutes(sums.held + held), sums.cap),
    )
    after = _replace(allocation, charged=allocation.charged + charged, held=allocation.held + held)
    return (
        _replace(after, overrun=SuMinutes(max(after.overrun, -after.available))) if below else after
    )
