"""Forecasts of fair share: recovery after a pause, and levels after a pause or a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from fairbank.report.columns import Column, Row, decimal, text
from fairbank.report.fair_share import (
    TWO_ANSWERS,
    association_name,
    decay_sentences,
    level_or_inf,
    shown_level,
    span,
    target_name,
    user_cell,
    weight_sentences,
)

if TYPE_CHECKING:
    from fairbank.priority.fairshare.regimes import RankingRule

FORECAST_COLUMNS = (
    Column("ACCOUNT", text("account"), min_width=7),
    Column("USER", text("user")),
    Column("LEVEL", text("level"), right=True),
    Column("SOONEST", text("soonest"), right=True),
    Column("LATEST", text("latest"), right=True),
)
LEVEL_COLUMNS = (
    Column("ACCOUNT", text("account"), min_width=7),
    Column("USER", text("user")),
    Column("LEVEL", text("level"), right=True),
    Column("LEAST", text("least"), right=True),
    Column("MOST", text("most"), right=True),
)
FACTOR_COLUMNS = (
    Column("LEAST-FACTOR", decimal("least_factor", 3), right=True),
    Column("MOST-FACTOR", decimal("most_factor", 3), right=True),
)
"""Beside them under the classic rule, where the factor follows from the level."""


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


class LevelAfter(NamedTuple):
    """Level of an association now, and after a pause or a run; `most` None: unknown."""

    account: str
    user: str
    partition: str
    level: float
    least: float
    most: float | None


def forecast_rows(backs: Sequence[Recovery]) -> list[Row]:
    """Return a row of the table for each association."""
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


def level_rows(levels: Sequence[LevelAfter], rule: RankingRule) -> list[Row]:
    """Return the levels after a pause or a run as rows of a table."""
    return [
        {
            "account": after.account,
            "user": user_cell(after.user, after.partition),
            "level": shown_level(after.level),
            "least": shown_level(after.least),
            "most": "unknown" if after.most is None else shown_level(after.most),
            "least_factor": rule.factor_at(after.least),
            "most_factor": rule.factor_at(after.most),
        }
        for after in levels
    ]


def assumptions(rule: RankingRule) -> list[str]:
    """Return sentences that explain the forecast and its assumptions."""
    never = "never: no pause of its own brings it back; only what others use does."
    return [
        f"When each is back at {target_name(rule)}, if it pauses.",
        *([TWO_ANSWERS] if rule.half_life else [never]),
        *_premises(rule),
    ]


def level_assumptions(rule: RankingRule, pause: int, run: str) -> list[str]:
    """Return sentences that explain the levels after a pause or a run.

    Args:
        rule: the rule that ranks users.
        pause: its length in seconds.
        run: its usage, as shown.
    """
    words = [f"a pause of {span(pause)}"] if pause else []
    words += [f"a run of {run} SU, all of which counts at once"] if run else []
    texts = [f"The level of each after {', then '.join(words)}."]
    if pause and rule.half_life:
        texts += [
            "Least: the others go on as they do now, and what it leaves stays free. Most: the"
            " others take it."
        ]
    return [*texts, *_premises(rule)]


def _premises(rule: RankingRule) -> list[str]:
    reset = "nothing is reset" if rule.reset_in is None else "all usage is reset when it is due"
    fades = "usage fades as Slurm has it" if rule.half_life else "usage never decays"
    return [
        f"Shares stay, {fades}, and {reset}. Jobs that run count until they end.",
        *(decay_sentences(rule) if not rule.half_life or rule.reset_in is not None else []),
        *weight_sentences(rule),
    ]


def forecast_data(
    backs: Sequence[Recovery], rule: RankingRule, levels: Sequence[LevelAfter] = ()
) -> list[Mapping[str, object]]:
    """Return the forecast for programs: null for never and unknown, `inf` for an infinite level.

    Args:
        backs: the recovery times.
        rule: the rule that ranks users.
        levels: those of the same associations after a pause or a run, if one was named.
    """
    return [
        {
            "account": back.account,
            "user": back.user or None,
            "partition": back.partition or None,
            "level": level_or_inf(back.level),
            "goal": target_name(rule),
            "soonest_seconds": None if back.soonest is None else round(back.soonest),
            "latest_seconds": None if back.latest is None else round(back.latest),
            "least_level": after and level_or_inf(after.least),
            "most_level": after and level_or_inf(after.most),
            "least_factor": after and rule.factor_at(after.least),
            "most_factor": after and rule.factor_at(after.most),
        }
        for back, after in zip_longest(backs, levels)
    ]


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return "now" if seconds == 0 else span(seconds)
