"""Tests of `fairbank report`: the figures of the site factor, and those in the documentation."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fairbank.cli.framework.exit_codes import NO_ANSWER
from fairbank.report.plots.canvas import render
from fairbank.report.plots.figures import ContourFigure, LineFigure
from fairbank.report.plots.site_factor import site_factor_figures
from tests.cli.conftest import Run
from tests.support.plots import checked

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
IDENTIFIER = re.compile(r"\b[a-z][0-9a-f]{10}\b")  # identifier derived from a hash
COMMAND = "fairbank report sitefactor docs/reference/figures"


def test_six_figures_are_written_and_reported(fairbank: Run, tmp_path: Path) -> None:
    result = fairbank("report", "sitefactor", str(tmp_path / "new" / "folder"), "--json")
    assert result.code == 0, result
    data = json.loads(result.out)["data"]
    assert [Path(row["file"]).name for row in data] == [
        f"site-factor-{number}.svg" for number in range(1, 7)
    ]
    for row in data:
        root = ElementTree.parse(row["file"]).getroot()
        assert root[0].text == row["about"]
        assert "Command: fairbank report sitefactor" in "".join(root.itertext())


def test_png_option_writes_png(fairbank: Run, tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text('[site_factor]\nrule = "linear"\n')
    result = fairbank(
        "report", "sitefactor", str(tmp_path), "--png", "--agent-config", str(settings)
    )
    assert result.code == 0, result
    assert [path.name for path in tmp_path.iterdir() if path != settings] == ["site-factor.png"]
    assert (tmp_path / "site-factor.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_rule_of_the_agent_settings_is_drawn(fairbank: Run, tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text(
        '[site_factor]\nrule = "sigmoid"\ncredit.steepness = 5\nexpiry.midpoint = 0.75\n'
    )
    result = fairbank("report", "sitefactor", str(tmp_path), "--agent-config", str(settings))
    assert result.code == 0, result
    assert [path.name for path in tmp_path.glob("*.svg")] == ["site-factor.svg"]
    assert ">sigmoid<" in (tmp_path / "site-factor.svg").read_text()


def test_unreadable_or_unwritable_file_is_reported(fairbank: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = fairbank("report", "sitefactor", str(tmp_path / "file"))
    assert result.code == 2
    assert "cannot write" in result.err
    assert "DIRECTORY" in result.err
    result = fairbank(
        "report", "sitefactor", str(tmp_path), "--agent-config", str(tmp_path / "none.toml")
    )
    assert result.code == 3
    assert "none.toml" in result.err
    assert "--agent-config" in result.err


@pytest.mark.parametrize("number", range(1, 7))
def test_documented_figures_are_up_to_date(checkout: Path, number: int) -> None:
    """`COMMAND` draws them again. Another machine's rounding may move a point a little."""
    drawn = render(list(site_factor_figures(COMMAND))[number - 1], "svg").decode()
    documented = (
        checkout / "docs" / "reference" / "figures" / f"site-factor-{number}.svg"
    ).read_text()
    drawn, documented = IDENTIFIER.sub("id", drawn), IDENTIFIER.sub("id", documented)
    assert NUMBER.sub("#", documented) == NUMBER.sub("#", drawn)
    assert [float(number) for number in NUMBER.findall(documented)] == pytest.approx(
        [float(number) for number in NUMBER.findall(drawn)], abs=0.01
    )


@pytest.mark.parametrize("number", range(1, 7))
def test_site_factor_figures_have_labels(number: int) -> None:
    figure = list(site_factor_figures(COMMAND))[number - 1]
    texts = checked(figure)
    assert [label for label in texts.labels if "(0 to 1)" not in label] == []
    assert len(texts.labels) >= 2
    if isinstance(figure, LineFigure):
        names = [series.name for series in figure.panels[0].series]
        assert texts.legend == names
        assert texts.labels[0].startswith("x: fraction of credit left, or closeness of the end")
        ends = [(series.points[0], series.points[-1]) for series in figure.panels[0].series]
        assert ends == [((0, 0), (1, 1))] * len(names)
    else:
        assert isinstance(figure, ContourFigure)
        assert texts.labels[-1] == "site factor (0 to 1)"
        assert [(contour.grid[0][0], contour.grid[-1][-1]) for contour in figure.contours] == [
            (0, 1) for _ in figure.contours
        ]


def test_missing_matplotlib_is_reported_with_the_install_command(
    fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = fairbank("report", "sitefactor", str(tmp_path / "figures"))
    assert result.code == NO_ANSWER
    assert "figures need matplotlib, which is not installed here" in result.err
    assert "pip install 'matplotlib>=3.10'" in " ".join(result.err.split())
    assert not (tmp_path / "figures").exists()


def test_documentation_shows_all_figures(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "site-factor.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\(figures/(.*?)\)", page)
    assert shown == [f"site-factor-{number}.svg" for number in range(1, 7)]
