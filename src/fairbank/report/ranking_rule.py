"""Rule by which users are ranked, for tables and sentences."""

from __future__ import annotations

from typing import NamedTuple


class RankingRule(NamedTuple):
    """Fair Tree or the classic rule.

    `half_life` of usage in seconds, 0 for no decay; `dampening` is FairShareDampeningFactor;
    `reset_in` is the number of seconds until usage is reset, None for never.
    """

    fair_tree: bool
    half_life: int = 0
    dampening: int = 1
    depth_oblivious: bool = False
    reset_in: int | None = None

    @property
    def target_level(self) -> float:
        """Level at which an association has recovered: its share under Fair Tree, factor 0.5 under
        the classic rule.
        """
        return 1.0 if self.fair_tree else 1 / self.dampening

    @property
    def target_name(self) -> str:
        """Name of that level."""
        return "level 1" if self.fair_tree else "factor 0.5"
