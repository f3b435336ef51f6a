"""The figures of HADM's description of the site factor, from the functions that rank Slurm's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairbank.priority.sitefactor import Power, Rule, Sigmoid, rule_of
from fairbank.report.plots import canvas
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
from fairbank.service.whole_file import check_place, whole_file
from fairbank.slurm.agent.settings import SiteFactorSettings, read_agent_settings
from fairbank.values.system import of_system
from fairbank.values.trouble import Malformed, Trouble

STEPS = 79
"""A prime: no corner of the grid has exactly the value of a contour, on any machine."""
FINE = 500

CREDIT = "fraction of the credit that is left (0 to 1)"
EXPIRY = "closeness of the end of the allocation (0 to 1)"
FORMULAS = "formulas of the site factor, after HADM's description"


class Drawn(NamedTuple):
    """A figure that was written: its file, and its content in a sentence."""

    file: str
    about: str


class Figures:
    """Figures of the site factor as files."""

    def site_factor(
        self, folder: str, *, agent: str | None, as_png: bool, command: str
    ) -> list[Drawn]:
        """Draw all six figures into a folder, or only the rule of an agent's settings.

        Args:
            folder: is created if needed.
            agent: file of the agent's settings.
            as_png: write PNG files, not SVG files.
            command: command line, for the provenance.

        Raises:
            Trouble: the settings cannot be read or the files cannot be written.
            Unreachable: matplotlib is not installed.
        """
        if agent is None:
            numbered = enumerate(site_factor_figures(command), start=1)
            figures = [(f"site-factor-{number}", figure) for number, figure in numbered]
        else:
            figures = [("site-factor", _rule_figure(_settings(Path(agent)), agent, command))]
        return [
            Drawn(written(folder, name, figure, as_png=as_png), figure.caption.title)
            for name, figure in figures
        ]


def written(folder: str, name: str, figure: Figure, *, as_png: bool, option: str = "FOLDER") -> str:
    """Write a figure into a folder, which is created if needed, and return the name of the file.

    Args:
        folder: where to write.
        name: of the file, without its ending.
        figure: what to draw.
        as_png: write a PNG file, not an SVG file.
        option: argument that named the folder, for errors.

    Raises:
        Trouble: the file cannot be written (`of_system`).
        Unreachable: matplotlib is not installed.
    """
    content = canvas.render(figure, "png" if as_png else "svg")
    file = Path(folder, f"{name}.png" if as_png else f"{name}.svg")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as out:
            out.write(content)
    except OSError as error:
        raise of_system(error, f"cannot write {file}", field=option) from error
    return str(file)


def check_folder(folder: str, option: str) -> None:
    """Check, before the work begins, that figures can be drawn and written into a folder.

    Raises:
        Malformed: `folder` is no folder.
        Trouble: nothing can be written there (`of_system`).
        Unreachable: matplotlib is not installed.
    """
    canvas.check_installed()
    place = Path(folder)
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise Malformed(
            f"{place} is no folder", field=option, remedy="name a folder, or one that can be made"
        )
    try:
        # A test by writing: access(2) says that root may write in /proc, where no file can be made.
        check_place(place / "picture")
    except OSError as error:
        raise of_system(error, f"cannot write in {place}", field=option) from error


def _settings(path: Path) -> SiteFactorSettings:
    try:
        return read_agent_settings(path).site_factor
    except Trouble as bad:
        if bad.field != "config":
            raise
        raise type(bad)(
            bad.message,
            field="agent_config",
            remedy="name an agent's settings, such as /etc/fairbank/agent.toml",
        ) from bad


def _rule_figure(settings: SiteFactorSettings, file: str, command: str) -> Figure:
    rule = rule_of(settings.rule, settings.credit, settings.expiry)
    caption = Caption("Site factor by the rule of the settings", "", file, command)
    return _contours(caption, (settings.rule, rule))


def site_factor_figures(command: str) -> Iterator[Figure]:
    """Return the figures in the order of HADM's description.

    The description gives the numbers of the last figure. The numbers of the others are chosen to
    show what it says about them.
    """

    def caption(title: str) -> Caption:
        return Caption(title, "", FORMULAS, command)

    one, two = Rule(Power(1), Power(1)), Rule(Power(2), Power(2))
    yield _contours(
        caption("Two power rules with one exponent"),
        ("c t  (N = 1)", one),
        ("(c t)²  (N = 2)", two),
    )
    yield _contours(
        caption("A power rule with two exponents"),
        ("√c t²  (Nc = 1/2, Nt = 2)", Rule(Power(0.5), Power(2))),
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
    sigmoids = Rule(Sigmoid(5, 0.25), Sigmoid(50, 0.75))
    yield _contours(
        caption("A sigmoid site factor"), ("lc = 5, lt = 50, x0c = 0.25, x0t = 0.75", sigmoids)
    )


def _contours(caption: Caption, *rules: tuple[str, Rule]) -> Figure:
    steps = np.linspace(0, 1, STEPS + 1)
    contours = [
        Contour(formula, rule.of(steps[:, np.newaxis], steps).tolist()) for formula, rule in rules
    ]
    formulas = "; ".join(formula for formula, _ in rules)
    about = f"Contours, at each tenth, of the site factor over credit and closeness of the end: {formulas}"
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
