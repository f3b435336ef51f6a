"""Texts and data of a figure, read from matplotlib's own objects."""

from __future__ import annotations

import re
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.legend import Legend

from fairbank.report.plots import canvas
from fairbank.report.plots.figures import Figure

HAS_UNIT = re.compile(r"\(.+\)$")  # every axis label ends with its unit or range


class Reading(NamedTuple):
    """Texts of a figure. `labels` are those of all axes, the scale of colours included."""

    title: str
    provenance: str
    labels: list[str]
    legend: list[str]
    ticks: list[str]


def panels(figure: Canvas) -> list[Axes]:
    """Return the axes with data, without the scale of colours."""
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]


def reading(figure: Canvas) -> Reading:
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    entries = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    labels = [label for axes in figure.axes for label in (axes.get_xlabel(), axes.get_ylabel())]
    ticks = [
        text.get_text()
        for axes in panels(figure)
        for text in (*axes.get_xticklabels(), *axes.get_yticklabels())
    ]
    return Reading(
        figure.get_suptitle(), figure.get_supxlabel(), [*filter(None, labels)], entries, ticks
    )


def checked(figure: Figure) -> Reading:
    """Read a figure, and check what every figure has.

    It has a title, units on all axes, a legend or a labelled scale of colours, its provenance, and
    legends that do not cover the axes.
    """
    drawn = canvas.draw(figure)
    drawn.draw_without_rendering()
    texts = reading(drawn)
    assert texts.title == figure.caption.title
    # The provenance is broken into lines.
    provenance = " ".join(texts.provenance.split())
    assert f"Source: {figure.caption.source}" in provenance
    assert f"Command: {figure.caption.command}" in provenance
    assert [label for label in texts.labels if not HAS_UNIT.search(label)] == []
    scales = [axes for axes in drawn.axes if axes not in panels(drawn)]
    assert texts.legend or all(scale.get_ylabel() for scale in scales)
    assert len(texts.labels) >= 2
    for legend in filter(None, [*drawn.legends, *(axes.get_legend() for axes in drawn.axes)]):
        assert _covered(drawn, legend) == []
    return texts


def _covered(figure: Canvas, legend: Legend) -> list[Axes]:
    box = legend.get_window_extent()
    return [
        axes
        for axes in panels(figure)
        # A legend above its own axes may touch their frame.
        if axes.get_window_extent().padded(-2).overlaps(box)
    ]
