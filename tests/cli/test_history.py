"""Tests of `share record`, which stores the fair share once a day, and of `report fairshare`, which
shows it as a table and as a figure.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fairbank.cli.framework.exit_codes import NO_ANSWER
from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.report.fair_share import RankingRule
from fairbank.report.sshare import ShareRow
from fairbank.slurm.fairshare_view.shares import daily_records
from tests.cli.conftest import Run, Said
from tests.support.fairshare_recordings import printed

RULE = RankingRule(fair_tree=True, half_life=7 * DAY)
LONG = 40_000
"""Days: what was recorded of the lab cluster is however long ago."""

SHOWN = "DAY,ACCOUNT,USER,SHARES,NORM,USAGE,LEVEL,FACTOR"

Say = Callable[..., None]


@pytest.fixture
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Name a cluster for this test only."""
    return re.sub("[^a-z]", "_", request.node.name)[-60:].lstrip("_")


@pytest.fixture
def say(tmp_path: Path, lab: str) -> Say:
    """Write the output of that cluster's Slurm to a directory."""

    def slurm(rule: str = "fair-tree", day: str = "2026-11-21") -> None:
        (tmp_path / "sshare.txt").write_text(printed(rule, "sshare-everything"))
        config = re.sub(r"2026-11-2\dT", f"{day}T", printed(rule, "config"), count=1)
        (tmp_path / "config.txt").write_text(
            re.sub(r"(?m)^(ClusterName +=).*", rf"\1 {lab}", config)
        )

    slurm()
    return slurm


@pytest.fixture
def ask(changing: Run, say: Say) -> Run:
    """Run commands on a bank that may change and on the recorded output of Slurm."""

    def call(*words: object) -> Said:
        return changing(*words)

    return call


def test_once_a_day_however_often_it_is_called(
    ask: Run, say: Say, lab: str, tmp_path: Path
) -> None:
    first = ask("share", "record", "--from", tmp_path)
    assert (first.code, first.out, first.err) == (0, f"{lab}, 2026-11-21: 21 associations\n", "")
    again = ask("share", "record", "--from", tmp_path)
    assert (again.code, again.out, again.err) == (0, "", f"{lab}, 2026-11-21: recorded before\n")
    say(day="2026-11-20")
    assert ask("share", "record", "--from", tmp_path).out == f"{lab}, 2026-11-20: 21 associations\n"


def test_a_dry_run_says_what_would_be_recorded(ask: Run, lab: str, tmp_path: Path) -> None:
    for _ in range(2):
        dry = ask("share", "record", "--dry-run", "--from", tmp_path)
        assert (dry.code, dry.out) == (0, "")
        assert "21 associations would be" in " ".join(dry.err.split())
    ask("share", "record", "--from", tmp_path)
    assert "0 associations would be" in " ".join(
        ask("share", "record", "--dry-run", "--from", tmp_path).err.split()
    )


def test_what_was_recorded_as_a_table(ask: Run, lab: str, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    table = ask(
        "report",
        "fairshare",
        "--days",
        LONG,
        "--cluster",
        lab,
        "-A",
        "wg_bio,lasers",
        "--users",
        "-o",
        SHOWN,
    )
    assert table.code == 0, table
    assert [line.split() for line in table.out.splitlines()] == [
        ["DAY", "ACCOUNT", "USER", "SHARES", "NORM", "USAGE", "LEVEL", "FACTOR"],
        ["2026-11-21", "lasers", "30", "0.789", "0.541", "1.46"],
        ["2026-11-21", "lasers", "carol", "parent", "0.789", "0.151", "0.667"],
        ["2026-11-21", "wg_bio", "30", "0.186", "0.000", "8e+05"],
        ["2026-11-21", "wg_bio", "bob", "10", "0.333", "1.000", "0.33", "0.167"],
        ["2026-11-21", "wg_bio", "carol", "20", "0.667", "0.000", "unused", "0.250"],
    ]
    data = json.loads(ask("report", "fairshare", "--days", LONG, "--cluster", lab, "--json").out)
    assert data["schema"] == "fairbank.fairshare/1"
    assert {row["account"] for row in data["data"]} >= {"root", "physics", "wg_bio"}
    assert all(row["user"] is None for row in data["data"])
    assert ask("report", "fairshare", "--days", LONG, "--cluster", "elsewhere").out == ""


def test_what_was_recorded_as_a_figure(ask: Run, say: Say, lab: str, tmp_path: Path) -> None:
    for day in ("2026-11-18", "2026-11-19", "2026-11-21"):
        say(day=day)
        ask("share", "record", "--from", tmp_path)
    drawn = ask(
        "report",
        "fairshare",
        tmp_path / "new" / "figures",
        "--days",
        LONG,
        "--cluster",
        lab,
        "-A",
        "wg_bio,physics",
    )
    file = tmp_path / "new" / "figures" / f"fairshare-{lab}.svg"
    assert str(file) in drawn.err.replace("\n", "")
    texts = [
        "".join(each.itertext())
        for each in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {
        "wg_bio",
        "physics",
        "2026-11-18",
        "2026-11-21",
        "level (share / usage)",
        "part of usage (0 to 1)",
        "Source: what the bank recorded daily from 2026-11-18 to 2026-11-21",
    } <= set(texts)


def test_and_as_pixels(ask: Run, lab: str, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    assert (
        ask(
            "report",
            "fairshare",
            tmp_path / "figures",
            "--png",
            "--days",
            LONG,
            "--cluster",
            lab,
            "-A",
            "wg_bio",
        ).code
        == 0
    )
    assert [each.name for each in (tmp_path / "figures").iterdir()] == [f"fairshare-{lab}.png"]


def test_without_matplotlib_only_the_table_can_be_shown(
    ask: Run, lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("share", "record", "--from", tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("report", "fairshare", "--days", LONG, "--cluster", lab)
    result = ask(*words, tmp_path / "figures")
    assert result.code == NO_ANSWER
    assert "pip install 'fairbank[plots]'" in result.err
    assert ask(*words).code == 0


def test_nothing_was_recorded(ask: Run) -> None:
    result = ask("report", "fairshare", "--cluster", "nowhere")
    assert (result.code, result.out) == (0, "")
    assert "fairbank share record" in result.err


def test_a_folder_that_cannot_be_had(ask: Run, lab: str, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    (tmp_path / "file").write_text("")
    refused = ask("report", "fairshare", tmp_path / "file", "--days", LONG, "--cluster", lab)
    assert (refused.code, "cannot write" in refused.err) == (2, True)


def test_a_days_figures_under_the_classic_rule_have_levels_too(
    ask: Run, say: Say, lab: str, tmp_path: Path
) -> None:
    say("classic")
    ask("share", "record", "--from", tmp_path)
    data = json.loads(
        ask("report", "fairshare", "--days", LONG, "--cluster", lab, "--json", "--users").out
    )["data"]
    assert any(row["level"] not in (None, "unused") for row in data)
    assert any(row["factor"] is not None for row in data)


@pytest.mark.parametrize(
    ("cluster", "rows", "field"),
    [
        (None, [ShareRow("root")], "ClusterName"),
        ("lab", [], "sshare"),
        ("lab", [ShareRow("root", usage=float("nan"))], "RawUsage"),
        ("lab", [ShareRow("root"), ShareRow("root")], "sshare"),
        ("lab", [ShareRow("a", "ada", factor=float("inf"))], "FairShare"),
    ],
)
def test_what_would_be_no_history_is_refused(
    cluster: str | None, rows: list[ShareRow], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        daily_records(cluster, rows, RULE)
    assert refused.value.field == field


def test_what_is_infinite_is_kept_as_unused() -> None:
    unused = ShareRow("a", shares=1, norm_shares=1.0, effective=0.0, level=float("inf"))
    (row,) = daily_records("lab", [unused], RULE)
    assert (row["level"], row["effective"]) == (None, 0.0)
