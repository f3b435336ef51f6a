"""Price of a job, with one line for each TRES."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.tres import BY_CPU, Counts, billing, price_setting_tres, weigh
from fairbank.core.units import SuMinutes, round_up


class Line(msgspec.Struct, frozen=True):
    """TRES of a bill: `count` * `weight` = `weighted` billing units; `counts` if it sets the
    price.
    """

    what: str
    count: Fraction
    weight: Fraction
    weighted: Fraction
    counts: bool


class Bill(msgspec.Struct, frozen=True):
    """Price with its parts: `amount` = `billing` * `factor` * `seconds` / 60, rounded up once to
    SU-minutes.
    """

    resource: str
    lines: tuple[Line, ...]
    billing: Fraction
    factor: Fraction
    seconds: int
    amount: SuMinutes


def cost(units: Fraction, factor: Fraction, seconds: int) -> SuMinutes:
    """Return the price of a run in SU-minutes: exact, then rounded up once (HADM, "Service Units").

    Args:
        units: billing units.
        factor: factor of the QOS.
        seconds: duration.
    """
    return round_up(units * factor * seconds / 60)


def longest_paid(per_hour: Fraction, available: int) -> int:
    """Return the longest time limit that credit pays, in seconds of whole minutes; 0 if none.

    Args:
        per_hour: price of an hour in SU.
        available: credit in SU-minutes.
    """
    return int(available / per_hour) * 60 if per_hour > 0 and available > 0 else 0


def bill(request: JobRequest, cluster: Cluster) -> Bill:
    """Return the price of a job that uses its whole time limit. Raises NotFound for its
    partition.
    """
    partition = cluster.partition(request.partition)
    factor = cluster.qos_factor(request.qos)
    units = billing(request.counts, partition.weights, partition.billing_rule)
    return Bill(
        resource=partition.resource,
        lines=_lines(request.counts, partition),
        billing=units,
        factor=factor,
        seconds=request.limit_seconds,
        amount=cost(units, factor, request.limit_seconds),
    )


def _lines(counts: Counts, partition: Partition) -> tuple[Line, ...]:
    weights, weighted = partition.weights or BY_CPU, weigh(counts, partition.weights)
    chosen = price_setting_tres(weighted, partition.billing_rule)
    return tuple(
        Line(name, counts[name], weights[name], value, name in chosen)
        for name, value in weighted.items()
    )
