"""When each is back at its share, if it pauses: as a table, as sentences, for programs. Who computes it is `priority.forecast`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.report.columns import Column, Row, text

DAY, HOUR, MINUTE = 86_400, 3_600, 60
NEVER = "never"

COLUMNS = (
    Column("ACCOUNT", text("account"), least=7),
    Column("USER", text("user")),
    Column("LEVEL", text("level"), right=True),
    Column("SOONEST", text("soonest"), right=True),
    Column("LATEST", text("latest"), right=True),
)
ASSUMED = (
    "Soonest: the others take what it leaves. Latest: they go on as they do now, and it stays free.",
    "Shares stay, usage fades as Slurm has it, and nothing is reset. Jobs that run count until they end.",
)
"""What a forecast takes for granted."""


class Back(NamedTuple):
    """Seconds of pause until it is at level 1; 0 for who is there, None when a pause alone never brings it there."""

    account: str
    user: str
    partition: str
    level: float
    soonest: float | None
    latest: float | None

    @property
    def name(self) -> str:
        who = f"{self.user} in {self.account}" if self.user else self.account
        return f"{who} ({self.partition})" if self.partition else who


def table_rows(backs: Sequence[Back]) -> list[Row]:
    return [
        {
            "account": back.account,
            "user": f"{back.user} ({back.partition})" if back.partition else back.user or None,
            "level": shown_level(back.level),
            "soonest": _when(back.soonest),
            "latest": _when(back.latest),
        }
        for back in backs
    ]


def as_data(backs: Sequence[Back]) -> list[Mapping[str, object]]:
    """For programs: whole seconds, null for never, and an infinite level as `inf`."""
    return [
        {
            "account": back.account,
            "user": back.user or None,
            "partition": back.partition or None,
            "level": "inf" if back.level == float("inf") else back.level,
            "soonest_seconds": None if back.soonest is None else round(back.soonest),
            "latest_seconds": None if back.latest is None else round(back.latest),
        }
        for back in backs
    ]


def sentences(backs: Sequence[Back]) -> Iterator[str]:
    """One for each."""
    for back in backs:
        if back.soonest is None or back.latest is None:
            yield f"{back.name} does not come back to 1 by a pause of its own."
        elif (first := span(back.soonest)) == (last := span(back.latest)):
            yield f"{back.name} is back at 1 in about {first}, if it pauses."
        else:
            yield f"{back.name} is back at 1 in {first} to {last}, if it pauses."


def shown_level(level: float) -> str:
    if level == float("inf"):
        return "unused"
    return f"{level:.2f}" if level < 1_000 else f"{level:.0e}"


def span(seconds: float) -> str:
    """A length of time in its largest unit, to two figures."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= unit:
            number = round(seconds / unit, 1)
            shown = f"{number:g}" if number < 10 else f"{number:.0f}"
            return f"{shown} {name}{'' if shown == '1' else 's'}"
    return "a minute"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return NEVER
    return "now" if seconds == 0 else span(seconds)
