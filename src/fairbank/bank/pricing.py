"""Price of a job, and notes on what it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction

import msgspec

from fairbank.cluster.allocated_tres import allocated_tres
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, Counts, billing, price_setting_tres, unpriced_tres, weigh
from fairbank.core.units import SuMinutes, round_up


class Line(msgspec.Struct, frozen=True):
    """TRES of a bill: `count` * `weight` = `weighted`; `sets_price` if it does."""

    what: str
    count: Fraction
    weight: Fraction
    weighted: Fraction
    sets_price: bool


class Bill(msgspec.Struct, frozen=True):
    """Price: `amount` = `billing` * `factor` * `seconds` / 60, rounded up to SU-minutes.

    `counts` is what the job gets in its `partition`.
    """

    resource: str
    lines: tuple[Line, ...]
    billing: Fraction
    factor: Fraction
    seconds: int
    amount: SuMinutes
    partition: str = ""
    counts: Counts = {}


def cost(
    units: Fraction, factor: Fraction, seconds: int, pieces: Iterable[tuple[Fraction, int]] = ()
) -> SuMinutes:
    """Return the price of a run in SU-minutes: exact, then rounded up once (HADM, "Service Units").

    Args:
        units: billing units.
        seconds: duration.
        pieces: billing units and seconds of a resized run before its last change, in their order.
    """
    total, rest = Fraction(0), seconds
    for piece_units, piece_seconds in pieces:
        part = min(piece_seconds, rest)
        total, rest = total + piece_units * part, rest - part
    return round_up((total + units * rest) * factor / 60)


def longest_paid(per_hour: Fraction, available: int) -> int:
    """Return the longest time limit that credit pays, in seconds of whole minutes; 0 if none.

    Args:
        per_hour: price of an hour in SU.
        available: credit in SU-minutes.
    """
    return int(available / per_hour) * 60 if per_hour > 0 and available > 0 else 0


def bill(request: JobRequest, cluster: Cluster) -> Bill:
    """Return the price of a job for its whole time limit.

    Raises NotFound for its partition, InvalidInput if the settings lack a size of its nodes.
    """
    partition = cluster.partition(request.partition)
    factor = cluster.qos_factor(request.qos)
    counts = allocated_tres(request, partition)
    units = billing(counts, partition.weights, partition.billing_rule)
    return Bill(
        resource=cluster.resource(request.partition, request.qos),
        lines=_lines(counts, partition),
        billing=units,
        factor=factor,
        seconds=request.limit_seconds,
        amount=cost(units, factor, request.limit_seconds),
        partition=request.partition,
        counts=counts,
    )


def _lines(counts: Counts, partition: Partition) -> tuple[Line, ...]:
    weights, weighted = partition.weights or BY_CPU, weigh(counts, partition.weights)
    chosen = price_setting_tres(weighted, partition.billing_rule)
    return tuple(
        Line(name, counts[name], weights[name], value, name in chosen)
        for name, value in weighted.items()
    )


def unpriced_qos(
    names: Collection[str],
    cluster: str,
    qos_factors: Collection[str],
    qos_resources: Collection[str],
) -> Iterator[str]:
    """Yield a sentence for each QOS that the settings do not name: it may be a typing error.

    Args:
        names: the QOS of jobs.
        cluster: name of their cluster.
        qos_factors: the QOS that have a price factor there.
        qos_resources: the QOS with a resource of their own, which need no factor.
    """
    factors = ", ".join(sorted(qos_factors)) or "none"
    for name in sorted({*names} - {*qos_factors, *qos_resources}):
        yield (
            f"QOS {name} has no price factor on cluster {cluster}, so it counts as 1; those with"
            f" one: {factors}"
        )


def known_qos(
    name: str, qos_factors: Collection[str], qos_resources: Collection[str], *, field: str
) -> str:
    """Check a QOS that a person or a file names, where the settings name any.

    A scheduler has its own list of QOS and is not checked: its job runs already.

    Args:
        name: the QOS.
        qos_factors: the QOS of the cluster that have a price factor.
        qos_resources: those with a resource of their own.
        field: name for the error.

    Raises:
        InvalidInput: the settings name others only.
    """
    known = sorted({*qos_factors, *qos_resources})
    if name in known or not known:
        return name
    raise InvalidInput(
        f"there is no QOS {name[:64]!r} in the bank's settings",
        field=field,
        remedy=f"one of {', '.join(known[:8])}; or have it added to them, by staff, with its price"
        " factor: 1 for the full price",
    )


def remarks(request: JobRequest, cluster: Cluster) -> tuple[str, ...]:
    """Return what is not in the price although a user may expect it: a QOS, TRES without a weight,
    unknown default memory; whole nodes of the partition.

    This is no error: the job is charged by the same rules. Raises NotFound for the partition.
    """
    notes = list[str]()
    if request.qos is not None:
        notes += unpriced_qos(
            [request.qos], cluster.name, cluster.qos_factors, cluster.qos_resources
        )
    partition = cluster.partition(request.partition)
    if partition.exclusive and not request.exclusive:
        notes.append(f"each job takes whole nodes in partition {partition.name}")
    weights = partition.weights
    free = unpriced_tres(request.counts, weights)
    if free:
        priced = ", ".join(sorted(weights or BY_CPU))
        notes.append(
            f"{', '.join(free)}: no price in partition {request.partition}, which bills {priced}"
        )
    if "mem" in (weights or BY_CPU) and "mem" not in allocated_tres(request, partition):
        notes.append(_unknown_memory(request, partition))
    return tuple(notes)


def _unknown_memory(request: JobRequest, partition: Partition) -> str:
    settings = "def_mem_per_cpu or def_mem_per_node"
    if partition.default_memory is not None:
        settings = "node_memory"  # the default is all memory of the nodes
    return (
        f"no memory requested; the default of partition {request.partition} is not in this price:"
        f" the bank's settings lack clusters.{request.cluster}.partitions.{request.partition}"
        f".{settings}"
    )
