"""What a job would cost and whether it could be paid, without touching the books."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.policy import Policy
from fairbank.bank.pricing import Bill, longest_paid
from fairbank.bank.run import UserSums
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster
from fairbank.core.tres import BY_CPU, unpriced_tres

OBSERVED = (
    "the bank only observes: it would let this job through, and keep why it would have refused it"
)


class Quote(msgspec.Struct, frozen=True):
    """A bill beside the allocation that would carry it. `fits` is what the ledger would say now; `notes` tell what the
    figures do not."""

    bill: Bill
    allocation: int | None
    available: int
    fits: bool
    notes: tuple[str, ...] = ()

    @property
    def after(self) -> int:
        """What would be left while the job holds its highest cost."""
        return self.available - self.bill.amount

    @property
    def longest_seconds(self) -> int:
        """The longest time limit that would fit now, in whole minutes; 0 if none does."""
        return longest_paid(self.bill.billing * self.bill.factor, self.available)


def quote(bill: Bill, candidates: list[tuple[Allocation, UserSums]], policy: Policy) -> Quote:
    """The first of `candidates` that can carry the whole bill, else the first there is, else none: where the bank only observes that
    fits too, with a note."""
    offers = [(each, usable(each, sums)) for each, sums in candidates]
    for allocation, left in offers:
        if bill.amount <= left and allocation.state is AllocationState.ACTIVE:
            return Quote(bill, allocation.id, left, fits=True)
    notes = () if policy.enforce else (OBSERVED,)
    if offers:
        return Quote(bill, offers[0][0].id, offers[0][1], fits=not policy.enforce, notes=notes)
    return Quote(bill, None, 0, fits=not policy.enforce, notes=notes)


def remarks(request: JobRequest, cluster: Cluster) -> tuple[str, ...]:
    """What the asker may think is in the price, and is not: a QOS and TRES that the settings do not price.

    They are no error, since the job is charged by the same rules: what costs nothing here costs nothing there.
    Raises NotFound when the partition is.
    """
    notes = []
    if request.qos is not None and request.qos not in cluster.qos_factors:
        known = ", ".join(sorted(cluster.qos_factors)) or "none"
        notes.append(
            f"QOS {request.qos} has no price factor on cluster {cluster.name}, so it counts as 1; those with one: {known}"
        )
    weights = cluster.partition(request.partition).weights
    free = unpriced_tres(request.counts, weights)
    if free:
        priced = ", ".join(sorted(weights or BY_CPU))
        notes.append(
            f"{', '.join(free)}: no price in partition {request.partition}, which bills {priced}"
        )
    return tuple(notes)


def usable(allocation: Allocation, sums: UserSums) -> int:
    """What one user may still draw: what is left, within the user's cap; nothing while frozen."""
    return sums.within(allocation.available) if allocation.state is AllocationState.ACTIVE else 0
