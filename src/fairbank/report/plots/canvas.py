"""Drawing of figures with matplotlib's object-oriented interface: no window and no global state.

Only the functions of this module import matplotlib: no other command needs it.
"""

from __future__ import annotations

import warnings
from io import BytesIO
from itertools import groupby
from math import isnan
from operator import attrgetter
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Literal

from fairbank.core.errors import Unavailable
from fairbank.report.cells import plain
from fairbank.report.plots.figures import (
    STYLES,
    Axis,
    Band,
    Caption,
    ContourFigure,
    Figure,
    Group,
    GroupFigure,
    LineFigure,
    Panel,
    Quartiles,
    Series,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Format = Literal["svg", "png"]
WIDTH, NARROW, GROUP, TICK_LABELS, LEGEND = 8.0, 6.0, 0.75, 0.5, 2.1  # inches
DOTS_PER_INCH = 150
NAME_MAX, GROUP_NAME_MAX = 26, 12  # characters of a line in a legend, and below a group of bars
GREY = "#555555"
AMBER = "#E69F00"
_INSTALL = (
    "install it with the pip of Fairbank's environment, such as: .venv/bin/pip install"
    " 'matplotlib>=3.10'"
)

# Not the reader's own matplotlibrc: the same values give the same file on each host. Text in an SVG
# file stays text. Names are not formulas, so a dollar sign is one.
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairbank",
    "text.parse_math": False,
    "font.size": 9.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
}


def check_installed() -> None:
    """Raise Unavailable, with the remedy, if matplotlib cannot be imported."""
    try:
        import matplotlib.style  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            f"figures need matplotlib, which is not installed here ({error})", remedy=_INSTALL
        ) from error


def render(figure: Figure, form: Format) -> bytes:
    """Return the file: of the same figure the same bytes. Raises Unavailable: no matplotlib."""
    check_installed()
    from matplotlib import style

    about = {"Title": plain(figure.caption.title), "Description": plain(figure.caption.about)}
    # matplotlib writes the date and its version into a file by default.
    own = {"Creator": "Fairbank", "Date": None} if form == "svg" else {"Software": None}
    file = BytesIO()
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box in PNG files; the reader sees it there.
        warnings.simplefilter("ignore", UserWarning)
        draw(figure).savefig(file, format=form, dpi=DOTS_PER_INCH, metadata={**about, **own})
    return file.getvalue()


def draw(figure: Figure) -> Canvas:
    """Return matplotlib's figure of a description."""
    match figure:
        case LineFigure():
            rows = len(figure.panels)
            canvas = _canvas(figure.caption, WIDTH, 4.4 if rows == 1 else 1.2 + 2.0 * rows)
            _draw_lines(canvas, figure)
        case ContourFigure():
            size = (WIDTH, 4.6) if len(figure.contours) > 1 else (NARROW, 5.6)
            canvas = _canvas(figure.caption, *size)
            _draw_contours(canvas, figure)
        case GroupFigure():
            axes = len({group.panel for group in figure.groups})
            width = LEGEND + GROUP * len(figure.groups) + TICK_LABELS * axes
            canvas = _canvas(figure.caption, max(WIDTH, width), 4.8)
            _draw_groups(canvas, figure)
    return canvas


def _canvas(caption: Caption, width: float, height: float) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas((width, height), layout="constrained")
    title = "\n".join(plain(line) for line in (caption.title, caption.period) if line)
    canvas.suptitle(title, x=0.01, ha="left", weight="bold", size="large")
    columns = int(15 * width)  # characters of the small size that fit
    provenance = (f"Source: {plain(caption.source)}", f"Command: {plain(caption.command)}")
    lines = [line for text in provenance for line in wrap(text, columns, subsequent_indent="    ")]
    canvas.supxlabel("\n".join(lines), x=0.01, ha="left", size=7, color=GREY)
    return canvas


def _draw_lines(canvas: Canvas, figure: LineFigure) -> None:
    column = canvas.subplots(len(figure.panels), sharex=True, squeeze=False)[:, 0]
    # A panel with a line of its own has its name above it; several lines share one legend.
    alone = all(len(panel.series) == 1 for panel in figure.panels) and len(figure.panels) > 1
    for axes, panel in zip(column, figure.panels, strict=True):
        for series in panel.series:
            _draw_series(axes, panel, series, alone=alone)
        areas = [] if panel.band is None else [_draw_band(axes, panel.band)]
        _set_axis(axes, "x", figure.across)
        _set_axis(axes, "y", panel.up)
        if alone:
            lines = axes.get_lines()
            axes.legend(handles=lines, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.1)
    for axes in column[:-1]:
        axes.set_xlabel("")
    canvas.align_ylabels()
    if not alone and (lines := column[0].get_lines()):
        canvas.legend(handles=[*lines, *areas], loc="outside right upper")


def _draw_band(axes: Axes, band: Band) -> Artist:
    """Draw the band and return it for the legend; hatched, so that it needs no colour."""
    across, low, high = zip(*band.points, strict=True) if band.points else ((), (), ())
    return axes.fill_between(
        across,
        low,
        high,
        facecolor=f"{AMBER}55",
        edgecolor=AMBER,
        hatch="///",
        linewidth=0.5,
        label=fill(plain(band.name), NAME_MAX),
    )


def _draw_series(axes: Axes, panel: Panel, series: Series, *, alone: bool) -> None:
    colour, dashes = STYLES[series.style]
    across, up = [x for x, _ in series.points], [y for _, y in series.points]
    gaps = [True, *map(isnan, up), True]
    # A line through one point is invisible.
    isolated = [n for n in range(len(up)) if gaps[n] and not gaps[n + 1] and gaps[n + 2]]
    axes.plot(
        across,
        up,
        color=colour,
        linestyle="-" if alone or not dashes else (0, dashes),
        marker="o" if panel.dotted or isolated else "",
        markersize=4,
        markevery=None if panel.dotted else isolated,
        label=plain(series.name) if alone else fill(plain(series.name), NAME_MAX),
    )
    if panel.filled:
        axes.fill_between(across, up, color=colour, alpha=0.2, linewidth=0)


def _set_axis(axes: Axes, letter: Literal["x", "y"], axis: Axis) -> None:
    from matplotlib.ticker import NullLocator

    # Half of a decade's length is enough for the linear part.
    options = {"linthresh": axis.bend, "linscale": 0.5} if axis.scale == "symlog" else {}
    getattr(axes, f"set_{letter}scale")(axis.scale, **options)
    getattr(axes, f"set_{letter}lim")(axis.low, axis.high)
    getattr(axes, f"set_{letter}label")(axis.label)
    along = axes.xaxis if letter == "x" else axes.yaxis
    along.set_minor_locator(NullLocator())
    if axis.ticks:
        along.set_ticks([value for value, _ in axis.ticks], [text for _, text in axis.ticks])
    else:
        along.set_major_formatter(lambda value, _: f"{value:,.10g}")


def _draw_contours(canvas: Canvas, figure: ContourFigure) -> None:
    row = canvas.subplots(1, len(figure.contours), sharey=True, squeeze=False)[0]
    tenths = [number / 10 for number in range(11)]
    for axes, contour in zip(row, figure.contours, strict=True):
        last = len(contour.grid) - 1
        steps = [number / last for number in range(last + 1)]
        # cividis goes from dark blue to yellow: in order for colour-blind readers, and in grey.
        bands = axes.contourf(steps, steps, contour.grid, tenths, cmap="cividis")
        lines = axes.contour(steps, steps, contour.grid, tenths[1:-1], colors="white", linewidths=1)
        for text in axes.clabel(lines, tenths[1:-1:2], fmt="%g", fontsize=8, colors="black"):
            text.set_bbox({"boxstyle": "round,pad=0.1", "facecolor": "white", "linewidth": 0})
        axes.set(title=contour.formula, aspect="equal")
        _set_axis(axes, "x", Axis(figure.across, 0, 1))
        axes.grid(visible=False)
    _set_axis(row[0], "y", Axis(figure.up, 0, 1))
    canvas.colorbar(bands, ax=list(row), ticks=tenths, label=figure.scale)


def _draw_groups(canvas: Canvas, figure: GroupFigure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colours = [colour for colour, _ in STYLES[: len(figure.names)]]
    panels = [list(groups) for _, groups in groupby(figure.groups, attrgetter("panel"))] or [[]]
    ratios = [max(1, len(groups)) for groups in panels]
    row = canvas.subplots(1, len(panels), squeeze=False, width_ratios=ratios)[0]
    # Long words, such as names of accounts, fit below a group only if they are slanted.
    words = [word for group in figure.groups for word in group.name.split()]
    slanted = any(len(word) > GROUP_NAME_MAX for word in words)
    for axes, groups in zip(row, panels, strict=True):
        _draw_panel(axes, groups, colours, slanted=slanted)
        up = figure.up if axes is row[0] else figure.up._replace(label="")
        if not any(group.line or any(group.values) for group in groups):
            up = up._replace(high=1, ticks=[(0, "0")])  # nothing gives the axis a length
        _set_axis(axes, "y", up)
    row[0].set_xlabel(figure.across)
    handles: list[Patch | Line2D] = [
        Patch(facecolor=f"{colour}55", edgecolor=colour, label=fill(plain(name), NAME_MAX))
        for name, colour in zip(figure.names, colours, strict=True)
    ]
    if figure.line:
        label = fill(figure.line, NAME_MAX)
        handles.append(Line2D([], [], color="black", linewidth=2, label=label))
    if any(isinstance(value, Quartiles) for group in figure.groups for value in group.values):
        handles += [
            Patch(facecolor="white", edgecolor=GREY, label="box: middle half"),
            Line2D([], [], color=GREY, linewidth=2.5, label="line: median"),
            Line2D([], [], color=GREY, linestyle="", marker="o", markersize=5, label="dot: mean"),
        ]
    canvas.legend(handles=handles, loc="outside right upper")


def _draw_panel(
    axes: Axes, groups: Sequence[Group], colours: Sequence[str], *, slanted: bool
) -> None:
    """Draw the groups of a panel, each above its name; `slanted` names take more characters."""
    width = 0.8 / len(colours)
    for place, group in enumerate(groups):
        first = place - (len(colours) - 1) / 2 * width
        for number, (value, colour) in enumerate(zip(group.values, colours, strict=True)):
            _draw_bar(axes, value, first + number * width, width * 0.86, colour)
        if group.line is not None:
            axes.hlines(group.line, place - 0.45, place + 0.45, color="black", linewidth=2)
    columns = NAME_MAX if slanted else GROUP_NAME_MAX
    texts = [f"{fill(plain(group.name), columns)}\n{group.remark}" for group in groups]
    axes.set_xticks(range(len(texts)), texts, size="small", rotation=30 if slanted else 0)
    if slanted:
        for tick in axes.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(texts) - 0.4)
    axes.tick_params("x", length=0)
    axes.grid(visible=False, axis="x")


def _draw_bar(
    axes: Axes, value: float | Quartiles | None, middle: float, width: float, colour: str
) -> None:
    pale, half = f"{colour}55", width / 2
    match value:
        case None:
            return
        case Quartiles(quarter, median, three_quarters, mean):
            height = three_quarters - quarter
            axes.bar(middle, height, width, quarter, facecolor=pale, edgecolor=colour)
            # Not clipped: most medians are 0, on the edge of the axes.
            axes.hlines(
                median, middle - half, middle + half, color=colour, linewidth=2.5, clip_on=False
            )
            axes.plot(middle, mean, color=colour, marker="o", markersize=5, clip_on=False)
        case _:
            axes.bar(middle, value, width, facecolor=pale, edgecolor=colour)
