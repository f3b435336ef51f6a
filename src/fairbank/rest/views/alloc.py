"""Allocations, as the shapes that travel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.project import Project
from fairbank.core.time import Instant, iso
from fairbank.rest.bodies import answers


def allocation_row(allocation: Allocation, project: Project, now: Instant) -> answers.AllocationRow:
    """An allocation with its project's names, its state by the clock, and its sums, in SU-minutes."""
    return answers.AllocationRow(
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


def balance_row(allocation: Allocation, project: Project, now: Instant) -> answers.BalanceRow:
    """An allocation with how much of the deposited is used, in whole percent, rounded down."""
    percent = allocation.charged * 100 // allocation.deposited if allocation.deposited else 0
    return answers.BalanceRow(
        **msgspec.structs.asdict(allocation_row(allocation, project, now)), used_percent=percent
    )


def changed_terms(changed: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Terms as the row of an allocation has them."""
    return (
        None
        if changed is None
        else {
            name: iso(value) if name in ("start", "end") else value
            for name, value in changed.items()
        }
    )
