"""Fair share from day to day, as it was recorded: as a table and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.columns import Column, Row, text
from fairbank.report.forecasts import shown_level
from fairbank.report.plots.days import (
    FACTOR,
    LEVEL,
    PART,
    Curve,
    Scale,
    day_name,
    day_number,
    figure,
)
from fairbank.report.plots.picture import Picture
from fairbank.report.plots.square import STYLES

COLUMNS = (
    Column("DAY", text("day")),
    Column("CLUSTER", text("cluster"), drop=2),
    Column("ACCOUNT", text("account"), least=7),
    Column("USER", text("user"), drop=1),
    Column("SHARES", text("shares"), right=True),
    Column("NORM", text("norm"), right=True),
    Column("USAGE", text("usage"), right=True),
    Column("LEVEL", text("level"), right=True),
    Column("FACTOR", text("factor"), right=True),
)
CURVES_MAX = len(STYLES)


class ShareHistoryRow(NamedTuple):
    """How an association stood on a day (counted from 1970, in UTC); `user` is empty for an account, `partition` where it is for all.

    `shares` None: the root has none. `level` is None where it has none, and where nothing was used.
    """

    cluster: str
    day: int
    account: str
    user: str
    partition: str
    shares: int | None
    norm_shares: float
    usage: float
    effective: float | None
    level: float | None
    factor: float | None


def kept_of(row: Row) -> ShareHistoryRow:
    """What the bank tells of it."""
    return ShareHistoryRow(
        cluster=row["cluster"],
        day=day_number(row["day"]),
        account=row["account"],
        user=row["user"] or "",
        partition=row["partition"] or "",
        shares=ON_PARENT if row["shares"] == "parent" else row["shares"],
        norm_shares=row["norm_shares"],
        usage=row["usage"],
        effective=row["effective"],
        level=row["level"],
        factor=row["factor"],
    )


class Figure(NamedTuple):
    """Of one cluster."""

    cluster: str
    picture: Picture


def rows_of(kept: Sequence[ShareHistoryRow]) -> list[Row]:
    """For the table, and for programs, which get figures as they are beside it."""
    return [
        {
            "day": day_name(each.day),
            "cluster": each.cluster,
            "account": each.account,
            "user": f"{each.user} ({each.partition})" if each.partition else each.user or None,
            "shares": "parent" if each.shares == ON_PARENT else each.shares,
            "norm": f"{each.norm_shares:.3f}",
            "usage": None if each.effective is None else f"{each.effective:.3f}",
            "level": _level(each),
            "factor": None if each.factor is None else f"{each.factor:.3f}",
            "raw_usage": each.usage,
        }
        for each in kept
    ]


def figures(kept: Sequence[ShareHistoryRow]) -> list[Figure]:
    """A figure for each cluster: levels and parts of usage, and factors where there are some; of those that used most last, at most
    CURVES_MAX. The root is left out."""
    return [
        _figure(cluster, [each for each in kept if each.cluster == cluster])
        for cluster in sorted({each.cluster for each in kept})
    ]


def _figure(cluster: str, kept: Sequence[ShareHistoryRow]) -> Figure:
    curves: dict[str, list[ShareHistoryRow]] = {}
    for each in sorted(kept, key=lambda each: each.day):
        if each.shares is not None:
            curves.setdefault(_name(each), []).append(each)
    most = sorted(curves, key=lambda name: (-curves[name][-1].usage, name))[:CURVES_MAX]
    panels: list[tuple[Scale, list[Curve]]] = [
        (
            LEVEL,
            [
                Curve(
                    name,
                    [
                        (each.day, value)
                        for each in curves[name]
                        if (value := _drawn(each)) is not None
                    ],
                )
                for name in most
            ],
        ),
        (
            PART,
            [
                Curve(
                    name,
                    [
                        (each.day, each.effective)
                        for each in curves[name]
                        if each.effective is not None
                    ],
                )
                for name in most
            ],
        ),
    ]
    if any(each.factor is not None for name in most for each in curves[name]):
        panels.append(
            (
                FACTOR,
                [
                    Curve(
                        name,
                        [
                            (each.day, each.factor)
                            for each in curves[name]
                            if each.factor is not None
                        ],
                    )
                    for name in most
                ],
            )
        )
    about = f"Levels and usage from day to day on {cluster}: {', '.join(most)}"
    return Figure(cluster, figure(f"Fair share on {cluster}", about, panels))


def _name(kept: ShareHistoryRow) -> str:
    who = f"{kept.user} in {kept.account}" if kept.user else kept.account
    return f"{who} ({kept.partition})" if kept.partition else who


def _unused(kept: ShareHistoryRow) -> bool:
    return kept.level is None and kept.effective == 0 and kept.shares not in (None, ON_PARENT)


def _level(kept: ShareHistoryRow) -> str | None:
    return "unused" if _unused(kept) else None if kept.level is None else shown_level(kept.level)


def _drawn(kept: ShareHistoryRow) -> float | None:
    return LEVEL.high if _unused(kept) else kept.level
