"""Quote of a job: whether an allocation can pay its price, in each partition that it names, and
cheaper requests that would do. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.policy import Policy
from fairbank.bank.pricing import Bill, cost, longest_paid
from fairbank.bank.rules.context import obstacle
from fairbank.bank.run import UserSums
from fairbank.cluster.partition import Cluster
from fairbank.core.time import show_duration
from fairbank.core.tres import BillingRule, is_max_candidate

OBSERVED = (
    "the bank only observes: it would let this job through, and keep why it would have refused it"
)


class Quote(msgspec.Struct, frozen=True):
    """Bill with the allocation that would pay it, and whether the bank accepts the job now.

    The bill is that of one task; `available` must pay all `tasks` of an array.
    """

    bill: Bill
    allocation: int | None
    available: int
    fits: bool
    notes: tuple[str, ...] = ()
    tasks: int = 1

    @property
    def total(self) -> int:
        """Highest cost of all tasks, each rounded up by itself."""
        return self.bill.amount * self.tasks

    @property
    def after(self) -> int:
        """Available credit while all tasks hold their highest cost."""
        return self.available - self.total

    @property
    def longest_seconds(self) -> int:
        """Longest time limit that fits now, in whole minutes; 0 if none fits."""
        return longest_paid(self.bill.billing * self.bill.factor, self.available // self.tasks)


def quote(
    bill: Bill, candidates: list[tuple[Allocation, UserSums]], policy: Policy, tasks: int = 1
) -> Quote:
    """Return the first allocation that can pay all tasks, otherwise the first one, or none.

    If the bank only observes, every job fits, with a note.

    Args:
        bill: price of the job.
        candidates: allocations that may pay, with the sums of the user.
        policy: rules of the bank.
        tasks: number of tasks of an array; 1 for another job.
    """
    for allocation, sums in candidates:
        if obstacle(allocation, sums, bill.amount * tasks) is None:
            left = allocation.available_credit(sums)
            return Quote(bill, allocation.id, left, fits=True, tasks=tasks)
    notes = () if policy.enforce else (OBSERVED,)
    number, left = None, 0
    if candidates:
        first, sums = candidates[0]
        number, left = first.id, first.available_credit(sums)
    return Quote(bill, number, left, fits=not policy.enforce, notes=notes, tasks=tasks)


class CheaperRequest(NamedTuple):
    """Change of one option that makes a job cheaper, with the price of the changed job."""

    change: Literal["time_limit", "nodes", "partition", "qos", "mem"]
    value: str
    total: int


def deciding(quotes: Sequence[Quote]) -> Quote:
    """Return the quote on which a job in several partitions depends: it may start in any.

    It is one that does not fit, if there is one: that with the shortest time limit that fits, so
    that a limit which fits there fits in all. Prices of different resources cannot be compared.
    """
    return min(
        quotes, key=lambda quote: decision_order(quote.fits, quote.longest_seconds, quote.total)
    )


def decision_order(fits: bool, longest_seconds: int, total: int) -> tuple[bool, int, int]:
    """Return the sort key of a quote among those of a job: the first one decides (`deciding`).

    Args:
        fits: the bank accepts the job there.
        longest_seconds: longest time limit that fits there.
        total: price of all tasks in SU-minutes.
    """
    return fits, longest_seconds, -total


def cheapest_first(quotes: Sequence[Quote]) -> list[Quote]:
    """Return the quotes sorted by resource, and within it by price."""
    return sorted(
        quotes, key=lambda quote: (quote.bill.resource, quote.total, quote.bill.partition)
    )


def cheaper_partition(quotes: Sequence[Quote]) -> CheaperRequest | None:
    """Return the cheapest partition that fits, of the resource of the deciding one; None if the
    job costs the same in all. If none of that resource fits, one of another resource.
    """
    decided = deciding(quotes)
    fitting = [quote for quote in quotes if quote.fits and quote is not decided]
    same = [quote for quote in fitting if quote.bill.resource == decided.bill.resource]
    best = min(
        same or ([] if decided.fits else fitting), key=lambda quote: quote.total, default=None
    )
    if best is None or (same and best.total >= decided.total):
        return None
    return CheaperRequest("partition", best.bill.partition, best.total)


def less_memory(quote: Quote, rule: BillingRule) -> CheaperRequest | None:
    """Return the memory of each node from which on another TRES sets the price.

    None if memory does not set it, and if the job would not fit with that either.
    """
    bill = quote.bill
    memory = next((line for line in bill.lines if line.what == "mem" and line.sets_price), None)
    others = [
        line.weighted
        for line in bill.lines
        if line.what != "mem" and is_max_candidate(line.what, rule)
    ]
    if memory is None or not is_max_candidate("mem", rule) or not any(others):
        return None
    mebibytes = int(max(others) / memory.weight / bill.counts["node"])
    billing = bill.billing - memory.weighted + max(others)
    total = cost(billing, bill.factor, bill.seconds) * quote.tasks
    if not mebibytes or total >= quote.total or not (quote.fits or total <= quote.available):
        return None
    size = f"{mebibytes}M" if mebibytes % 1024 else f"{mebibytes // 1024}G"
    return CheaperRequest("mem", size, total)


def smaller_requests(
    quotes: Sequence[Quote], nodes: int, qos: str | None, cluster: Cluster
) -> Iterator[CheaperRequest]:
    """Yield the least changes with which the credit pays for a job that does not fit.

    Args:
        quotes: one for each partition of the job; a change must fit in all.
        nodes: number that the job requests.
        qos: its QOS.
        cluster: the cluster, with the prices.
    """
    decided = deciding(quotes)
    bill = decided.bill
    longest = min(quote.longest_seconds for quote in quotes)
    if 0 < longest < bill.seconds:
        total = cost(bill.billing, bill.factor, longest) * decided.tasks
        yield CheaperRequest("time_limit", show_duration(longest), total)
    fewer = min(_nodes_paid(quote, nodes) for quote in quotes)
    if 0 < fewer < nodes:
        total = _scaled_total(decided, Fraction(fewer, nodes))
        yield CheaperRequest("nodes", str(fewer), total)
    if (other := _cheaper_qos(quotes, qos, cluster)) is not None:
        total = _scaled_total(decided, cluster.qos_factor(other) / bill.factor)
        yield CheaperRequest("qos", other, total)


def _scaled_total(quote: Quote, part: Fraction) -> int:
    """Return the price of all tasks with a part of the billing, rounded up for each."""
    bill = quote.bill
    return cost(bill.billing * part, bill.factor, bill.seconds) * quote.tasks


def _nodes_paid(quote: Quote, nodes: int) -> int:
    """Return how many nodes the credit pays; 0 if the TRES of a node are no whole numbers."""
    if any(count % nodes for count in quote.bill.counts.values()):
        return 0
    bill, paid = quote.bill, quote.available // quote.tasks
    per_node = bill.billing * bill.factor * bill.seconds / 60 / nodes
    return nodes if per_node == 0 else max(int(paid / per_node), 0)


def _cheaper_qos(quotes: Sequence[Quote], qos: str | None, cluster: Cluster) -> str | None:
    """Return the QOS with the highest factor that fits, if its jobs are billed on the same resource
    as now.
    """
    own = cluster.qos_factor(qos)
    fitting = [
        (factor, name)
        for name, factor in cluster.qos_factors.items()
        if factor < own
        and all(
            cluster.resource(quote.bill.partition, name) == quote.bill.resource
            and _scaled_total(quote, factor / own) <= quote.available
            for quote in quotes
        )
    ]
    return max(fitting)[1] if fitting else None
