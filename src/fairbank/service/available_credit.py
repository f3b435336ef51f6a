"""What a user could draw on: read from the books as the ledger would see it, without a lock."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.run import UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant
from fairbank.store.contract import Store

Means = list[tuple[Allocation, UserSums]]


def means(
    store: Store, lines: Sequence[tuple[int, ...]], resource: str, uid: int, at: Instant
) -> list[Means]:
    """For each line of projects the allocations that may carry a job of user `uid` starting at `at`, in the ledger's order, with
    what that user drew from each. All in one snapshot."""
    projects = frozenset(project for line in lines for project in line)
    with store.reading() as reader:
        found = reader.allocations(
            AllocationQuery(projects=projects, resource=resource, active_at=at), Page(PAGE_MAX)
        )
        rows = reader.users(frozenset(each.id for each in found), uid) if found else []
    work = TransactionData(
        allocations=found, users=((row.allocation, uid, row.sums) for row in rows)
    )
    return [
        [(each, work.sums_of(each.id, uid)) for each in work.candidates(line, resource, at)]
        for line in lines
    ]
