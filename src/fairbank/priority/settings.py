"""Priority settings of a Slurm administrator: weights, flags, maximum age, and fair share. Readers
of slurm.conf (`slurm.parsers.config`) convert to these values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.time import DAY
from fairbank.priority.fairshare.decay import Reset

WORDS = {
    "age": "Age",
    "association": "Assoc",
    "fairshare": "FairShare",
    "job_size": "JobSize",
    "partition": "Partition",
    "qos": "QOS",
}
"""Weights, with the word behind PriorityWeight in slurm.conf."""


class Flag(Enum):
    """PriorityFlags, except those of billing (`core.tres`) and of `Algorithm`."""

    ACCRUE_ALWAYS = "ACCRUE_ALWAYS"
    CALCULATE_RUNNING = "CALCULATE_RUNNING"
    INCR_ONLY = "INCR_ONLY"
    NO_NORMAL_ASSOC = "NO_NORMAL_ASSOC"
    NO_NORMAL_PART = "NO_NORMAL_PART"
    NO_NORMAL_QOS = "NO_NORMAL_QOS"
    NO_NORMAL_TRES = "NO_NORMAL_TRES"
    SMALL_RELATIVE_TO_TIME = "SMALL_RELATIVE_TO_TIME"


RAW = frozenset(
    {Flag.NO_NORMAL_ASSOC, Flag.NO_NORMAL_PART, Flag.NO_NORMAL_QOS, Flag.NO_NORMAL_TRES}
)
"""Flags of NO_NORMAL_ALL."""


class PriorityWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weight of each factor: the most that it adds to a priority while factors are normalised.
    Integers, except for TRES.

    Raises InvalidInput for values that Slurm does not hold, such as NaN and infinity.
    """

    age: int = 0
    association: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}

    def __post_init__(self) -> None:
        for name, word in WORDS.items():
            value = getattr(self, name)
            if not (isinstance(value, int) and 0 <= value <= U32_MAX):
                remedy = f"a whole number from 0 to {U32_MAX}"
                raise InvalidInput(
                    f"{value!r} is not a weight", field=f"PriorityWeight{word}", remedy=remedy
                )
        for name, weight in self.tres.items():
            if not (math.isfinite(weight) and weight >= 0):
                remedy = "a number from 0 up, such as cpu=1000"
                raise InvalidInput(
                    f"{name}={weight} is not a weight", field="PriorityWeightTRES", remedy=remedy
                )


class MultifactorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of priorities. `max_age_seconds`: wait at which the age factor is 1; 0: it always
    is.

    `accounted`: Slurm has its database; without it neither age nor fair share counts.
    """

    weights: PriorityWeights = PriorityWeights()
    flags: frozenset[Flag] = frozenset()
    max_age_seconds: int = 7 * DAY
    favour_small: bool = False
    accounted: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.max_age_seconds <= U32_MAX:
            remedy = f"from 0 to {U32_MAX} seconds; 7-0 is a week"
            raise InvalidInput(
                f"{self.max_age_seconds} s is not an age", field="PriorityMaxAge", remedy=remedy
            )

    @property
    def counted(self) -> PriorityWeights:
        """Return the weights in force."""
        if self.accounted:
            return self.weights
        return msgspec.structs.replace(self.weights, age=0, fairshare=0)


DAMPENING_MAX = 65_535


class Algorithm(Enum):
    """Algorithm that ranks users: Fair Tree, or one of the two classic rules."""

    FAIR_TREE = "fair tree"
    CLASSIC = "classic"
    DEPTH_OBLIVIOUS = "depth oblivious"


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """Fair-share settings. Half-life 0: no decay. `tick_seconds` is PriorityCalcPeriod."""

    algorithm: Algorithm = Algorithm.FAIR_TREE
    dampening: int = 1
    half_life_seconds: int = 7 * DAY
    reset: Reset = Reset.NONE
    tick_seconds: int = 300


class PrioritySettings(msgspec.Struct, frozen=True, kw_only=True):
    """All priority settings. `by_factors`: jobs have factors, as under priority/multifactor."""

    by_factors: bool = True
    factors: MultifactorSettings = MultifactorSettings()
    fair_share: FairShare = FairShare()
