"""Recovery times of associations, from the figures that Slurm prints
(`priority.fairshare.forecast`).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.forecast import Standpoint, back_after
from fairbank.report.forecasts import Recovery
from fairbank.report.ranking_rule import RankingRule
from fairbank.report.share_tree import level_of
from fairbank.report.sshare import ShareRow


def recovery_times(rows: Sequence[ShareRow], rule: RankingRule) -> list[Recovery]:
    """In the order of the rows. Left out are who has no level (the root, and under Fair Tree who stands on its parent's shares), and with
    DEPTH_OBLIVIOUS who is not right below the root, for those figures are no simple part of what was used."""
    root = next((row for row in rows if not row.user and not row.parent), None)
    if root is None:
        return []
    decay, backs = Decay(rule.half_life), []
    for row in rows:
        below_root = root.account == (row.account if row.user else row.parent)
        on_parent = rule.fair_tree and row.shares == ON_PARENT
        if row is root or on_parent or (rule.depth_oblivious and not below_root):
            continue
        who = _among_siblings(row) if rule.fair_tree else _among_all(row, root)
        level, back = (
            level_of(row, rule),
            back_after(who, decay, level=rule.target_level, reset_in=rule.reset_in),
        )
        backs.append(
            Recovery(
                row.account,
                row.user,
                row.partition,
                who.level if level is None else level,
                back.soonest,
                back.latest,
            )
        )
    return backs


def _among_siblings(row: ShareRow) -> Standpoint:
    """In parts of what its siblings used with it. These are below the next account that has shares of its own."""
    used = min(row.effective or 0.0, 1.0)
    return Standpoint(usage=used, others=1 - used, share=row.norm_shares)


def _among_all(row: ShareRow, root: ShareRow) -> Standpoint:
    """In parts of all usage. Of raw usage more digits are printed than of its part."""
    used = min(row.usage / root.usage, 1.0) if root.usage else 0.0
    charged = (row.effective or 0.0) - (row.norm_usage or 0.0)
    return Standpoint(
        usage=used, others=1 - used, share=row.norm_shares, charged=min(max(charged, 0.0), 1 - used)
    )
