"""By which rule users are ranked, as tables and sentences tell of it."""

from __future__ import annotations

from typing import NamedTuple


class RankingRule(NamedTuple):
    """Fair Tree or the classic one. `half_life` of usage in seconds, 0 when it never fades; `dampening` is FairShareDampeningFactor;
    `reset_in`: seconds until all usage is reset next, None when it never is."""

    fair_tree: bool
    half_life: int = 0
    dampening: int = 1
    depth_oblivious: bool = False
    reset_in: int | None = None

    @property
    def target_level(self) -> float:
        """The level at which somebody is back: its share under Fair Tree, under the classic rule what makes a factor of 0.5."""
        return 1.0 if self.fair_tree else 1 / self.dampening

    @property
    def target_name(self) -> str:
        """The same in words."""
        return "level 1" if self.fair_tree else "factor 0.5"
