"""Figures that matplotlib draws: their texts and data, read from its objects, and their files."""

from __future__ import annotations

import sys
from math import isnan, nan
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from fairbank.core.errors import Unavailable
from fairbank.core.time import DAY, MINUTE
from fairbank.report.plots import canvas
from fairbank.report.plots.figures import (
    SERIES_MAX,
    STYLES,
    Axis,
    Caption,
    Contour,
    ContourFigure,
    Figure,
    Group,
    GroupFigure,
    LineFigure,
    Panel,
    Quartiles,
    Series,
    count_axis,
    duration_axis,
    stairs,
    time_axis,
)
from tests.support.plots import checked, panels

OKABE_ITO = "#000000 #E69F00 #56B4E9 #009E73 #F0E442 #0072B2 #D55E00 #CC79A7".split()
HOUR = 60 * MINUTE
CAPTION = Caption("Utilisation", "Processors over time", "trace week.swf", "fairbank simulate x")
ACROSS, UP = Axis("time (days)", 0, 10), Axis("processors (%)", 0, 100)
RAMP = Series("ramp", [(0, 0), (5, 50), (10, 100)])
FLAT = Series("flat", [(0, 20), (10, 20)], 1)
LINES = LineFigure(CAPTION, ACROSS, [Panel(UP, [RAMP, FLAT])])
PRODUCT = [[x * y / 100 for x in range(11)] for y in range(11)]
SQUARE = "closeness (0 to 1)", "credit (0 to 1)", "site factor (0 to 1)"
CONTOURS = ContourFigure(CAPTION, *SQUARE, [Contour("c t", PRODUCT), Contour("c", PRODUCT)])
WAITS = GroupFigure(
    CAPTION,
    "processors (number)",
    duration_axis("wait", 3 * HOUR),
    ["fcfs", "easy"],
    [
        Group("1", [Quartiles(60, 600, 7_200, 3_600), None], remark="9 jobs"),
        Group("2 to 4", [Quartiles(0, 0, 0, 5), Quartiles(0, 30, 90, 60)], remark="1 job"),
    ],
)
SHARES = GroupFigure(
    CAPTION,
    "account (name)",
    Axis("part (%)"),
    ["easy"],
    [Group("astro", [50.0], 60.0), Group("bio", [0.0])],
    line="line: entitled",
)


def points(line: Line2D) -> list[tuple[float, float]]:
    return list(map(tuple, np.asarray(line.get_xydata()).tolist()))


def bars(axes: Axes) -> list[Rectangle]:
    return [bar for bar in axes.patches if isinstance(bar, Rectangle)]


def line_heights(axes: Axes) -> list[float]:
    """Return the heights of the horizontal lines."""
    lines = [line for line in axes.collections if isinstance(line, LineCollection)]
    return [float(segment[0][1]) for line in lines for segment in line.get_segments()]


@pytest.mark.parametrize("figure", [LINES, CONTOURS, WAITS, SHARES])
def test_figure_has_title_units_legend_and_provenance(figure: Figure) -> None:
    checked(figure)


def test_lines_have_their_data_names_colours_and_dashes() -> None:
    assert checked(LINES).legend == ["ramp", "flat"]
    (axes,) = panels(canvas.draw(LINES))
    ramp, flat = axes.get_lines()
    assert points(ramp) == RAMP.points
    assert points(flat) == FLAT.points
    assert [line.get_color() for line in (ramp, flat)] == [colour for colour, _ in STYLES[:2]]
    assert ramp.get_linestyle() != flat.get_linestyle()
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 10), (0, 100))


def test_colours_are_those_of_okabe_and_ito() -> None:
    colours = [colour for colour, _ in STYLES]
    assert len({*colours}) == len({dashes for _, dashes in STYLES}) == SERIES_MAX
    assert {*colours} <= {*OKABE_ITO}


def test_more_series_than_colours_are_an_error() -> None:
    with pytest.raises(IndexError):
        canvas.draw(LineFigure(CAPTION, ACROSS, [Panel(UP, [RAMP._replace(style=SERIES_MAX)])]))
    with pytest.raises(ValueError, match="zip"):
        canvas.draw(SHARES._replace(names=["policy"] * 6, groups=[Group("astro", [1.0] * 6)]))


def test_each_policy_has_a_panel_with_its_name_above() -> None:
    figure = LineFigure(
        CAPTION, ACROSS, [Panel(UP, [RAMP], filled=True), Panel(UP, [FLAT], filled=True)]
    )
    texts = checked(figure)
    assert texts.legend == ["ramp", "flat"]
    assert texts.labels == ["processors (%)", "time (days)", "processors (%)"]
    assert [len(axes.collections) for axes in panels(canvas.draw(figure))] == [1, 1]


def test_gaps_are_kept_and_a_single_point_is_a_dot() -> None:
    broken = Series("a", [(1.0, 3.0), (2.0, nan), (3.0, 4.0), (4.0, 5.0)])
    (axes,) = panels(canvas.draw(LineFigure(CAPTION, ACROSS, [Panel(UP, [broken])])))
    (line,) = axes.get_lines()
    assert (line.get_marker(), line.get_markevery()) == ("o", [0])
    assert [isnan(value) for _, value in points(line)] == [False, True, False, False]
    (axes,) = panels(canvas.draw(LINES))
    assert [line.get_marker() for line in axes.get_lines()] == ["", ""]


def test_stairs_have_a_gap_between_separate_intervals() -> None:
    assert str(stairs([(0, 10, 5), (10, 20, 6), (40, 50, 7)])) == str(
        [(0, 5), (10, 5), (10, 6), (20, 6), (40, nan), (40, 7), (50, 7)]
    )


def test_contours_are_at_the_tenths_of_the_grid() -> None:
    figure = canvas.draw(CONTOURS)
    assert [axes.get_title() for axes in panels(figure)] == ["c t", "c"]
    bands, lines = panels(figure)[0].collections[:2]
    assert len(lines.get_paths()) == 9
    for tenth, path in enumerate(lines.get_paths(), start=1):
        for x, y in np.asarray(path.vertices):
            # Straight between the corners of the grid, so not exactly the hyperbola.
            assert x * y == pytest.approx(tenth / 10, abs=0.003)
    assert len(bands.get_paths()) == 10
    assert "site factor (0 to 1)" in checked(CONTOURS).labels


def test_boxes_show_quartiles_median_and_mean() -> None:
    texts = checked(WAITS)
    assert texts.legend == ["fcfs", "easy", "box: middle half", "line: median", "dot: mean"]
    assert {"1\n9 jobs", "2 to 4\n1 job", "1 min", "1 h", "6 h"} <= {*texts.ticks}
    (axes,) = panels(canvas.draw(WAITS))
    boxes = [(box.get_y(), box.get_y() + box.get_height()) for box in bars(axes)]
    assert boxes == [(60, 7_200), (0, 0), (0, 90)]
    assert [points(dot)[0][1] for dot in axes.get_lines()] == [3_600, 5, 60]
    assert line_heights(axes) == [600, 0, 30]
    assert to_hex(bars(axes)[2].get_edgecolor()) == STYLES[1][0].lower()


def test_bars_have_a_line_at_the_share() -> None:
    texts = checked(SHARES)
    assert texts.legend == ["easy", "line: entitled"]
    (axes,) = panels(canvas.draw(SHARES))
    assert [bar.get_height() for bar in bars(axes)] == [50, 0]
    assert line_heights(axes) == [60]


@pytest.mark.parametrize("name", ["a$b$", "_hidden", "<&>", "an_account_with_a_very_long_name"])
def test_names_are_shown_unchanged(name: str) -> None:
    groups = SHARES._replace(names=[name], groups=[Group(name, [1.0])])
    lines = LineFigure(CAPTION, ACROSS, [Panel(UP, [Series(name, RAMP.points)])])
    for figure in (groups, lines):
        texts = checked(figure)
        assert name in [entry.replace("\n", "") for entry in texts.legend]
        svg = ElementTree.fromstring(canvas.render(figure, "svg"))
        written = [
            "".join(part.itertext()) for part in svg.iter("{http://www.w3.org/2000/svg}text")
        ]
        assert name in "".join(written)


def test_control_characters_are_escaped() -> None:
    figure = SHARES._replace(groups=[Group("a\x07b", [1.0])])
    ElementTree.fromstring(canvas.render(figure, "svg"))
    assert "a\\x07b" in "".join(checked(figure).ticks)


def test_empty_figure_is_drawn() -> None:
    for figure in (
        LineFigure(CAPTION, ACROSS, [Panel(UP, [])]),
        LineFigure(CAPTION, ACROSS, [Panel(UP, [Series("a", [])])]),
        SHARES._replace(groups=[]),
        SHARES._replace(names=["used"], groups=[Group("gpu", [0.0]), Group("disk", [None])]),
    ):
        assert canvas.render(figure, "png").startswith(b"\x89PNG\r\n")


def test_axis_without_amounts_has_only_zero() -> None:
    """A resource of which nothing exists, was granted or used has an axis of its own."""
    groups = [Group("cpu", [2.0], panel="cpu"), Group("debug", [0.0], panel="debug")]
    axes = canvas.draw(SHARES._replace(names=["used"], groups=groups)).axes[1]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0"]


@pytest.mark.parametrize("figure", [LINES, CONTOURS, WAITS])
def test_figures_are_reproducible(figure: Figure) -> None:
    for form in ("svg", "png"):
        content = canvas.render(figure, form)
        assert content == canvas.render(figure, form)
        assert b"matplotlib.org" not in content
        assert b"Processors over time" in content


def test_svg_has_a_title_and_no_date() -> None:
    content = canvas.render(LINES, "svg")
    root = ElementTree.fromstring(content)
    assert root[0].text == "Utilisation"
    assert b"dc:date" not in content


def test_users_matplotlib_settings_are_ignored() -> None:
    before = canvas.render(LINES, "svg")
    with rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert canvas.render(LINES, "svg") == before
        assert rcParams["font.size"] == 30


def test_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Unavailable, match="figures need matplotlib") as raised:
        canvas.render(LINES, "svg")
    assert str(raised.value.remedy).endswith("pip install 'matplotlib>=3.10'")


@pytest.mark.parametrize(
    ("seconds", "label", "high"),
    [
        (0, "time since then (minutes)", 1 / MINUTE),
        (70 * MINUTE, "time since then (minutes)", 70),
        (3 * DAY, "time since then (hours)", 72),
        (333 * DAY, "time since then (days)", 333),
    ],
)
def test_time_axis_has_the_unit_that_suits_it(seconds: float, label: str, high: float) -> None:
    axis, unit = time_axis(seconds, "then")
    assert axis.label == label
    assert axis.high == pytest.approx(high)
    assert unit * high == pytest.approx(max(seconds, 1))


@pytest.mark.parametrize(
    ("longest", "last"),
    [(0, "1 min"), (59, "1 min"), (HOUR, "1 h"), (2 * DAY, "4 days"), (10**9, "1000 days")],
)
def test_duration_axis_ends_at_a_named_duration(longest: float, last: str) -> None:
    axis = duration_axis("wait", longest)
    assert axis.ticks[-1][1] == last
    assert axis.high is not None
    assert axis.high >= longest


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0, []),
        (200, []),
        (1_000, ["0", "1", "10", "100", "1,000"]),
        (16_099, ["0", "1", "10", "100", "1,000", "10,000", "100,000"]),
    ],
)
def test_count_axis_is_logarithmic_for_many(most: float, ticks: list[str]) -> None:
    axis = count_axis("jobs", most)
    assert [text for _, text in axis.ticks] == ticks
    assert (axis.scale == "symlog") == bool(ticks)
    assert axis.high is not None
    assert axis.high >= max(most, 1)
