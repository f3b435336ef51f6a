"""Fair share from day to day, as the bank recorded it: as a table and as a figure.

Rows are those of the bank: a day in UTC, `user` and `partition` None for an account and for all
partitions, `shares` None for the root, `level` None for the root and without usage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from math import nan

from fairbank.report.columns import Column, Row, decimal, text
from fairbank.report.fair_share import association_name, shown_level, user_cell
from fairbank.report.plots.figures import SERIES_MAX, Axis, Caption, LineFigure, Panel, Series

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


COLUMNS = (
    Column("DAY", text("day")),
    Column("CLUSTER", text("cluster"), drop=2),
    Column("ACCOUNT", text("account"), min_width=7),
    Column("USER", lambda row, form: user_cell(row["user"], row["partition"]) or "", drop=1),
    Column("SHARES", text("shares"), right=True),
    Column("NORM", decimal("norm_shares", 3), right=True),
    Column("USAGE", decimal("effective", 3), right=True),
    Column("LEVEL", lambda row, form: _level(row), right=True),
    Column("FACTOR", decimal("factor", 3), right=True),
)


def figures(kept: Sequence[Row], command: str) -> dict[str, LineFigure]:
    """Return a figure for each cluster: levels, usage, and factors where the bank has some.

    It shows at most SERIES_MAX associations, those with the highest usage on their last day. The
    root is left out. `command` is the command line, for the provenance.
    """
    clusters = sorted({row["cluster"] for row in kept})
    return {
        cluster: _figure(cluster, [row for row in kept if row["cluster"] == cluster], command)
        for cluster in clusters
    }


def _figure(cluster: str, kept: Sequence[Row], command: str) -> LineFigure:
    history: dict[str, list[Row]] = {}
    for row in sorted(kept, key=lambda row: str(row["day"])):
        if row["shares"] is not None:
            name = association_name(row["account"], row["user"], row["partition"])
            history.setdefault(name, []).append(row)
    shown = sorted(history, key=lambda name: (-history[name][-1]["usage"], name))[:SERIES_MAX]

    def panel(up: Axis, value_of: Callable[[Row], float | None]) -> Panel:
        series = []
        for style, name in enumerate(shown):
            values = [(_day(row), value_of(row)) for row in history[name]]
            known = [(day, value) for day, value in values if value is not None]
            series.append(Series(name, _daily(known), style))
        return Panel(up, series)

    panels = [panel(_LEVEL, _drawn_level), panel(_USAGE, lambda row: row["effective"])]
    if any(row["factor"] is not None for name in shown for row in history[name]):
        panels.append(panel(_FACTOR, lambda row: row["factor"]))
    days = [_day(row) for name in shown for row in history[name]] or [0]
    first, last = min(days), max(days)
    caption = Caption(
        f"Fair share on {cluster}",
        f"Levels and usage from day to day on {cluster}: {', '.join(shown)}",
        f"what the bank recorded daily from {_date(first)} to {_date(last)}",
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
    ticks = [(float(day), _date(day)) for day in days]
    # The margin keeps a single day, and dots on the first and the last day, inside the frame.
    margin = max((last - first) / 50, 0.05)
    return Axis("day (UTC)", first - margin, last + margin, ticks=ticks)


def _day(row: Row) -> int:
    return date.fromisoformat(row["day"]).toordinal()


def _date(day: int) -> str:
    return date.fromordinal(day).isoformat()


def _is_unused(row: Row) -> bool:
    return row["level"] is None and row["effective"] == 0 and row["shares"] not in (None, "parent")


def _level(row: Row) -> str:
    if _is_unused(row):
        return "unused"
    return "" if row["level"] is None else shown_level(row["level"])


def _drawn_level(row: Row) -> float | None:
    level = LEVEL_MAX if _is_unused(row) else row["level"]
    return None if level is None else min(max(level, LEVEL_MIN), LEVEL_MAX)
