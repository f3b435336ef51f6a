"""Use of a whole centre: capacity of each resource, and what was granted and used of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.query import Usage
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes, in_permille

Number = TypeVar("Number", int, Fraction)


class ResourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """Use of a resource in a period, on clusters with the same prices; amounts in SU-minutes.

    `rest.schemas.usage.ResourceUseRow` describes the fields; here None means what null means there.
    `granted_at_end` is more than `granted` if allocations are new.

    A resource with several prices has a row for the clusters of each price, and one without
    clusters (`several_prices`) for what they share. That row has the granted credit, which pays at
    each price, and the sum of the capacities; the rows of the clusters have None as `granted`. Its
    `used` is None, because charges at different prices are not added, unless the resource has
    measured use, which no cluster bills: then `used` is that use.

    `occupied` is what runs had of the capacity, whichever resource paid for them; None if that of a
    run is not known, and where `used` is. `of_qos`: no partition bills it, only QOS do, so it has
    no nodes of its own, and its runs occupy those of their partitions.
    """

    resource: str
    clusters: str
    cluster_names: Sequence[str] = ()
    billing_units: Fraction | None
    capacity: int | None
    granted: int | None
    granted_at_end: int | None
    used: int | None
    runs: int
    core_seconds: int
    gpu_seconds: int
    occupied: int | None
    without_size: int
    several_prices: bool = False
    of_qos: bool = False


class ClusterSize(msgspec.Struct, frozen=True):
    """Processors and GPUs of all nodes of a cluster; None if not known."""

    cluster: str
    cpus: int | None
    gpus: int | None


class Occupied(NamedTuple):
    """Capacity that runs had in SU-minutes, and the number of those of which it is not known."""

    minutes: int = 0
    without_size: int = 0


class JobSums(msgspec.Struct, frozen=True, kw_only=True):
    """Number of jobs, and the time of the processors and GPUs that they had, of all resources.

    `cpus` and `gpus` are those of all clusters of the settings; None if one has none there. The
    parts of their time in thousandths are of jobs on these clusters: the processors of others are
    not known. A job counts where it ended, with all its time, so they may exceed 1000 in a short
    period.
    """

    runs: int
    core_seconds: int
    gpu_seconds: int
    cpus: int | None
    gpus: int | None
    cpu_used_permille: int | None
    gpu_used_permille: int | None


class CentreUse(msgspec.Struct, frozen=True):
    """Use of each resource and of all together, the clusters of the settings, and the numbers of
    projects and allocations with a term in the period, empty ones too.
    """

    resources: Sequence[ResourceUse]
    jobs: JobSums
    clusters: Sequence[ClusterSize]
    projects: int
    allocations: int


def granted_in(credit: int, terms: AllocationTerms, since: Instant, until: Instant) -> int:
    """Return the credit that is for this period in SU-minutes: the term is spread evenly.

    A year's credit of 8,760 SU gives a period of a day 24 SU.

    Args:
        credit: credit that was granted for the term.
        terms: terms with the term; the credit limit does not count.
        since: start of the period.
        until: end of the period, excluded.
    """
    overlap = min(terms.end, until) - max(terms.start, since)
    return credit * max(0, overlap) // (terms.end - terms.start)


def centre_use(
    units: Mapping[tuple[str, str], Fraction | None],
    members: Mapping[str, Sequence[str]],
    clusters: Sequence[ClusterSize],
    allocations: Iterable[Allocation],
    usage: Iterable[Usage],
    occupied: Mapping[tuple[str, str], Occupied],
    since: Instant,
    until: Instant,
    of_qos: Collection[str] = (),
    ended_early: Collection[int] = (),
) -> CentreUse:
    """Return the use of a centre between two times.

    Args:
        units: billing units of each resource and group of clusters; None if not known.
        members: names of the clusters of a group; a group that is missing is one cluster.
        clusters: all clusters of the settings.
        allocations: all allocations; cancelled and removed ones do not count.
        usage: usage of the period in groups of any kind.
        occupied: what the runs of the period had of each resource, whichever resource paid.
        since: start of the period.
        until: end of the period, excluded.
        of_qos: resources that QOS bill, and no partition.
        ended_early: allocations that staff ended before their time: what was not used by then
            counts as not granted.
    """
    valid = [
        allocation
        for allocation in allocations
        if allocation.terms.start < until
        and allocation.is_open_at(max(allocation.terms.start, since))
    ]
    granted, at_end = _credit_by_resource(valid, ended_early, since, until)
    used = _usage_by_unit(usage)
    keys = sorted(set(units) | set(used) | set(occupied))
    rows: list[ResourceUse] = []
    for resource in sorted({*granted, *(name for name, _ in keys)}):
        own = [
            _resource_use(
                key,
                members.get(key[1], [key[1]] if key[1] else []),
                units.get(key),
                used.get(key),
                occupied.get(key, Occupied()),
                until - since,
            )
            for key in keys
            if key[0] == resource
        ]
        own = _with_credit(resource, own, granted[resource], at_end[resource])
        if resource in of_qos:
            own = [replace(row, of_qos=True, occupied=None) for row in own]
        rows += own
    return CentreUse(
        rows,
        _job_sums(rows, clusters, until - since),
        clusters,
        projects=len({allocation.terms.project for allocation in valid}),
        allocations=len(valid),
    )


def _usage_by_unit(usage: Iterable[Usage]) -> dict[tuple[str, str], Usage]:
    used: dict[tuple[str, str], Usage] = {}
    for row in usage:
        unit = row.resource, row.clusters
        used[unit] = used[unit].plus(row) if unit in used else row
    return used


def _credit_by_resource(
    allocations: Iterable[Allocation], ended_early: Collection[int], since: Instant, until: Instant
) -> tuple[Counter[str], Counter[str]]:
    """Return the credit for the period by resource, and that of a period as long by what is granted
    at its end (arguments: `centre_use`).
    """
    granted, at_end = Counter[str](), Counter[str]()
    for allocation in allocations:
        terms = allocation.terms
        credit = allocation.deposited
        if allocation.id in ended_early:
            credit = SuMinutes(allocation.charged + allocation.held)
        granted[terms.resource] += granted_in(credit, terms, since, until)
        if allocation.is_open_at(until - 1):
            part = credit * (until - since) // (terms.end - terms.start)
            at_end[terms.resource] += part
    return granted, at_end


def with_nodes(
    use: CentreUse, size: ClusterSize, units: Mapping[str, Fraction], seconds: int
) -> CentreUse:
    """Return the use of a centre with the nodes of a cluster, where its settings have none.

    Args:
        size: the cluster, with the processors and GPUs of its nodes.
        units: billing of its nodes by resource.
        seconds: duration of the period.
    """
    sizes = [
        ClusterSize(
            own.cluster,
            size.cpus if own.cpus is None else own.cpus,
            size.gpus if own.gpus is None else own.gpus,
        )
        if own.cluster == size.cluster
        else own
        for own in use.clusters
    ]
    rows = []
    for resource, of_resource in groupby(use.resources, attrgetter("resource")):
        own = [
            replace(
                row, billing_units=units[resource], capacity=_capacity(units[resource], seconds)
            )
            if row.billing_units is None
            and resource in units
            and [*row.cluster_names] == [size.cluster]
            else row
            for row in of_resource
        ]
        if own[0].several_prices:
            own[0] = _sum_of_prices(own[0], own[1:])
        rows += own
    return replace(use, resources=rows, clusters=sizes, jobs=_job_sums(rows, sizes, seconds))


def _capacity(units: Fraction | None, seconds: int) -> int | None:
    return None if units is None else int(units * seconds / 60)


def _resource_use(
    key: tuple[str, str],
    names: Sequence[str],
    units: Fraction | None,
    used: Usage | None,
    occupied: Occupied,
    seconds: int,
) -> ResourceUse:
    return ResourceUse(
        resource=key[0],
        clusters=key[1],
        cluster_names=names,
        billing_units=units,
        capacity=_capacity(units, seconds),
        granted=None,
        granted_at_end=None,
        used=0 if used is None else used.charged,
        runs=0 if used is None else used.runs,
        core_seconds=0 if used is None else used.core_seconds,
        gpu_seconds=0 if used is None else used.gpu_seconds,
        occupied=None if occupied.without_size else occupied.minutes,
        without_size=occupied.without_size,
    )


def _with_credit(
    resource: str, own: list[ResourceUse], granted: int, at_end: int
) -> list[ResourceUse]:
    """Return the rows of a resource with its credit: in a row of its own, unless there is one."""
    if len(own) == 1:
        return [replace(own[0], granted=granted, granted_at_end=at_end)]
    if own and own[0].clusters == "":
        whole, *own = own
    else:
        whole = _resource_use((resource, ""), [], None, None, Occupied(), 0)
        if own:
            whole = replace(whole, used=None, occupied=None)
    credit = replace(whole, granted=granted, granted_at_end=at_end, several_prices=bool(own))
    return [_sum_of_prices(credit, own), *own]


def _sum_of_prices(credit: ResourceUse, own: Sequence[ResourceUse]) -> ResourceUse:
    """Return the row of a resource with several prices, with what its clusters can charge."""
    capacity, units = (
        _total([row.capacity for row in own]),
        _total([row.billing_units for row in own]),
    )
    return replace(credit, billing_units=units, capacity=capacity)


def _job_sums(
    rows: Sequence[ResourceUse], clusters: Sequence[ClusterSize], seconds: int
) -> JobSums:
    names = {size.cluster for size in clusters}
    of_settings = [row for row in rows if names.issuperset(row.cluster_names)]
    core_seconds = sum(row.core_seconds for row in of_settings)
    gpu_seconds = sum(row.gpu_seconds for row in of_settings)
    cpus = _total([size.cpus for size in clusters])
    gpus = _total([size.gpus for size in clusters])
    return JobSums(
        runs=sum(row.runs for row in rows),
        core_seconds=sum(row.core_seconds for row in rows),
        gpu_seconds=sum(row.gpu_seconds for row in rows),
        cpus=cpus,
        gpus=gpus,
        cpu_used_permille=in_permille(core_seconds, cpus and cpus * seconds),
        gpu_used_permille=in_permille(gpu_seconds, gpus and gpus * seconds),
    )


def _total(parts: Sequence[Number | None]) -> Number | None:
    """Return the sum of the parts; None if one is not known, or if there is none."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(parts) else None
