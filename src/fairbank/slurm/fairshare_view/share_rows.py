"""Rows of sshare to show, the rule that ranks users, and the times of recovery."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.decay import Decay, next_reset
from fairbank.priority.fairshare.forecast import Standpoint, back_after
from fairbank.priority.fairshare.settings import Algorithm, FairShare
from fairbank.report.fair_share import RankingRule, Recovery, level_of
from fairbank.report.sshare import ShareRow

RANKED_USERS_MAX = 500_000
"""Users up to which ranks differ in the six digits that sshare prints."""


def share_rows(rows: Sequence[ShareRow], *, fair_tree: bool) -> list[ShareRow]:
    """Return the rows of sshare with the exact factors of Fair Tree.

    Fair Tree's factor is a rank divided by the number of users, so all its digits follow from the
    six that sshare prints. If that gives other digits, sshare hides some users from us, and the
    factors stay as they are.
    """
    users = sum(1 for row in rows if row.user)
    if not fair_tree or users > RANKED_USERS_MAX:
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


def ranking_rule(settings: FairShare, now: int, zone: tzinfo) -> RankingRule:
    """Return the rule; `zone` is that of slurmctld, whose local time decides when usage is
    reset.
    """
    reset = next_reset(settings.reset, now, zone)
    return RankingRule(
        settings.algorithm is Algorithm.FAIR_TREE,
        settings.half_life_seconds,
        settings.dampening,
        settings.algorithm is Algorithm.DEPTH_OBLIVIOUS,
        None if reset is None else reset - now,
    )


def recovery_times(rows: Sequence[ShareRow], rule: RankingRule) -> list[Recovery]:
    """Return the recovery times in the order of the rows (`priority.fairshare.forecast`).

    Left out are associations without a level: the root, and under Fair Tree those on their parent's
    shares. With DEPTH_OBLIVIOUS, so are those that are not right below the root, because their
    figures are no simple part of the usage.
    """
    root = next((row for row in rows if not row.user and not row.parent), None)
    if root is None:
        return []
    decay, recoveries = Decay(rule.half_life), []
    for row in rows:
        below_root = root.account == (row.account if row.user else row.parent)
        on_parent = rule.fair_tree and row.shares == ON_PARENT
        if row is root or on_parent or (rule.depth_oblivious and not below_root):
            continue
        standpoint = _among_siblings(row) if rule.fair_tree else _among_all(row, root)
        level, recovery = (
            level_of(row, rule),
            back_after(standpoint, decay, level=rule.target_level, reset_in=rule.reset_in),
        )
        recoveries.append(
            Recovery(
                row.account,
                row.user,
                row.partition,
                standpoint.level if level is None else level,
                recovery.soonest,
                recovery.latest,
            )
        )
    return recoveries


def _among_siblings(row: ShareRow) -> Standpoint:
    """Return the standpoint as a part of its siblings' usage: those below the next account with
    shares.
    """
    used = min(row.effective or 0.0, 1.0)
    return Standpoint(usage=used, others=1 - used, share=row.norm_shares)


def _among_all(row: ShareRow, root: ShareRow) -> Standpoint:
    """Return the standpoint as a part of all usage.

    Raw usage has more printed digits than its part.
    """
    used = min(row.usage / root.usage, 1.0) if root.usage else 0.0
    charged = (row.effective or 0.0) - (row.norm_usage or 0.0)
    return Standpoint(
        usage=used, others=1 - used, share=row.norm_shares, charged=min(max(charged, 0.0), 1 - used)
    )
