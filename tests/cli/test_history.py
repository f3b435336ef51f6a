"""`share record` keeps how everybody stands, once a day; `report fairshare` shows it as a table and as a figure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fairbank.compose import Works
from fairbank.compose.history import figures_of
from fairbank.compose.settings import open_books
from fairbank.compose.setup import init
from fairbank.compose.standing import Shares
from fairbank.report.share_tree import Rule
from fairbank.report.shares import ShareRow
from fairbank.service.clock import SystemClock
from fairbank.values.time import DAY, Instant
from fairbank.values.trouble import Malformed
from tests.cli.conftest import Run, Said
from tests.support.standing import printed

RULE = Rule(fair_tree=True, half_life=7 * DAY)
LONG = 40_000
"""Days: what was recorded of the lab cluster is however long ago."""


@pytest.fixture
def ask(fairbank: Run, surroundings: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A bank of one's own, and a folder with what a Slurm said."""
    init(str(tmp_path / "bank"), None)
    surroundings.setenv("FAIRBANK_CONFIG", str(tmp_path / "bank" / "fairbank.toml"))
    said(tmp_path, "fair-tree")

    def call(*words: object) -> Said:
        return fairbank(*words, works=Works())

    return call


def said(folder: Path, rule: str, now: str | None = None) -> None:
    (folder / "sshare.txt").write_text(printed(rule, "sshare-everything"))
    config = printed(rule, "config")
    (folder / "config.txt").write_text(config if now is None else re.sub(r"2026-11-2\dT", f"{now}T", config, count=1))


def test_once_a_day_however_often_it_is_called(ask: Run, tmp_path: Path) -> None:
    first = ask("share", "record", "--from", tmp_path)
    assert (first.code, first.out, first.err) == (0, "lab, 2026-11-21: 21 associations\n", "")
    again = ask("share", "record", "--from", tmp_path)
    assert (again.code, again.out, again.err) == (0, "", "lab, 2026-11-21: recorded before\n")
    said(tmp_path, "fair-tree", "2026-11-22")
    assert ask("share", "record", "--from", tmp_path).out == "lab, 2026-11-22: 21 associations\n"


def test_what_was_recorded_as_a_table(ask: Run, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    table = ask("report", "fairshare", "--days", LONG, "-A", "wg_bio,lasers", "--users")
    assert table.code == 0
    assert [line.split() for line in table.out.splitlines()] == [
        ["DAY", "CLUSTER", "ACCOUNT", "USER", "SHARES", "NORM", "USAGE", "LEVEL", "FACTOR"],
        ["2026-11-21", "lab", "lasers", "30", "0.789", "0.541", "1.46"],
        ["2026-11-21", "lab", "lasers", "carol", "parent", "0.789", "0.151", "0.667"],
        ["2026-11-21", "lab", "wg_bio", "30", "0.186", "0.000", "8e+05"],
        ["2026-11-21", "lab", "wg_bio", "bob", "10", "0.333", "1.000", "0.33", "0.167"],
        ["2026-11-21", "lab", "wg_bio", "carol", "20", "0.667", "0.000", "unused", "0.250"],
    ]
    found = json.loads(ask("report", "fairshare", "--days", LONG, "--json").out)
    assert found["schema"] == "fairbank.fairshare/1"
    assert {row["account"] for row in found["data"]} >= {"root", "physics", "wg_bio"}
    assert all(row["user"] is None for row in found["data"])
    assert ask("report", "fairshare", "--days", LONG, "--cluster", "elsewhere").out == ""


def test_what_was_recorded_as_a_figure(ask: Run, tmp_path: Path) -> None:
    for day in ("2026-11-19", "2026-11-20", "2026-11-22"):
        said(tmp_path, "fair-tree", day)
        ask("share", "record", "--from", tmp_path)
    drawn = ask("report", "fairshare", tmp_path / "new" / "figures", "--days", LONG, "-A", "wg_bio,physics")
    file = tmp_path / "new" / "figures" / "fairshare-lab.svg"
    assert str(file) in drawn.err.replace("\n", "")
    told = ["".join(each.itertext()) for each in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert {"wg_bio", "physics", "2026-11-19", "2026-11-22", "level (1: its share)", "part of usage"} <= set(told)


def test_and_as_pixels(ask: Run, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    assert ask("report", "fairshare", tmp_path / "figures", "--png", "--days", LONG, "-A", "wg_bio").code == 0
    assert [each.name for each in (tmp_path / "figures").iterdir()] == ["fairshare-lab.png"]


def test_nothing_was_recorded(ask: Run) -> None:
    found = ask("report", "fairshare")
    assert (found.code, found.out) == (0, "")
    assert "fairbank share record" in found.err


def test_a_folder_that_cannot_be_had(ask: Run, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    (tmp_path / "file").write_text("")
    refused = ask("report", "fairshare", tmp_path / "file", "--days", LONG)
    assert (refused.code, "cannot write" in refused.err) == (4, True)


def test_a_days_figures_under_the_classic_rule_have_levels_too(ask: Run, tmp_path: Path) -> None:
    said(tmp_path, "classic")
    ask("share", "record", "--from", tmp_path)
    found = json.loads(ask("report", "fairshare", "--days", LONG, "--json", "--users").out)["data"]
    assert any(row["level"] not in (None, "unused") for row in found)
    assert any(row["factor"] is not None for row in found)


def test_they_live_in_the_banks_own_store(ask: Run, tmp_path: Path) -> None:
    ask("share", "record", "--from", tmp_path)
    assert ask("backup", "create", tmp_path / "x.fbk").code == 0
    store = open_books(None)
    try:
        with store.reading() as reader:
            assert len(list(reader.scan_share_figures())) == 21
    finally:
        store.close()


@pytest.mark.parametrize(
    ("found", "field"),
    [
        (Shares(None, None, RULE, [ShareRow("root")], [], []), "ClusterName"),
        (Shares("lab", None, RULE, [], [], []), "sshare"),
        (Shares("lab", None, RULE, [ShareRow("root", usage=float("nan"))], [], []), "RawUsage"),
        (Shares("lab", None, RULE, [ShareRow("root"), ShareRow("root")], [], []), "sshare"),
        (Shares("lab", None, RULE, [ShareRow("a", "ada", factor=float("inf"))], [], []), "FairShare"),
    ],
)
def test_what_would_be_no_history_is_refused(found: Shares, field: str) -> None:
    with pytest.raises(Malformed) as refused:
        figures_of(found, SystemClock().now())
    assert refused.value.field == field


def test_what_is_infinite_is_kept_as_unused() -> None:
    unused = ShareRow("a", shares=1, norm_shares=1.0, effective=0.0, level=float("inf"))
    (row,) = figures_of(Shares("lab", None, RULE, [unused], [], []), Instant(DAY))
    assert (row.day, row.level, row.effective) == (1, None, 0.0)
