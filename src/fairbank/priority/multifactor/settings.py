"""Priority settings of an administrator: weights, flags, and the age that counts in full.

`slurm.parsers.priority` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.time import DAY

WORDS = {
    "age": "Age",
    "association": "Assoc",
    "fairshare": "FairShare",
    "job_size": "JobSize",
    "partition": "Partition",
    "qos": "QOS",
}
"""The weights, and what stands behind PriorityWeight in their names in slurm.conf."""


class Flag(Enum):
    """PriorityFlags, except those of billing (`values.tres.Adding`) and of fair share (`priority.settings.Algorithm`)."""

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
"""What NO_NORMAL_ALL stands for."""


class PriorityWeights(msgspec.Struct, frozen=True, kw_only=True):
    """What each factor counts: the most it adds to a priority while factors are normalised. Whole numbers, except for TRES.

    Raises InvalidInput for one that Slurm could not hold, NaN and infinity among them.
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
    """How priorities are made. `max_age_seconds`: the wait that counts in full; 0 lets every wait do so.

    `accounted`: whether Slurm has its database; without one neither age nor fair share counts.
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
                f"{self.max_age_seconds} s is no age", field="PriorityMaxAge", remedy=remedy
            )

    @property
    def counted(self) -> PriorityWeights:
        """The weights in force."""
        return (
            self.weights
            if self.accounted
            else msgspec.structs.replace(self.weights, age=0, fairshare=0)
        )
