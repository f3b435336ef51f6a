"""What sshare told, as rows to be shown, and by which rule users are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.decay import next_reset
from fairbank.priority.fairshare.settings import Algorithm, FairShare
from fairbank.report.ranking_rule import RankingRule
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers import shares
from fairbank.slurm.parsers.shares import ShareLine

RANKED_USERS_MAX = 500_000
"""So many users' ranks differ in the six digits that sshare prints."""


def share_rows(told: Sequence[ShareLine], *, fair_tree: bool) -> list[ShareRow]:
    """All that sshare told, in its order. Fair Tree's factors are ranks out of so many users: all their digits are known again from the
    six that it prints, unless it hides some users from us."""
    rows = [share_row(row) for row in told]
    users = sum(1 for row in rows if row.user)
    if not fair_tree or users > RANKED_USERS_MAX:
        return rows
    exact = [
        row.factor if row.factor is None else round(row.factor * users) / users for row in rows
    ]
    if any(
        row.factor is not None and f"{row.factor:f}" != f"{factor:f}"
        for row, factor in zip(rows, exact, strict=True)
    ):
        return rows
    return [row._replace(factor=factor) for row, factor in zip(rows, exact, strict=True)]


def share_row(row: ShareLine) -> ShareRow:
    return ShareRow(
        account=row.account,
        user=row.user,
        partition=row.partition,
        parent=row.parent,
        shares=ON_PARENT
        if row.shares == shares.PARENT
        else row.shares
        if isinstance(row.shares, int)
        else None,
        norm_shares=row.norm_shares,
        usage=row.usage,
        norm_usage=row.norm_usage,
        effective=row.effective,
        factor=row.factor,
        level=row.level,
        limits=row.limits,
        used=row.used,
        running=row.running,
        cluster=row.cluster,
        number=row.number,
    )


def ranking_rule(settings: FairShare, now: int, zone: tzinfo) -> RankingRule:
    """`zone`: that of slurmctld, by whose local time resets come."""
    reset = next_reset(settings.reset, now, zone)
    return RankingRule(
        settings.algorithm is Algorithm.FAIR_TREE,
        settings.half_life_seconds,
        settings.dampening,
        settings.algorithm is Algorithm.DEPTH_OBLIVIOUS,
        None if reset is None else reset - now,
    )
