"""Priority settings of a Slurm administrator. Readers of slurm.conf convert to these values."""

from __future__ import annotations

from enum import Enum

import msgspec

from fairbank.core.time import DAY
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.multifactor.settings import MultifactorSettings

DAMPENING_MAX = 65_535


class Algorithm(Enum):
    """Algorithm that ranks users: Fair Tree, or one of the two classic rules."""

    FAIR_TREE = "fair tree"
    CLASSIC = "classic"
    DEPTH_OBLIVIOUS = "depth oblivious"


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """Fair-share settings. `half_life_seconds` 0: no decay. `tick_seconds` is
    PriorityCalcPeriod.
    """

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
