"""What all rules of runs share: whether an allocation can carry more, and how its sums move."""

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

# Looked up once, not for each run: before Python 3.12 the way to a member of an enumeration is as dear as making a value.
_FROZEN = AllocationState.FROZEN
RESOLUTION = {Charge: (Kind.CHARGE, RunState.CHARGED), Release: (Kind.RELEASE, RunState.RELEASED)}
"""How a run ends: the entry and the state that it gets."""


def obstacle(data: TransactionData, allocation: Allocation, owner: int, more: int) -> Reason | None:
    """Why `allocation` cannot carry `more` for `owner`; None if it can. A freeze counts until it is thawed, also beyond the period."""
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
    """`allocation` with its sums moved, and the owner's sums moved alike. `below`: policy lets `available` go below zero."""
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
