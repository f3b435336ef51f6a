"""Measuring side by side: rounds in turn, so that a machine whose speed drifts is unfair to nobody."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchmarks.schedule import Schedule

Say = Callable[[str], None]
"""Told what is being done, for whoever waits."""


class Missing(Exception):
    """What a claim is about is not on this machine; the message says what, and where it is looked for."""


def to_stderr(what: str) -> None:
    """Say it there, with the time of day."""
    print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)


class Figure(msgspec.Struct, frozen=True):
    """One measured thing, with what each round said."""

    name: str
    unit: str
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What we claim: a value of at least `target` (at most, where less is better). `low` and `high` are the range of its rounds.

    Without a target nothing is promised: the value is told beside one that is, so that nobody takes that for more.
    """

    what: str
    unit: str
    value: float
    low: float
    high: float
    target: float | None
    at_most: bool = False

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.value <= self.target if self.at_most else self.value >= self.target


class Curve(msgspec.Struct, frozen=True):
    """How long something takes by its size: each size, with the name of the figure that says so."""

    name: str
    by_size: tuple[tuple[int, str], ...]


class Table(msgspec.Struct, frozen=True):
    """Figures that belong side by side, what we promise about them, and how those grow that were measured in several sizes (of `sizes`,
    in milliseconds). Or the schedules that were made."""

    title: str
    about: str
    figures: tuple[Figure, ...]
    promises: tuple[Promise, ...] = ()
    curves: tuple[Curve, ...] = ()
    sizes: str = ""
    schedules: tuple[Schedule, ...] = ()


def rates(
    contenders: Mapping[str, Callable[[], int]], rounds: int, unit: str = "operations/s"
) -> dict[str, Figure]:
    """What each contender does in a second: a function that does some and says how many. Rounds go in turn; one more goes before, unseen.

    Python looks for cycles among its objects as rarely as it does in our server (`fairbank.rest.server.server`).
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


def timed(contenders: Mapping[str, Callable[[], object]], rounds: int) -> list[Figure]:
    """What each takes, in milliseconds. Rounds go in turn; one more goes before, unseen."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(-1, rounds):
        for name, work in contenders.items():
            begun = time.perf_counter()
            work()
            if number >= 0:
                seen[name].append((time.perf_counter() - begun) * 1_000)
    return [Figure(name, "ms", tuple(each)) for name, each in seen.items()]


def at_least(what: str, figure: Figure, target: float) -> Promise:
    """A promise about a figure itself."""
    return Promise(
        what=what,
        unit=figure.unit,
        value=figure.median,
        low=min(figure.rounds),
        high=max(figure.rounds),
        target=target,
    )


def at_most(what: str, figure: Figure, target: float) -> Promise:
    return msgspec.structs.replace(at_least(what, figure, target), at_most=True)


def ratio(what: str, ours: Figure, theirs: Figure, target: float | None) -> Promise:
    """A promise about two figures of one run, or without a target only what they are: each round of ours beside the same of theirs."""
    found = [one / other for one, other in zip(ours.rounds, theirs.rounds, strict=True)]
    return Promise(
        what=what,
        unit="x",
        value=statistics.median(found),
        low=min(found),
        high=max(found),
        target=target,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
