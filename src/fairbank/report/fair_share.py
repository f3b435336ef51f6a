"""Fair share explained: the rule that ranks users, levels as a tree, recovery after a pause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.core.time import DAY
from fairbank.report.columns import Column, Row, decimal, text
from fairbank.report.sshare import ShareRow

FORECAST_COLUMNS = (
    Column("ACCOUNT", text("account"), least=7),
    Column("USER", text("user")),
    Column("LEVEL", text("level"), right=True),
    Column("SOONEST", text("soonest"), right=True),
    Column("LATEST", text("latest"), right=True),
)
TWO_ANSWERS = (
    "Soonest: the others take what it leaves. Latest: they go on as they do now, and it stays free."
)


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
        """Level of an association that has recovered; factor 0.5 under the classic rule."""
        return 1.0 if self.fair_tree else 1 / self.dampening

    @property
    def target_name(self) -> str:
        """Name of that level."""
        return "level 1" if self.fair_tree else "factor 0.5"


class Recovery(NamedTuple):
    """Seconds of pause until the target level; 0 if reached already, None if never reached."""

    account: str
    user: str
    partition: str
    level: float
    soonest: float | None
    latest: float | None

    @property
    def name(self) -> str:
        return association_name(self.account, self.user, self.partition)


def user_cell(user: str | None, partition: str | None) -> str | None:
    """Return the cell of a user, such as `ayla (gpu)`; None for an account."""
    return f"{user} ({partition})" if partition else user or None


def association_name(account: str, user: str | None, partition: str | None) -> str:
    """Return the name of an association, such as `ayla in chem (gpu)`."""
    name = f"{user} in {account}" if user else account
    return f"{name} ({partition})" if partition else name


def forecast_rows(backs: Sequence[Recovery]) -> list[Row]:
    return [
        {
            "account": back.account,
            "user": user_cell(back.user, back.partition),
            "level": shown_level(back.level),
            "soonest": _when(back.soonest),
            "latest": _when(back.latest),
        }
        for back in backs
    ]


def assumptions(rule: RankingRule) -> list[str]:
    """Return sentences that explain the forecast and its assumptions."""
    reset = "nothing is reset" if rule.reset_in is None else "all usage is reset when it is due"
    return [
        f"When each is back at {rule.target_name}, if it pauses.",
        TWO_ANSWERS,
        (
            f"Shares stay, usage fades as Slurm has it, and {reset}. Jobs that run count until they"
            " end."
        ),
        *([] if rule.reset_in is None else [reset_sentence(rule.reset_in)]),
    ]


def reset_sentence(seconds: int) -> str:
    return f"All usage is reset in {span(seconds)}: an idle account has its share back by then."


def forecast_data(backs: Sequence[Recovery], rule: RankingRule) -> list[Mapping[str, object]]:
    """Return the forecast for programs: null for never, `inf` for an infinite level."""
    return [
        {
            "account": back.account,
            "user": back.user or None,
            "partition": back.partition or None,
            "level": "inf" if back.level == inf else back.level,
            "goal": rule.target_name,
            "soonest_seconds": None if back.soonest is None else round(back.soonest),
            "latest_seconds": None if back.latest is None else round(back.latest),
        }
        for back in backs
    ]


def sentences(backs: Sequence[Recovery], goal: str) -> Iterator[str]:
    """Yield a sentence for each recovery."""
    for back in backs:
        if back.soonest is None or back.latest is None:
            yield f"{back.name} does not come back to {goal} by a pause of its own."
        elif (first := span(back.soonest)) == (last := span(back.latest)):
            yield f"{back.name} is back at {goal} in about {first}, if it pauses."
        else:
            yield f"{back.name} is back at {goal} in {first} to {last}, if it pauses."


def shown_level(level: float) -> str:
    if level == inf:
        return "unused"
    return f"{level:.2f}" if level < 1_000 else f"{level:.0e}"


def span(seconds: float) -> str:
    """Format a duration in its largest unit, with two digits."""
    for unit, name in ((DAY, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            number = round(seconds / unit, 1)
            shown = f"{number:g}" if number < 10 else f"{number:.0f}"
            return f"{shown} {name}{'' if shown == '1' else 's'}"
    return "a minute"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return "now" if seconds == 0 else span(seconds)


# --- the tree ---

EVEN_TOLERANCE = 0.05
"""Deviation from level 1 that still counts as even."""
FORECASTS_MAX = 5

TREE_COLUMNS = (
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
    texts = [
        "Level: above 1 it used less than its share, below 1 more.",
        "Where no other job competes for nodes, jobs start at any level.",
    ]
    if rule.fair_tree:
        texts += [
            "Accounts are ranked among their siblings, and users within their account; the factor"
            " is the rank."
        ]
    else:
        texts += [f"At level 1 the factor is {2 ** (-1 / rule.dampening):.3f}, without usage 1."]
    if rule.half_life:
        texts += [f"Usage halves every {span(rule.half_life)}."]
    else:
        texts += [
            "Usage does not fade here: a level rises only by what others use, or when usage is"
            " reset."
        ]
    if rule.reset_in is not None:
        texts += [reset_sentence(rule.reset_in)]
    elif not rule.half_life:
        return texts
    shown = {row.account for row in rows if not row.user and (not named or row.account in named)}
    low = rule.target_level * (1 - EVEN_TOLERANCE)
    over = [
        back for back in backs if not back.user and back.account in shown and 0 < back.level < low
    ]
    over.sort(key=lambda back: (back.level, back.account))
    if not over:
        return texts
    texts += sentences(over[:FORECASTS_MAX], rule.target_name)
    return [*texts, TWO_ANSWERS, "If all pause, all usage fades alike and no level moves."]


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
            "level": "inf" if (level := level_of(row, rule)) == inf else level,
            "limits": row.limits or None,
            "used_minutes": row.used or None,
            "running_minutes": row.running or None,
            "cluster": row.cluster or None,
            "id": row.number or None,
        }
        for row in rows
    ]
