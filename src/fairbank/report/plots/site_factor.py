"""Pictures of the site factor, drawn from the functions that rank Slurm's jobs.

The six figures of HADM's description, and the rule that an agent's settings choose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairbank.priority.site_factor import CurveRule, Power, Sigmoid
from fairbank.report.plots.picture import Picture
from fairbank.report.plots.square import KEY, SCALE, Axes, Curve, contours, curves, figure

STEPS = 97
"""Steps of the grid. A prime: no corner has exactly the value of a contour, on any machine."""
FINE = 500

CREDIT, EXPIRY = "credit left", "closeness of the end"


def rule_figure(name: str, rule: CurveRule) -> Picture:
    """Return the picture of one rule, such as that of an agent's settings."""
    return _contours("The rule of the settings", (name, rule))


def site_factor_figures() -> Iterator[Picture]:
    """Return the figures in the order of HADM's description.

    The description gives the numbers of the last figure only; those of the others are chosen to
    show what it says about them.
    """
    one, two = CurveRule(Power(1), Power(1)), CurveRule(Power(2), Power(2))
    yield _contours(
        "Two power rules with one exponent", ("c t  (N = 1)", one), ("(c t)²  (N = 2)", two)
    )
    yield _contours(
        "A power rule with two exponents",
        ("√c t²  (Nc = 1/2, Nt = 2)", CurveRule(Power(0.5), Power(2))),
    )
    yield _curves(
        "Variation of the sigmoid's l",
        "x0 = 0.5",
        {f"l = {slope}": Sigmoid(slope, 0.5) for slope in (1, 5, 10, 20, 50)},
    )
    yield _curves(
        "Variation of the sigmoid's x0",
        "l = 10",
        {f"x0 = {x0:g}": Sigmoid(10, x0) for x0 in (0.1, 0.25, 0.5, 0.75, 0.9)},
    )
    yield _curves(
        "The sigmoid as a step function",
        "x0 = 0.5",
        {f"l = {slope}": Sigmoid(slope, 0.5) for slope in (10, 50, 100, 1000)},
    )
    sigmoids = CurveRule(Sigmoid(5, 0.25), Sigmoid(50, 0.75))
    yield _contours("A sigmoid site factor", ("lc = 5, lt = 50, x0c = 0.25, x0t = 0.75", sigmoids))


def _contours(title: str, *rules: tuple[str, CurveRule]) -> Picture:
    steps = np.linspace(0, 1, STEPS + 1)
    panels = [
        contours(Axes(name, EXPIRY, CREDIT), rule.of(steps[:, np.newaxis], steps).tolist())
        for name, rule in rules
    ]
    about = f"Contours, at each tenth, of the site factor over {CREDIT} and {EXPIRY}: {'; '.join(name for name, _ in rules)}"
    return figure(title, about, panels, beside=SCALE)


def _curves(title: str, fixed: str, sigmoids: dict[str, Sigmoid]) -> Picture:
    steps = np.linspace(0, 1, FINE + 1)
    panel = curves(
        Axes(f"S(x), {fixed}", "x", "S(x)"),
        [Curve(name, each.of(steps).tolist()) for name, each in sigmoids.items()],
    )
    about = f"The sigmoid from (0, 0) to (1, 1) with {fixed}: {', '.join(sigmoids)}"
    return figure(title, about, [panel], beside=KEY)
