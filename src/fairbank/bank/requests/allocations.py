"""Requests about allocations themselves."""

from __future__ import annotations

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.requests.base import BaseRequest
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes


class Open(BaseRequest, frozen=True, kw_only=True, tag="open"):
    """Make an allocation, valid at `t` when start <= t < end, with a first deposit if there is one."""

    project: int
    resource: str
    category: str
    start: Instant
    end: Instant
    shared: bool = False
    credit_limit: SuMinutes = SuMinutes(0)
    deposit: SuMinutes = SuMinutes(0)


class Amend(BaseRequest, frozen=True, kw_only=True, tag="amend"):
    """Change the terms of an allocation; None leaves a term as it is. The event END also ends the period now.

    `project` and `resource` are the allocation's own: they never change, and tell which others it must not overlap.
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
    """End an allocation whose period is over. Only the sweep asks this."""

    allocation: int


class SetCap(BaseRequest, frozen=True, kw_only=True, tag="cap"):
    """Let user `uid` draw at most `cap` in all from an allocation; None lifts the cap.

    `by` is the user whose own role in `project`, the allocation's, decides whom they may cap, as it is when the request is judged; None is
    staff, who may cap anybody.
    """

    allocation: int
    uid: int
    cap: SuMinutes | None
    project: int | None = None
    by: int | None = None


class Deposit(BaseRequest, frozen=True, kw_only=True, tag="deposit"):
    """Put credit into an allocation."""

    allocation: int
    amount: SuMinutes


class Withdraw(BaseRequest, frozen=True, kw_only=True, tag="withdraw"):
    """Take unused credit out of an allocation; a credit limit is none."""

    allocation: int
    amount: SuMinutes


class Transfer(BaseRequest, frozen=True, kw_only=True, tag="transfer"):
    """Move credit between two allocations of one resource, both active and not over."""

    source: int
    target: int
    amount: SuMinutes
