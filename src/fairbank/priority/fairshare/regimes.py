"""Rule that ranks associations: their levels, the classic factor, and the regimes of FASRC."""

from __future__ import annotations

from enum import Enum, auto
from math import inf, pow
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.slurm_numbers import ON_PARENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairbank.report.slurm.sshare import ShareRow

EVEN_TOLERANCE = 0.05
"""Deviation from level 1 that still counts as even."""
NO_SHARE_LEFT = 0.1
"""Level below which nothing is left of a share: the classic factor, undampened, is below 0.001."""


def classic_factor(use: float) -> float:
    """Return the factor of an association under the classic rule: 2 to the power of minus `use`.

    The power is the C library's, as in slurmctld. NumPy's own differs in the last bit on some
    processors.

    Args:
        use: effective usage over normalised shares, divided by FairShareDampeningFactor.
    """
    return pow(2.0, -use)


class RankingRule(NamedTuple):
    """Fair Tree or the classic rule.

    `half_life` of usage in seconds, 0 for no decay; `dampening` is FairShareDampeningFactor;
    `reset_in` is the number of seconds until usage is reset, None for never. `weights` are those of
    the factors of priorities that have one, by field or TRES, the largest first; None if they are
    unknown.
    """

    fair_tree: bool
    half_life: int = 0
    dampening: int = 1
    depth_oblivious: bool = False
    reset_in: int | None = None
    weights: Mapping[str, float] | None = None

    @property
    def counts(self) -> bool:
        """True if fair share has a weight in priorities."""
        return self.weights is None or "fair_share" in self.weights

    @property
    def target_level(self) -> float:
        """Level of an association that has recovered; factor 0.5 under the classic rule."""
        return 1.0 if self.fair_tree else 1 / self.dampening

    def factor_at(self, level: float | None) -> float | None:
        """Return the factor at a level under the classic rule; None if it is unknown or a rank."""
        if self.fair_tree or level is None:
            return None
        return classic_factor(1 / (level * self.dampening)) if level else 0.0


class Regime(Enum):
    """Regimes of FASRC: how much of its share an association used."""

    UNUSED, UNDER, EVEN, OVER, NONE_LEFT = (auto() for _ in range(5))


def level_of(row: ShareRow, rule: RankingRule) -> float | None:
    """Return shares divided by usage: above 1 it used less than its share. None: no level."""
    if rule.fair_tree:
        return row.level
    if row.effective is None or not row.shares:
        return None if row.shares is None else 0.0
    return row.norm_shares / row.effective if row.effective else inf


def regime_of(row: ShareRow, level: float | None) -> Regime | None:
    """Return the regime of a row at its level; None without a level of its own."""
    if level is None or row.shares == ON_PARENT:
        return None
    if level == inf:
        return Regime.UNUSED
    if level < NO_SHARE_LEFT:
        return Regime.NONE_LEFT
    if abs(level - 1) <= EVEN_TOLERANCE:
        return Regime.EVEN
    return Regime.UNDER if level > 1 else Regime.OVER
