"""Fair share explained: levels as a tree, regimes and the rule that ranks users in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.core.time import DAY
from fairbank.priority.fairshare.regimes import (
    EVEN_TOLERANCE,
    Regime,
    classic_factor,
    level_of,
    regime_of,
)
from fairbank.report.cells import csv_line
from fairbank.report.columns import Column, Row, decimal, text
from fairbank.report.slurm.layout import SlurmColumn, cells_of, whole
from fairbank.report.slurm.notation import Notation
from fairbank.report.slurm.sprio import FACTORS

if TYPE_CHECKING:
    from fairbank.priority.fairshare.regimes import RankingRule
    from fairbank.report.share_forecast import Recovery
    from fairbank.report.slurm.sshare import ShareRow

TWO_ANSWERS = (
    "Soonest: the others take what it leaves. Latest: they go on as they do now, and it stays free."
)


def target_name(rule: RankingRule) -> str:
    """Return the name of the level at which an association has recovered."""
    return "level 1" if rule.fair_tree else "factor 0.5"


def user_cell(user: str | None, partition: str | None) -> str | None:
    """Return the cell of a user, such as `ayla (gpu)`; None for an account."""
    return f"{user} ({partition})" if partition else user or None


def association_name(account: str, user: str | None, partition: str | None) -> str:
    """Return the name of an association, such as `ayla in chem (gpu)`.

    Args:
        user: user of it; None or empty: it is that of the account itself.
        partition: partition to which it is limited; None or empty: it is for all.
    """
    name = f"{user} in {account}" if user else account
    return f"{name} ({partition})" if partition else name


def decay_sentences(rule: RankingRule) -> list[str]:
    """Return how usage loses its weight: by decay, by a reset, or not at all."""
    if rule.half_life:
        texts = [f"Usage halves every {span(rule.half_life)}."]
    else:
        texts = [
            "Usage never decays here (PriorityDecayHalfLife=0): no pause lowers what was used, and"
            " a level rises only by what others use"
            + (" or by the reset." if rule.reset_in is not None else "; nothing resets usage.")
        ]
    if rule.reset_in is not None:
        texts += [
            f"All usage is reset in {span(rule.reset_in)} (PriorityUsageResetPeriod): an idle"
            " account has its share back by then."
        ]
    return texts


def weight_sentences(rule: RankingRule) -> list[str]:
    """Return what decides if fair share has no weight."""
    if rule.counts or rule.weights is None:
        return []
    if not rule.weights:
        return [
            "Fair share has no weight here (PriorityWeightFairshare=0), nor has any other factor:"
            " the order of submission decides, and nice values."
        ]
    words = {factor.field: factor.words for factor in FACTORS}
    names = ", then ".join(
        f"{words.get(name, f'requested {name}')} ({weight:,.0f})"
        for name, weight in rule.weights.items()
    )
    return [
        "Fair share has no weight here (PriorityWeightFairshare=0), so levels move no job. By"
        f" weight these decide: {names}."
    ]


def level_or_inf(level: float | None) -> float | str | None:
    return "inf" if level == inf else level


def sentences(backs: Sequence[Recovery], goal: str) -> Iterator[str]:
    """Yield a sentence for each recovery."""
    for back in backs:
        if back.soonest is None or back.latest is None:
            yield f"{back.name} does not come back to {goal} by a pause of its own."
        elif (first := span(back.soonest)) == (last := span(back.latest)):
            yield f"{back.name} is back at {goal} in about {first}, if it pauses."
        else:
            yield f"{back.name} is back at {goal} in {first} to {last}, if it pauses."


LEVEL_MAX = 999_999
"""Largest level that is shown as a number: usage that fades lets levels grow without end."""


def shown_level(level: float) -> str:
    """Format a level in plain decimals."""
    if level == inf:
        return "unused"
    if level > LEVEL_MAX:
        return f">{LEVEL_MAX}"
    return f"{level:.2f}" if level < 1_000 else f"{level:.0f}"


def span(seconds: float) -> str:
    """Format a duration in its largest unit, with two digits."""
    for unit, name in ((DAY, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            number = round(seconds / unit, 1)
            shown = f"{number:g}" if number < 10 else f"{number:.0f}"
            return f"{shown} {name}{'' if shown == '1' else 's'}"
    return "a minute"


# --- the tree ---

RATIO_MAX = 99
"""Level from which no ratio is shown: all but nothing was used."""
FORECASTS_MAX = 5


REGIMES = {
    Regime.UNUSED: (
        "unused",
        "nothing that it used counts now; its jobs go before those of {} that used something.",
    ),
    Regime.UNDER: (
        "under",
        "1:2 used half of its share; its jobs go before those of {} that used theirs.",
    ),
    Regime.EVEN: (
        "about even",
        "it used its share; its jobs go behind those of {} that used less, before the others.",
    ),
    Regime.OVER: (
        "over",
        "2:1 used twice its share; its jobs wait behind those of {} that used less.",
    ),
    Regime.NONE_LEFT: (
        "no share left",
        "it used more than ten times its share; its jobs wait behind those of all {}{age}.",
    ),
}
"""Words for each regime, and what it means for jobs; {} stands for those that they compete with."""


TREE_COLUMNS = (
    Column("ACCOUNT / USER", text("name"), min_width=14),
    Column("SHARES", text("shares"), right=True),
    Column("NORM", decimal("norm", 3), right=True),
    Column("USAGE", decimal("usage", 3), right=True),
    Column("LEVEL", text("level"), right=True),
    Column("FACTOR", decimal("factor", 3), right=True, drop=1),
    Column("REGIME", text("words")),
)


def tree_rows(rows: Sequence[ShareRow], rule: RankingRule) -> list[Row]:
    """Return the rows without the root: below each account its users, then its accounts."""
    depths: dict[str, int] = {}
    below_root: list[Row] = []
    for row in rows:
        above = depths.get(row.account if row.user else row.parent, -1)
        if not row.user:
            depths[row.account] = above + 1 if row.parent else -1
        if row.user or row.parent:
            below_root.append(_row(row, above + 1, level_of(row, rule)))
    return below_root


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
    """Return the regime in words, with the ratio of usage to share."""
    if row.shares == ON_PARENT:
        return "as its account"
    regime = regime_of(row, level)
    if regime is None or level is None:
        return ""
    if not row.shares:
        return "no share"
    words, _ = REGIMES[regime]
    if regime is Regime.UNDER and level < RATIO_MAX:
        return f"{words}, 1:{level:.2g}"
    return f"{words}, {1 / level:.2g}:1" if regime is Regime.OVER else words


def reading_guide(
    rows: Sequence[ShareRow],
    rule: RankingRule,
    backs: Sequence[Recovery] = (),
    named: Sequence[str] = (),
) -> list[str]:
    """Return sentences that explain the table: its level, the decay of usage, recovery of the
    accounts that used too much.

    Args:
        rule: the rule that ranks users.
        backs: the recovery times; the accounts furthest over their share are listed.
        named: the accounts to list; default: all.
    """
    texts = [
        "Level: above 1 it used less than its share, below 1 more.",
        *(_regime_sentences(rows, rule) if rule.counts else weight_sentences(rule)),
        "Where no other job competes for nodes, jobs start at any level.",
    ]
    if rule.fair_tree:
        texts += [
            "Accounts are ranked among their siblings, and users within their account; the factor"
            " is the rank."
        ]
    else:
        texts += [
            f"At level 1 the factor is {classic_factor(1 / rule.dampening):.3f}, without usage 1."
        ]
    texts += decay_sentences(rule)
    if not rule.half_life:
        return texts
    shown = {row.account for row in rows if not row.user and (not named or row.account in named)}
    low = rule.target_level * (1 - EVEN_TOLERANCE)
    over = [
        back for back in backs if not back.user and back.account in shown and 0 < back.level < low
    ]
    over.sort(key=lambda back: (back.level, back.account))
    if not over:
        return texts
    texts += sentences(over[:FORECASTS_MAX], target_name(rule))
    return [*texts, TWO_ANSWERS, "If all pause, all usage fades alike and no level moves."]


def _regime_sentences(rows: Sequence[ShareRow], rule: RankingRule) -> list[str]:
    """Return what the regimes of these rows mean for jobs."""
    there = {
        regime_of(row, level_of(row, rule))
        for row in rows
        if row.shares and (row.user or row.parent)
    }
    whom = "siblings" if rule.fair_tree else "others"
    lifts = ", until their age lifts them" if "age" in (rule.weights or {}) else ""
    return [
        f"{words}: {meaning}".format(whom, age=lifts)
        for regime, (words, meaning) in REGIMES.items()
        if regime in there
    ]


def tree_data(rows: Sequence[ShareRow], rule: RankingRule) -> list[Mapping[str, object]]:
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
            "level": level_or_inf(level := level_of(row, rule)),
            "regime": (regime := regime_of(row, level)) and REGIMES[regime][0],
            "limits": row.limits or None,
            "used_minutes": row.used or None,
            "running_minutes": row.running or None,
            "cluster": row.cluster or None,
            "id": row.number or None,
        }
        for row in rows
    ]


def csv_lines(
    rows: Sequence[ShareRow], fields: Sequence[SlurmColumn], *, header: bool = True
) -> Iterator[str]:
    """Yield the columns of sshare as CSV, without line ends.

    Args:
        fields: columns; their widths do not count.
        header: begin with the header.
    """
    if header:
        yield csv_line(field.name for field in fields)
    for cells in cells_of(rows, fields, Notation()):
        yield csv_line(map(whole, cells))
