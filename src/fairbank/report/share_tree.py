"""Fair share as a tree of accounts: shares, usage, level, factor, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.columns import Column, Row, decimal, text
from fairbank.report.forecasts import (
    TWO_ANSWERS,
    RankingRule,
    Recovery,
    reset_sentence,
    sentences,
    shown_level,
    span,
    user_cell,
)
from fairbank.report.sshare import ShareRow

EVEN_TOLERANCE = 0.05
"""Deviation from level 1 that still counts as even."""
FORECASTS_MAX = 5

COLUMNS = (
    Column("ACCOUNT / USER", text("name"), least=14),
    Column("SHARES", text("shares"), right=True),
    Column("NORM", decimal("norm", 3), right=True),
    Column("USAGE", decimal("usage", 3), right=True),
    Column("LEVEL", text("level"), right=True),
    Column("FACTOR", decimal("factor", 3), right=True, drop=1),
    Column("", text("words")),
)


def level_of(row: ShareRow, rule: RankingRule) -> float | None:
    """Return shares divided by usage: above 1 it used less than its share. None: no level."""
    if rule.fair_tree:
        return row.level
    if row.effective is None or not row.shares:
        return None if row.shares is None else 0.0
    return row.norm_shares / row.effective if row.effective else inf


def tree_rows(rows: Sequence[ShareRow], rule: RankingRule) -> list[Row]:
    """Return the rows without the root: below each account its users, then its accounts."""
    depths: dict[str, int] = {}
    found: list[Row] = []
    for row in rows:
        above = depths.get(row.account if row.user else row.parent, -1)
        if not row.user:
            depths[row.account] = above + 1 if row.parent else -1
        if row.user or row.parent:
            found.append(_row(row, above + 1, level_of(row, rule)))
    return found


def _row(row: ShareRow, depth: int, level: float | None) -> Row:
    return {
        "name": "  " * depth + (user_cell(row.user, row.partition) or row.account),
        "shares": row.shown_shares,
        "norm": row.norm_shares,
        "usage": row.effective,
        "level": None if level is None else shown_level(level),
        "factor": row.factor,
        "words": _level_word(row, level),
    }


def _level_word(row: ShareRow, level: float | None) -> str:
    if row.shares == ON_PARENT:
        return "as its account"
    if level is None:
        return ""
    if not row.shares:
        return "no share"
    if abs(level - 1) <= EVEN_TOLERANCE:
        return "about even"
    return "under" if level > 1 else "over"


def reading_guide(
    rows: Sequence[ShareRow],
    rule: RankingRule,
    backs: Sequence[Recovery] = (),
    named: Sequence[str] = (),
) -> list[str]:
    """Return sentences that explain the table: its level, the decay of usage, recovery of the
    accounts that used too much.

    Args:
        rows: the rows of the table.
        rule: the rule that ranks users.
        backs: the recovery times; the accounts furthest over their share are listed.
        named: the accounts to list; default: all.
    """
    said = ["Level: above 1 it used less than its share, below 1 more."]
    if rule.fair_tree:
        said += [
            "Accounts are ranked among their siblings, and users within their account; the factor"
            " is the rank."
        ]
    else:
        said += [f"At level 1 the factor is {2 ** (-1 / rule.dampening):.3f}, without usage 1."]
    if rule.half_life:
        said += [f"Usage halves every {span(rule.half_life)}."]
    else:
        said += [
            "Usage does not fade here: a level rises only by what others use, or when usage is"
            " reset."
        ]
    if rule.reset_in is not None:
        said += [reset_sentence(rule.reset_in)]
    elif not rule.half_life:
        return said
    shown = {row.account for row in rows if not row.user and (not named or row.account in named)}
    low = rule.target_level * (1 - EVEN_TOLERANCE)
    over = [
        back for back in backs if not back.user and back.account in shown and 0 < back.level < low
    ]
    over.sort(key=lambda back: (back.level, back.account))
    if not over:
        return said
    said += sentences(over[:FORECASTS_MAX], rule.target_name)
    return [*said, TWO_ANSWERS, "If all pause, all usage fades alike and no level moves."]


def as_data(rows: Sequence[ShareRow], rule: RankingRule) -> list[Mapping[str, object]]:
    """Return the rows for programs: null for what Slurm leaves blank, level `inf` without usage."""
    return [
        {
            "account": row.account,
            "user": row.user or None,
            "partition": row.partition or None,
            "parent": row.parent or None,
            "shares": row.shown_shares,
            "norm_shares": row.norm_shares,
            "raw_usage": int(row.usage),
            "norm_usage": row.norm_usage,
            "effective_usage": row.effective,
            "fair_share": row.factor,
            "level": "inf" if (level := level_of(row, rule)) == inf else level,
            "limits": row.limits or None,
            "used_minutes": row.used or None,
            "running_minutes": row.running or None,
            "cluster": row.cluster or None,
            "id": row.number or None,
        }
        for row in rows
    ]
