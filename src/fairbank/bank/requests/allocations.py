"""Requests about allocations themselves."""

from __future__ import annotations

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.requests.base import BaseRequest
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Open(BaseRequest, frozen=True, kw_only=True, tag="open"):
    """Create an allocation, valid at `t` if start <= t < end, with a first deposit if it is not
    0.
    """

    project: int
    resource: str
    category: str
    start: Instant
    end: Instant
    shared: bool = False
    credit_limit: SuMinutes = SuMinutes(0)
    deposit: SuMinutes = SuMinutes(0)


class Amend(BaseRequest, frozen=True, kw_only=True, tag="amend"):
    """Change terms of an allocation; None leaves a term unchanged. The event END also ends the
    period now.

    `project` and `resource` are those of the allocation. They never change, and name the
    allocations that its period must not overlap.
    """

    allocation: int
    project: int
    resource: str
    start: Instant | None = None
    end: Instant | None = None
    shared: bool | None = None
    credit_limit: SuMinutes | None = None
    event: AllocationEvent | None = None


class Expire(BaseRequest, frozen=True, kw_only=True, tag="expire"):
    """End an allocation whose period is over. Only upkeep sends it."""

    allocation: int


class SetCap(BaseRequest, frozen=True, kw_only=True, tag="cap"):
    """Limit the credit that user `uid` may use of an allocation; None removes the cap.

    `by` is the user whose role in `project` decides whom they may cap; None is staff, who may cap
    everyone. The roles at the time of the transaction count.
    """

    allocation: int
    uid: int
    cap: SuMinutes | None
    project: int | None = None
    by: int | None = None


class Deposit(BaseRequest, frozen=True, kw_only=True, tag="deposit"):
    """Deposit credit into an allocation."""

    allocation: int
    amount: SuMinutes


class Withdraw(BaseRequest, frozen=True, kw_only=True, tag="withdraw"):
    """Withdraw unused credit from an allocation; its credit limit cannot be withdrawn."""

    allocation: int
    amount: SuMinutes


class Transfer(BaseRequest, frozen=True, kw_only=True, tag="transfer"):
    """Move credit between two active allocations of one resource."""

    source: int
    target: int
    amount: SuMinutes
