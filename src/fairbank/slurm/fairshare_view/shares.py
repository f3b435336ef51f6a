"""What sshare told, as rows to be shown, and by which rule users are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from fairbank.priority.fairshare.decay import next_reset
from fairbank.priority.fairshare.settings import Algorithm, FairShare
from fairbank.report.ranking_rule import RankingRule
from fairbank.report.sshare import ShareRow

RANKS_APART = 500_000
"""So many users' ranks differ in the six digits that sshare prints."""


def share_rows(rows: Sequence[ShareRow], *, fair_tree: bool) -> list[ShareRow]:
    """Return the rows of sshare with the exact factors of Fair Tree.

    Fair Tree's factor is a rank divided by the number of users, so all its digits follow from the
    six that sshare prints. If that gives other digits, sshare hides some users from us, and the
    factors stay as they are.
    """
    users = sum(1 for row in rows if row.user)
    if not fair_tree or users > RANKS_APART:
        return list(rows)
    exact = [
        row.factor if row.factor is None else round(row.factor * users) / users for row in rows
    ]
    if any(
        row.factor is not None and f"{row.factor:f}" != f"{factor:f}"
        for row, factor in zip(rows, exact, strict=True)
    ):
        return list(rows)
    return [row._replace(factor=factor) for row, factor in zip(rows, exact, strict=True)]


def rule_of(settings: FairShare, now: int, zone: tzinfo) -> RankingRule:
    """`zone`: that of slurmctld, by whose local time resets come."""
    reset = next_reset(settings.reset, now, zone)
    return RankingRule(
        settings.algorithm is Algorithm.FAIR_TREE,
        settings.half_life_seconds,
        settings.dampening,
        settings.algorithm is Algorithm.DEPTH_OBLIVIOUS,
        None if reset is None else reset - now,
    )
