"""How users and jobs are ranked, as an administrator of Slurm sets it. Whoever reads it somewhere makes these values of it."""

from __future__ import annotations

from enum import Enum

import msgspec

from fairbank.core.time import DAY
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.multifactor.settings import MultifactorSettings

DAMPENING_MAX = 65_535


class Algorithm(Enum):
    """By what users are ranked: Fair Tree, or one of the two classic rules."""

    FAIR_TREE = "fair tree"
    CLASSIC = "classic"
    DEPTH_OBLIVIOUS = "depth oblivious"


class FairShare(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of fair share. `half_life_seconds` of usage, 0 when it never fades; `tick_seconds` is PriorityCalcPeriod."""

    algorithm: Algorithm = Algorithm.FAIR_TREE
    dampening: int = 1
    half_life_seconds: int = 7 * DAY
    reset: Reset = Reset.NONE
    tick_seconds: int = 300


class PrioritySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. `by_factors`: whether jobs have factors at all, as under priority/multifactor."""

    by_factors: bool = True
    factors: MultifactorSettings = MultifactorSettings()
    fair_share: FairShare = FairShare()
