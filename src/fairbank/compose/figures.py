"""The figures of HADM's description of the site factor, from the functions that Slurm's jobs are ranked by (cli.works.Figures)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairbank.agent.settings import SiteFactorSettings, read_agent_settings
from fairbank.core.errors import Malformed, Trouble
from fairbank.core.os_errors import translate_os_error
from fairbank.priority.site_factor import CurveRule, Power, Sigmoid, rule_of
from fairbank.report.plots.picture import Picture
from fairbank.report.plots.png import png
from fairbank.report.plots.square import KEY, SCALE, Axes, Curve, contours, curves, figure
from fairbank.report.plots.svg import svg
from fairbank.service.ops.atomic_file import check_place, whole_file

STEPS = 97
"""A prime: no corner of the grid has exactly the value of a contour, on any machine."""
FINE = 500

CREDIT, EXPIRY = "credit left", "closeness of the end"


class Drawn(NamedTuple):
    """A figure that was written: its file, and what it shows."""

    file: str
    about: str


class Figures:
    """Figures as files."""

    def site_factor(self, folder: str, *, agent: str | None, as_png: bool) -> list[Drawn]:
        """Draw all six into a folder; or only the rule of an agent's settings. Raises what `written` and reading the settings raise."""
        pictures = (
            _all_six() if agent is None else [("site-factor", _chosen(_settings(Path(agent))))]
        )
        return [
            Drawn(written(folder, name, picture, as_png=as_png), picture.title)
            for name, picture in pictures
        ]


def written(
    folder: str, name: str, picture: Picture, *, as_png: bool, option: str = "FOLDER"
) -> str:
    """The file with the picture, whole or not at all, in a folder that is made if need be. Raises what `of_system` makes of it, naming the
    option that said where, if it cannot be written."""
    file = Path(folder, f"{name}.png" if as_png else f"{name}.svg")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as out:
            out.write(png(picture) if as_png else svg(picture).encode())
    except OSError as error:
        raise translate_os_error(error, f"cannot write {file}", field=option) from error
    return str(file)


def check_folder(folder: str, option: str) -> None:
    """Before the work begins: pictures can be written there, or a folder made for them. Raises Malformed, and what `of_system`
    makes of it where they cannot."""
    place = Path(folder)
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise Malformed(
            f"{place} is no folder", field=option, remedy="name a folder, or one that can be made"
        )
    try:
        check_place(
            place / "picture"
        )  # and not as access(2) has it: root may write in /proc, where nobody can make a file
    except OSError as error:
        raise translate_os_error(error, f"cannot write in {place}", field=option) from error


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


def _all_six() -> Iterator[tuple[str, Picture]]:
    for number, picture in enumerate(site_factor_figures(), start=1):
        yield f"site-factor-{number}", picture


def _chosen(settings: SiteFactorSettings) -> Picture:
    return _contours(
        "The rule of the settings",
        (settings.rule, rule_of(settings.rule, settings.credit, settings.expiry)),
    )


def site_factor_figures() -> Iterator[Picture]:
    """In the order of HADM's description. It tells the numbers of the last one; those of the others are chosen to show what it says of
    them."""
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
