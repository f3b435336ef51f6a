"""What a job would cost and whether it could be paid, without touching the books."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.charge import Bill
from fairbank.bank.run import UserSums


class Quote(msgspec.Struct, frozen=True):
    """A bill beside the allocation that would carry it. `fits` is what the ledger would say now."""

    bill: Bill
    allocation: int | None
    available: int
    fits: bool

    @property
    def after(self) -> int:
        """What would be left while the job holds its highest cost."""
        return self.available - self.bill.amount


def quote(bill: Bill, candidates: list[tuple[Allocation, UserSums]]) -> Quote:
    """The first of `candidates` that can carry the whole bill, else the first there is, else none."""
    offers = [(each, _usable(each, sums)) for each, sums in candidates]
    for allocation, usable in offers:
        if bill.amount <= usable and allocation.state is AllocationState.ACTIVE:
            return Quote(bill, allocation.id, usable, fits=True)
    if offers:
        return Quote(bill, offers[0][0].id, offers[0][1], fits=False)
    return Quote(bill, None, 0, fits=False)


def _usable(allocation: Allocation, sums: UserSums) -> int:
    """What one user may still draw: what is left, within the user's cap; nothing while frozen."""
    if allocation.state is not AllocationState.ACTIVE:
        return 0
    return allocation.available if sums.cap is None else min(allocation.available, sums.cap - sums.charged - sums.held)
