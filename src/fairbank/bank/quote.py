"""Quote: price of a job, and whether an allocation can pay it. Nothing is written."""

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
    """Bill with the allocation that would pay it. `fits` is the present answer of the bank; `notes`
    say what the figures do not show.
    """

    bill: Bill
    allocation: int | None
    available: int
    fits: bool
    notes: tuple[str, ...] = ()

    @property
    def after(self) -> int:
        """Available credit while the job holds its highest cost."""
        return self.available - self.bill.amount

    @property
    def longest_seconds(self) -> int:
        """Longest time limit that fits now, in whole minutes; 0 if none fits."""
        return longest_paid(self.bill.billing * self.bill.factor, self.available)


def quote(bill: Bill, candidates: list[tuple[Allocation, UserSums]], policy: Policy) -> Quote:
    """Return the first allocation that can pay the whole bill, otherwise the first one, or none.

    If the bank only observes, every job fits, with a note.

    Args:
        bill: price of the job.
        candidates: allocations that may pay, with the sums of the user.
        policy: rules of the bank.
    """
    offers = [(each, usable(each, sums)) for each, sums in candidates]
    for allocation, left in offers:
        if bill.amount <= left and allocation.state is AllocationState.ACTIVE:
            return Quote(bill, allocation.id, left, fits=True)
    notes = () if policy.enforce else (OBSERVED,)
    if offers:
        return Quote(bill, offers[0][0].id, offers[0][1], fits=not policy.enforce, notes=notes)
    return Quote(bill, None, 0, fits=not policy.enforce, notes=notes)


def remarks(request: JobRequest, cluster: Cluster) -> tuple[str, ...]:
    """Return what is not in the price although a user may expect it: a QOS, or TRES without a
    weight.

    This is no error: the job is charged by the same rules. Raises NotFound for the partition.
    """
    notes = []
    if request.qos is not None and request.qos not in cluster.qos_factors:
        known = ", ".join(sorted(cluster.qos_factors)) or "none"
        notes.append(
            f"QOS {request.qos} has no price factor on cluster {cluster.name}, so it counts as 1;"
            f" those with one: {known}"
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
    """Return the credit that a user may still use: available, within the user's cap; 0 if
    frozen.
    """
    return sums.within(allocation.available) if allocation.state is AllocationState.ACTIVE else 0
