"""Which allocations of a project may be drawn on: no more of them are wanted, and so locked, than that."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.core.time import DAY, LAST_INSTANT

_WEEK = 7 * DAY


class AllocationFilter(msgspec.Struct, frozen=True):
    """Which allocations of a fund: those whose period has an instant from `first` to `last`; unless `own`, only shared ones."""

    first: int
    last: int
    own: bool

    def __or__(self, other: AllocationFilter) -> AllocationFilter:
        """What is in either, and what lies between the two: so only those that begin in one week are put together."""
        return AllocationFilter(
            min(self.first, other.first), max(self.last, other.last), self.own or other.own
        )

    def has(self, allocation: Allocation) -> bool:
        return (
            allocation.start <= self.last
            and self.first < allocation.end
            and (self.own or allocation.shared)
        )


ALL_OF_IT = AllocationFilter(0, LAST_INSTANT, own=True)

Funds = dict[tuple[int, str, int], AllocationFilter]
"""What is wanted of allocations, by project, resource, and the week in which it begins: a report that comes a year late is no
reason to want all of that year."""


def want(funds: Funds, project: int, resource: str, wanted: AllocationFilter) -> None:
    """Want this of a project's allocations of a resource as well."""
    fund = project, resource, wanted.first // _WEEK
    known = funds.get(fund)
    if known != wanted:  # most jobs of a batch begin in the same second
        funds[fund] = wanted if known is None else known | wanted
