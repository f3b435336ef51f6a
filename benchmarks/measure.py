"""Measurements side by side. Rounds alternate, so that a machine whose speed drifts favours
none.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchmarks.schedule import Schedule

Say = Callable[[str], None]
"""Function that shows progress."""


class NotAvailable(Exception):
    """The subject of a claim is not on this machine. The message says what is missing and where it
    is looked for.
    """


def to_stderr(what: str) -> None:
    """Print progress with the time of day."""
    print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)


class Figure(msgspec.Struct, frozen=True):
    """Measured quantity with the value of each round."""

    name: str
    unit: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Claim: a value of at least `target` (at most, with `at_most`). `low` and `high`: range of the
    rounds.

    Without a target nothing is claimed: the value is shown for comparison only.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    bound: float | None
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        if self.bound is None:
            return True
        return self.value <= self.bound if self.at_most else self.value >= self.bound


class Curve(msgspec.Struct, frozen=True):
    """Time by size: each size with the name of its figure."""

    name: str
    by_size: tuple[tuple[int, str], ...]


class Table(msgspec.Struct, frozen=True):
    """Figures that belong side by side, the claims about them, and curves by `sizes`
    (milliseconds); or schedules.
    """

    title: str
    about: str
    figures: tuple[Figure, ...]
    targets: tuple[Target, ...] = ()
    curves: tuple[Curve, ...] = ()
    sizes: str = ""
    schedules: tuple[Schedule, ...] = ()


def rate_each(
    contenders: Mapping[str, Callable[[], int]], rounds: int, unit: str = "operations/s"
) -> dict[str, Figure]:
    """Return the rate of each contender, a function that returns the number of its operations.

    Rounds alternate, after one that is not counted. Python collects cyclic garbage as rarely as in
    our server.
    """
    gc.set_threshold(50_000, 10, 10)
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name, work in contenders.items():
            gc.collect()
            begun = time.perf_counter()
            rate = work() / (time.perf_counter() - begun)
            if number >= 0:
                seen[name].append(rate)
    return {name: Figure(name, unit, tuple(values)) for name, values in seen.items()}


def time_each(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Figure]:
    """Return the time of each contender, in milliseconds. Rounds alternate, after one that is not
    counted.
    """
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name, work in contenders.items():
            begun = clock()
            work()
            if number >= 0:
                seen[name].append((clock() - begun) * 1_000)
    return [Figure(name, "ms", tuple(times)) for name, times in seen.items()]


def at_least(name: str, figure: Figure, bound: float) -> Target:
    """Return a claim about the figure itself."""
    return Target(
        name=name,
        unit=figure.unit,
        value=figure.median,
        low=min(figure.rounds),
        high=max(figure.rounds),
        bound=bound,
    )


def at_most(name: str, figure: Figure, bound: float) -> Target:
    return msgspec.structs.replace(at_least(name, figure, bound), at_most=True)


def ratio(
    name: str, ours: Figure, theirs: Figure, bound: float | None, *, is_most: bool = False
) -> Target:
    """Return a claim about the ratio of two figures of one run, round by round: at least `bound`,
    or at most with `is_most`. Without a bound it is shown only.
    """
    ratios = [one / other for one, other in zip(ours.rounds, theirs.rounds, strict=True)]
    return Target(
        name=name,
        unit="x",
        value=statistics.median(ratios),
        low=min(ratios),
        high=max(ratios),
        bound=bound,
        at_most=is_most,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
