"""Figures of the site factor, drawn from the functions that rank Slurm's jobs.

The six figures of HADM's description, and the rule that an agent's settings choose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairbank.priority.site_factor import CurveRule, Power, Sigmoid
from fairbank.report.plots.figures import (
    Axis,
    Caption,
    Contour,
    ContourFigure,
    Figure,
    LineFigure,
    Panel,
    Series,
)

STEPS = 79
"""Steps of the grid. A prime: no corner has exactly the value of a contour, on any machine."""
FINE = 500

CREDIT = "fraction of the credit that is left (0 to 1)"
EXPIRY = "closeness of the end of the allocation (0 to 1)"
FORMULAS = "formulas of the site factor, after HADM's description"


def rule_figure(name: str, rule: CurveRule, file: str, command: str) -> Figure:
    """Return the figure of one rule.

    Args:
        name: the formula.
        file: the settings that choose it, for the provenance.
        command: the command line, for the provenance.
    """
    return _contours(
        Caption("Site factor by the rule of the settings", "", file, command), (name, rule)
    )


def site_factor_figures(command: str) -> Iterator[Figure]:
    """Return the figures in the order of HADM's description.

    The description gives the numbers of the last figure. The numbers of the others are chosen to
    show what it says about them.
    """

    def caption(title: str) -> Caption:
        return Caption(title, "", FORMULAS, command)

    one, two = CurveRule(Power(1), Power(1)), CurveRule(Power(2), Power(2))
    yield _contours(
        caption("Two power rules with one exponent"),
        ("c t  (N = 1)", one),
        ("(c t)²  (N = 2)", two),
    )
    yield _contours(
        caption("A power rule with two exponents"),
        ("√c t²  (Nc = 1/2, Nt = 2)", CurveRule(Power(0.5), Power(2))),
    )
    yield _curves(
        caption("Variation of the sigmoid's steepness l"),
        "x0 = 0.5",
        {f"l = {slope}": Sigmoid(slope, 0.5) for slope in (1, 5, 10, 20, 50)},
    )
    yield _curves(
        caption("Variation of the sigmoid's midpoint x0"),
        "l = 10",
        {f"x0 = {x0:g}": Sigmoid(10, x0) for x0 in (0.1, 0.25, 0.5, 0.75, 0.9)},
    )
    yield _curves(
        caption("The sigmoid as a step function"),
        "x0 = 0.5",
        {f"l = {slope}": Sigmoid(slope, 0.5) for slope in (10, 50, 100, 1000)},
    )
    sigmoids = CurveRule(Sigmoid(5, 0.25), Sigmoid(50, 0.75))
    yield _contours(
        caption("A sigmoid site factor"), ("lc = 5, lt = 50, x0c = 0.25, x0t = 0.75", sigmoids)
    )


def _contours(caption: Caption, *rules: tuple[str, CurveRule]) -> Figure:
    steps = np.linspace(0, 1, STEPS + 1)
    contours = [
        Contour(formula, rule.of(steps[:, np.newaxis], steps).tolist()) for formula, rule in rules
    ]
    formulas = "; ".join(formula for formula, _ in rules)
    about = (
        "Contours, at each tenth, of the site factor over credit and closeness of the end:"
        f" {formulas}"
    )
    return ContourFigure(
        caption._replace(about=about), EXPIRY, CREDIT, "site factor (0 to 1)", contours
    )


def _curves(caption: Caption, fixed: str, sigmoids: dict[str, Sigmoid]) -> Figure:
    steps = np.linspace(0, 1, FINE + 1)
    series = [
        Series(name, list(zip(steps.tolist(), sigmoid.of(steps).tolist(), strict=True)), number)
        for number, (name, sigmoid) in enumerate(sigmoids.items())
    ]
    about = f"The sigmoid S(x) from (0, 0) to (1, 1) with {fixed}: {', '.join(sigmoids)}"
    across = Axis("x: fraction of credit left, or closeness of the end (0 to 1)", 0, 1)
    panel = Panel(Axis(f"S(x) with {fixed} (0 to 1)", 0, 1), series)
    return LineFigure(caption._replace(about=about), across, [panel])
