"""Filter for the allocations that a batch needs of a project and resource."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.core.time import DAY, LAST_INSTANT

_WEEK = 7 * DAY


class AllocationFilter(msgspec.Struct, frozen=True):
    """Allocations whose period contains a time from `first` to `last`; only shared ones unless
    `own`.
    """

    first: int
    last: int
    own: bool

    def __or__(self, other: AllocationFilter) -> AllocationFilter:
        """Return a filter for both, and for the time between: only filters of one week are
        joined.
        """
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
"""Filters by project, resource, and the week in which they begin. A report that is a year late
should not lock all allocations of that year.
"""


def want(funds: Funds, project: int, resource: str, wanted: AllocationFilter) -> None:
    """Add a filter for the allocations of a project and resource to those of a batch."""
    fund = project, resource, wanted.first // _WEEK
    known = funds.get(fund)
    if known != wanted:  # most jobs of a batch begin in the same second
        funds[fund] = wanted if known is None else known | wanted
