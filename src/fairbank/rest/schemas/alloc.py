"""Allocations with their balances and users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, structs

from fairbank.bank.allocation import Allocation
from fairbank.bank.project import Project
from fairbank.bank.query import UserRow
from fairbank.core.time import Instant, iso


class AllocationRow(Struct, frozen=True, kw_only=True):
    """An allocation with its balance. It is valid at t if start <= t < end.

    `state` is that at the time of the response. HADM's schema 2: allocation_id is `id`, project_id
    `project`, start_date `start`, end_date `end`.
    """

    id: int
    project: int
    account: str
    gname: str
    resource: str
    category: str
    start: str
    end: str
    state: Literal["planned", "active", "frozen", "ended"]
    shared: bool
    credit_limit: int
    deposited: int
    charged: int
    held: int
    available: int


class ChangedAllocation(AllocationRow, frozen=True, kw_only=True):
    """An allocation after a change. `entry` recorded it; `warnings`, if any, name likely
    mistakes."""

    entry: int
    warnings: list[str] | UnsetType = UNSET


class BalanceRow(AllocationRow, frozen=True, kw_only=True):
    """An allocation with the used part of its deposits, in percent rounded down; 0 without
    deposits."""

    used_percent: int


class DrawnRow(Struct, frozen=True, kw_only=True):
    """Use of an allocation by one user, and the user's cap."""

    uid: int
    charged: int
    held: int
    cap: int | None


def allocation_row(allocation: Allocation, project: Project, now: Instant) -> AllocationRow:
    """Return an allocation with its project's names, and its state at `now`."""
    return AllocationRow(
        id=allocation.id,
        project=allocation.project,
        account=project.account,
        gname=project.gname,
        resource=allocation.resource,
        category=allocation.category,
        start=iso(allocation.start),
        end=iso(allocation.end),
        state=allocation.standing(now).value,
        shared=allocation.shared,
        credit_limit=allocation.credit_limit,
        deposited=allocation.deposited,
        charged=allocation.charged,
        held=allocation.held,
        available=allocation.available,
    )


def balance_row(allocation: Allocation, project: Project, now: Instant) -> BalanceRow:
    """Return an allocation with the used part of its deposits."""
    percent = allocation.charged * 100 // allocation.deposited if allocation.deposited else 0
    return BalanceRow(
        **structs.asdict(allocation_row(allocation, project, now)), used_percent=percent
    )


def drawn_row(user: UserRow) -> DrawnRow:
    """Return the use of an allocation by one user."""
    sums = user.sums
    return DrawnRow(uid=user.uid, charged=sums.charged, held=sums.held, cap=sums.cap)


def changed_terms(changed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return changed terms of an allocation under the names of its row."""
    if changed is None:
        return None
    return {
        name: iso(value) if name in ("start", "end") else value for name, value in changed.items()
    }
