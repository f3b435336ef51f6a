"""What a job costs, line by line."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.tres import BY_CPU, Counts, billing, price_setting_tres, weigh
from fairbank.core.units import SuMinutes, round_up


class Line(msgspec.Struct, frozen=True):
    """One TRES of a bill: `count` x `weight` = `weighted` billing units; `counts` when it makes the price."""

    what: str
    count: Fraction
    weight: Fraction
    weighted: Fraction
    counts: bool


class Bill(msgspec.Struct, frozen=True):
    """A price with its reasons: `amount` = `billing` x `factor` x `seconds`, rounded up once to SU-minutes."""

    resource: str
    lines: tuple[Line, ...]
    billing: Fraction
    factor: Fraction
    seconds: int
    amount: SuMinutes


def cost(units: Fraction, factor: Fraction, seconds: int) -> SuMinutes:
    """SU-minutes for `units` billing units over `seconds`, times the QOS factor: exact, rounded up once (HADM, "Service Units")."""
    return round_up(units * factor * seconds / 60)


def longest_paid(per_hour: Fraction, available: int) -> int:
    """The longest time limit, in whole minutes as seconds, that `available` SU-minutes pay at `per_hour` SU; 0 if none does."""
    return int(available / per_hour) * 60 if per_hour > 0 and available > 0 else 0


def bill(request: JobRequest, cluster: Cluster) -> Bill:
    """The price of `request` if it uses its whole time limit. Raises NotFound when the partition is."""
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
