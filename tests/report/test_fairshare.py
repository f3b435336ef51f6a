"""Figures of the recorded fair share: one line per association, in panels over the same days."""

from __future__ import annotations

from datetime import date, timedelta
from math import isnan

from fairbank.report.plots.figures import SERIES_MAX
from fairbank.report.share_history import figures
from tests.support.plots import checked

DAY = date(2026, 11, 18)
BIO = {
    "cluster": "darwin",
    "day": DAY.isoformat(),
    "account": "bio",
    "user": None,
    "partition": None,
    "shares": 40,
    "norm_shares": 0.4,
    "usage": 18.0,
    "effective": 0.18,
    "level": 2.2,
    "factor": 0.5,
}


def day_after(days: int) -> str:
    return (DAY + timedelta(days)).isoformat()


def test_figure_has_a_panel_for_each_measure_with_its_data() -> None:
    physics = {
        **BIO,
        "account": "physics",
        "usage": 70.0,
        "effective": 0.7,
        "level": 0.5,
        "factor": 0.25,
    }
    rows = [{**row, "day": day_after(day)} for row in (BIO, physics) for day in (0, 1, 3)]
    (figure,) = figures(rows, "fairbank report fairshare figures").values()
    texts = checked(figure)
    assert texts.title == "Fair share on darwin"
    assert texts.legend == ["physics", "bio"], "the one that used most comes first"
    assert texts.labels == [
        "level (share / usage)",
        "part of usage (0 to 1)",
        "day (UTC)",
        "fair-share factor (0 to 1)",
    ]
    assert {"2026-11-18", "2026-11-21", "1 (its share)", "8 or more"} <= {*texts.ticks}
    assert "Source: what the bank recorded daily from 2026-11-18 to 2026-11-21" in texts.provenance
    values = [[series.points[0][1] for series in panel.series] for panel in figure.panels]
    assert values == [[0.5, 2.2], [0.7, 0.18], [0.25, 0.5]]
    days = [day for day, _ in figure.panels[0].series[0].points]
    gaps = [isnan(value) for _, value in figure.panels[0].series[0].points]
    first = DAY.toordinal()
    assert days == [first, first + 1, first + 3, first + 3]
    assert gaps == [False, False, True, False]


def test_levels_beyond_the_scale_stay_at_its_edge() -> None:
    rows = [
        {**BIO, "account": "high", "usage": 3.0, "level": 1e9},
        {**BIO, "account": "low", "usage": 2.0, "level": 0.001},
        {**BIO, "account": "unused", "usage": 0.0, "effective": 0.0, "level": None},
    ]
    (figure,) = figures(rows, "").values()
    levels = {series.name: series.points[0][1] for series in figure.panels[0].series}
    assert levels == {"high": 8.0, "low": 0.125, "unused": 8.0}


def test_one_day_has_one_tick_and_many_days_have_five() -> None:
    (figure,) = figures([BIO], "fairbank report fairshare figures").values()
    assert [text for _, text in figure.across.ticks] == ["2026-11-18"]
    checked(figure)
    (figure,) = figures([{**BIO, "day": day_after(day)} for day in range(400)], "").values()
    assert len(figure.across.ticks) == 5


def test_figure_shows_the_largest_users_without_root() -> None:
    rows = [{**BIO, "account": f"a{number}", "usage": float(number)} for number in range(9)]
    rows.append({**BIO, "account": "root", "shares": None, "usage": 99.0})
    rows.append({**BIO, "cluster": "other", "user": "carol", "partition": "idle"})
    drawn = figures(rows, "")
    assert list(drawn) == ["darwin", "other"]
    names = [series.name for series in drawn["darwin"].panels[0].series]
    assert names == ["a8", "a7", "a6", "a5", "a4"]
    assert len(names) == SERIES_MAX
    assert [series.name for series in drawn["other"].panels[0].series] == ["carol in bio (idle)"]
