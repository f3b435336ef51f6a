"""Use of a whole centre: capacity of each resource, and what was granted and used of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import Usage
from fairbank.core.time import Instant

Number = TypeVar("Number", int, Fraction)


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of a resource in a period, on clusters with the same prices; amounts in SU-minutes.

    `units` is the billing of all nodes together, None if it is not known; `capacity` is that
    times the period. `used` are the charges of runs that ended in the period, less refunds.

    A resource with several prices also has a row without clusters. Its credit pays at each price,
    so it is there, with the sum of what the clusters can charge, and their `granted` is None. Its
    `used` is 0: charges at different prices are not added. Measured use of a resource that no
    cluster bills has no clusters too.
    """

    resource: str
    clusters: str
    units: Fraction | None
    capacity: int | None
    granted: int | None
    used: int
    runs: int
    core_seconds: int
    gpu_seconds: int


class CentreUse(msgspec.Struct, frozen=True):
    """Use of each resource, and the numbers of projects and allocations with credit in the
    period.
    """

    resources: Sequence[ResourceUse]
    projects: int
    allocations: int


def granted_in(allocation: Allocation, since: Instant, until: Instant) -> int:
    """Return the credit that is for this period in SU-minutes: the term is spread evenly.

    A year's credit of 8,760 SU gives a period of a day 24 SU.

    Args:
        allocation: allocation with its term; its credit limit does not count.
        since: start of the period.
        until: end of the period, excluded.
    """
    overlap = min(allocation.end, until) - max(allocation.start, since)
    return allocation.deposited * max(0, overlap) // (allocation.end - allocation.start)


def centre_use(
    units: Mapping[tuple[str, str], Fraction | None],
    allocations: Iterable[Allocation],
    usage: Iterable[Usage],
    since: Instant,
    until: Instant,
) -> CentreUse:
    """Return the use of a centre between two times.

    Args:
        units: billing units of each resource and group of clusters; None if not known.
        allocations: all allocations.
        usage: usage of the period by resource.
        since: start of the period.
        until: end of the period, excluded.
    """
    valid = [
        allocation
        for allocation in allocations
        if allocation.start < until and allocation.end > since
    ]
    granted: dict[str, int] = {}
    for allocation in valid:
        part = granted_in(allocation, since, until)
        granted[allocation.resource] = granted.get(allocation.resource, 0) + part
    used = {(row.resource, row.clusters): row for row in usage}
    keys = sorted(set(units) | set(used))
    rows: list[ResourceUse] = []
    for resource in sorted({*granted, *(name for name, _ in keys)}):
        own = [
            _resource_use(key, units.get(key), used.get(key), until - since)
            for key in keys
            if key[0] == resource
        ]
        rows += _with_credit(resource, own, granted.get(resource, 0))
    return CentreUse(
        rows, projects=len({allocation.project for allocation in valid}), allocations=len(valid)
    )


def _resource_use(
    key: tuple[str, str], units: Fraction | None, used: Usage | None, seconds: int
) -> ResourceUse:
    return ResourceUse(
        resource=key[0],
        clusters=key[1],
        units=units,
        capacity=None if units is None else int(units * seconds / 60),
        granted=None,
        used=0 if used is None else used.charged,
        runs=0 if used is None else used.runs,
        core_seconds=0 if used is None else used.core_seconds,
        gpu_seconds=0 if used is None else used.gpu_seconds,
    )


def _with_credit(resource: str, own: list[ResourceUse], granted: int) -> list[ResourceUse]:
    """Return the rows of a resource with its credit: in a row of its own, unless there is one."""
    if len(own) == 1:
        return [replace(own[0], granted=granted)]
    whole = _resource_use((resource, ""), None, None, 0)
    if own and own[0].clusters == "":
        whole, *own = own
    capacity = total(row.capacity for row in own) if own else None
    units = total(row.units for row in own) if own else None
    return [replace(whole, units=units, capacity=capacity, granted=granted), *own]


def total(parts: Iterable[Number | None]) -> Number | None:
    """Return the sum of parts, of which there is at least one; None if one is not known."""
    known = []
    for part in parts:
        if part is None:
            return None
        known.append(part)
    return sum(known[1:], known[0])
