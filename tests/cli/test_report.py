"""`fairbank report`: the figures of the site factor, and those in the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fairbank.report.plots.site_factor import site_factor_figures
from fairbank.report.plots.svg import svg
from tests.cli.conftest import Run

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_six_figures_are_written_and_told(fairbank: Run, tmp_path: Path) -> None:
    said = fairbank("report", "sitefactor", str(tmp_path / "new" / "folder"), "--json")
    assert said.code == 0, said
    told = json.loads(said.out)["data"]
    assert [Path(each["file"]).name for each in told] == [
        f"site-factor-{number}.svg" for number in range(1, 7)
    ]
    for each in told:
        root = ElementTree.parse(each["file"]).getroot()
        assert root[0].text == each["about"]


def test_where_svg_is_not_taken_png_is(fairbank: Run, tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text('[site_factor]\nrule = "linear"\n')
    said = fairbank("report", "sitefactor", str(tmp_path), "--png", "--agent-config", str(settings))
    assert said.code == 0, said
    assert [each.name for each in tmp_path.iterdir() if each != settings] == ["site-factor.png"]
    assert (tmp_path / "site-factor.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_rule_of_an_agent_is_drawn(fairbank: Run, tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text(
        '[site_factor]\nrule = "sigmoid"\ncredit.steepness = 5\nexpiry.midpoint = 0.75\n'
    )
    said = fairbank("report", "sitefactor", str(tmp_path), "--agent-config", str(settings))
    assert said.code == 0, said
    assert [each.name for each in tmp_path.glob("*.svg")] == ["site-factor.svg"]
    assert ">sigmoid<" in (tmp_path / "site-factor.svg").read_text()


def test_what_cannot_be_written_or_read_is_told(fairbank: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = fairbank("report", "sitefactor", str(tmp_path / "file"))
    assert said.code == 2
    assert "cannot write" in said.err
    assert "FOLDER" in said.err
    said = fairbank(
        "report", "sitefactor", str(tmp_path), "--agent-config", str(tmp_path / "none.toml")
    )
    assert said.code == 3
    assert "none.toml" in said.err
    assert "--agent-config" in said.err


@pytest.mark.parametrize("number", range(1, 7))
def test_the_figures_of_the_documentation_are_those_of_the_functions(
    checkout: Path, number: int
) -> None:
    """`fairbank report sitefactor docs/reference/figures` draws them again. Another machine's last bits may move a point by a tenth."""
    picture = svg(list(site_factor_figures())[number - 1])
    kept = (checkout / "docs" / "reference" / "figures" / f"site-factor-{number}.svg").read_text()
    assert NUMBER.sub("#", kept) == NUMBER.sub("#", picture)
    assert [float(each) for each in NUMBER.findall(kept)] == pytest.approx(
        [float(each) for each in NUMBER.findall(picture)], abs=0.11
    )


def test_all_of_them_are_shown(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "site-factor.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\(figures/(.*?)\)", page)
    assert shown == [f"site-factor-{number}.svg" for number in range(1, 7)]
