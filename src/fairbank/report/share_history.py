"""Fair share from day to day, as it was recorded: as a table and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from math import nan
from typing import NamedTuple

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.columns import Column, Row, text
from fairbank.report.forecasts import shown_level
from fairbank.report.plots.figures import SERIES_MAX, Axis, Caption, LineFigure, Panel, Series

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
LEVEL_MIN, LEVEL_MAX = 0.125, 8.0
_LEVEL_TICKS = (
    (LEVEL_MIN, "1/8 or less"),
    (0.25, "1/4"),
    (0.5, "1/2"),
    (1.0, "1 (its share)"),
    (2.0, "2"),
    (4.0, "4"),
    (LEVEL_MAX, "8 or more"),
)
_LEVEL = Axis("level (share / usage)", 0.11, 9.0, "log", ticks=_LEVEL_TICKS)
_USAGE = Axis("part of usage (0 to 1)", 0, 1)
_FACTOR = Axis("fair-share factor (0 to 1)", 0, 1)
_DAYS_SHOWN = 4
_EPOCH = date(1970, 1, 1).toordinal()


class ShareHistoryRow(NamedTuple):
    """State of an association on a day (counted from 1970, in UTC).

    `user` is empty for an account, `partition` if it is for all partitions. `shares` is None for
    the root; `level` is None for the root and without usage.
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
    """Return the record of an answer of the bank."""
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


def day_name(day: int) -> str:
    """Return the date of a day counted from 1970, such as `2026-11-21`."""
    return date.fromordinal(_EPOCH + day).isoformat()


def day_number(name: str) -> int:
    """Return the number of days from 1970 to a date such as `2026-11-21`."""
    return date.fromisoformat(name).toordinal() - _EPOCH


def figures(kept: Sequence[ShareHistoryRow], command: str) -> dict[str, LineFigure]:
    """Return a figure for each cluster: levels, usage, and factors where the bank has some.

    It shows at most SERIES_MAX associations, those with the highest usage on their last day. The
    root is left out. `command` is the command line, for the provenance.
    """
    clusters = sorted({row.cluster for row in kept})
    return {
        cluster: _figure(cluster, [row for row in kept if row.cluster == cluster], command)
        for cluster in clusters
    }


def _figure(cluster: str, kept: Sequence[ShareHistoryRow], command: str) -> LineFigure:
    history: dict[str, list[ShareHistoryRow]] = {}
    for row in sorted(kept, key=lambda row: row.day):
        if row.shares is not None:
            history.setdefault(_name(row), []).append(row)
    shown = sorted(history, key=lambda name: (-history[name][-1].usage, name))[:SERIES_MAX]

    def panel(up: Axis, value_of: Callable[[ShareHistoryRow], float | None]) -> Panel:
        series = []
        for style, name in enumerate(shown):
            values = [(row.day, value_of(row)) for row in history[name]]
            known = [(day, value) for day, value in values if value is not None]
            series.append(Series(name, _daily(known), style))
        return Panel(up, series)

    panels = [panel(_LEVEL, _drawn_level), panel(_USAGE, lambda row: row.effective)]
    if any(row.factor is not None for name in shown for row in history[name]):
        panels.append(panel(_FACTOR, lambda row: row.factor))
    days = [row.day for name in shown for row in history[name]] or [0]
    first, last = min(days), max(days)
    caption = Caption(
        f"Fair share on {cluster}",
        f"Levels and usage from day to day on {cluster}: {', '.join(shown)}",
        f"what the bank recorded daily from {day_name(first)} to {day_name(last)}",
        command,
    )
    return LineFigure(caption, _day_axis(first, last), panels)


def _daily(values: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return the points of (day, value) in the order of days; missing days become gaps."""
    points: list[tuple[float, float]] = []
    for day, value in values:
        if points and points[-1][0] != day - 1:
            points.append((day, nan))
        points.append((day, value))
    return points


def _day_axis(first: int, last: int) -> Axis:
    steps = min(_DAYS_SHOWN, last - first) or 1
    days = sorted({first + (last - first) * step // steps for step in range(steps + 1)})
    ticks = [(float(day), day_name(day)) for day in days]
    # The margin keeps a single day, and dots on the first and the last day, inside the frame.
    margin = max((last - first) / 50, 0.05)
    return Axis("day (UTC)", first - margin, last + margin, ticks=ticks)


def _name(kept: ShareHistoryRow) -> str:
    who = f"{kept.user} in {kept.account}" if kept.user else kept.account
    return f"{who} ({kept.partition})" if kept.partition else who


def _unused(kept: ShareHistoryRow) -> bool:
    return kept.level is None and kept.effective == 0 and kept.shares not in (None, ON_PARENT)


def _level(kept: ShareHistoryRow) -> str | None:
    return "unused" if _unused(kept) else None if kept.level is None else shown_level(kept.level)


def _drawn_level(kept: ShareHistoryRow) -> float | None:
    level = LEVEL_MAX if _unused(kept) else kept.level
    return None if level is None else min(max(level, LEVEL_MIN), LEVEL_MAX)
