"""Rule that ranks users, and recovery of fair share after a pause: table, sentences, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.time import DAY
from fairbank.report.columns import Column, Row, text

COLUMNS = (
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


def table_rows(backs: Sequence[Recovery]) -> list[Row]:
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
    return (
        f"All usage is reset in {span(seconds)}: whoever has a share and pauses is back then at the"
        " latest."
    )


def as_data(backs: Sequence[Recovery], rule: RankingRule) -> list[Mapping[str, object]]:
    """Return the forecast for programs: null for never, `inf` for an infinite level."""
    return [
        {
            "account": back.account,
            "user": back.user or None,
            "partition": back.partition or None,
            "level": "inf" if back.level == float("inf") else back.level,
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
    if level == float("inf"):
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
