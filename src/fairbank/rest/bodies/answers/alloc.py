"""Allocations with their sums and their users."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class AllocationRow(Struct, frozen=True, kw_only=True):
    """An allocation with its sums; valid at t when start <= t < end. `state` is by the clock: as of the time of the answer.

    HADM's schema 2: allocation_id is `id`, project_id `project`, start_date `start`, end_date `end`.
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
    """An allocation after a change; `entry` is the one that says so, `warnings`, where there are any, what may not have been meant."""

    entry: int
    warnings: list[str] | UnsetType = UNSET


class BalanceRow(AllocationRow, frozen=True, kw_only=True):
    """`used_percent` is what is charged of what was deposited, in whole percent rounded down; 0 where nothing was deposited."""

    used_percent: int


class DrawnRow(Struct, frozen=True, kw_only=True):
    """What one user drew from an allocation, and may draw in all."""

    uid: int
    charged: int
    held: int
    cap: int | None
