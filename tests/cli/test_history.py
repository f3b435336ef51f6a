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
from fairbank.priority.fairshare.regimes import RankingRule
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.fairshare_view.shares import daily_records
from tests.cli.conftest import Run
from tests.support.fairshare_recordings import printed

RULE = RankingRule(fair_tree=True, half_life=7 * DAY)
ALL_DAYS = 40_000
"""Number of days that includes every recorded day."""

SHOWN = "DAY,ACCOUNT,USER,SHARES,NORM,USAGE,LEVEL,FACTOR"

WriteOutput = Callable[..., None]


@pytest.fixture
def cluster_name(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Name a cluster for this test only."""
    return re.sub("[^a-z]", "_", request.node.name)[-60:].lstrip("_")


@pytest.fixture
def write_output(tmp_path: Path, cluster_name: str) -> WriteOutput:
    """Write the output of that cluster's Slurm to a directory."""

    def write(rule: str = "fair-tree", day: str = "2026-11-21") -> None:
        (tmp_path / "sshare.txt").write_text(printed(rule, "sshare-everything"))
        config = re.sub(r"2026-11-2\dT", f"{day}T", printed(rule, "config"), count=1)
        (tmp_path / "config.txt").write_text(
            re.sub(r"(?m)^(ClusterName +=).*", rf"\1 {cluster_name}", config)
        )

    write()
    return write


@pytest.fixture
def run(changing: Run, write_output: WriteOutput) -> Run:
    """Run commands on a bank that may change and on the recorded output of Slurm."""

    return changing


def test_record_is_stored_once_a_day(
    run: Run, write_output: WriteOutput, cluster_name: str, tmp_path: Path
) -> None:
    first = run("share", "record", "--from", tmp_path)
    assert (first.code, first.out, first.err) == (
        0,
        f"{cluster_name}, 2026-11-21: 21 associations\nbank fairbank\n",
        "",
    )
    again = run("share", "record", "--from", tmp_path)
    assert (again.code, again.out, again.err) == (
        0,
        "",
        f"{cluster_name}, 2026-11-21: recorded before\nbank fairbank\n",
    )
    write_output(day="2026-11-20")
    assert (
        run("share", "record", "--from", tmp_path).out
        == f"{cluster_name}, 2026-11-20: 21 associations\nbank fairbank\n"
    )


def test_record_of_a_cluster_without_a_name_is_refused(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.txt"
    config.write_text(re.sub(r"(?m)^(ClusterName +=).*", r"\1 ", config.read_text()))
    result = run("share", "record", "--from", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "Slurm's settings name no cluster" in " ".join(result.err.split())


def test_dry_run_reports_the_number_of_records(run: Run, cluster_name: str, tmp_path: Path) -> None:
    for _ in range(2):
        dry = run("share", "record", "--dry-run", "--from", tmp_path)
        assert (dry.code, dry.out) == (0, "")
        assert "21 associations would be" in " ".join(dry.err.split())
    run("share", "record", "--from", tmp_path)
    assert "0 associations would be" in " ".join(
        run("share", "record", "--dry-run", "--from", tmp_path).err.split()
    )


def test_records_as_a_table(run: Run, cluster_name: str, tmp_path: Path) -> None:
    run("share", "record", "--from", tmp_path)
    table = run(
        "report",
        "fairshare",
        "--days",
        ALL_DAYS,
        "--cluster",
        cluster_name,
        "-A",
        "wg_bio,lasers",
        "--users",
        "-o",
        SHOWN,
    )
    assert table.code == 0, table
    heading, rows = table.out.split("\n\n")
    assert "   bank fairbank" in heading
    assert [line.split() for line in rows.splitlines()] == [
        ["DAY", "ACCOUNT", "USER", "SHARES", "NORM", "USAGE", "LEVEL", "FACTOR"],
        ["2026-11-21", "lasers", "30", "0.789", "0.541", "1.46"],
        ["2026-11-21", "lasers", "carol", "parent", "0.789", "0.151", "0.667"],
        ["2026-11-21", "wg_bio", "30", "0.186", "0.000", "768186"],
        ["2026-11-21", "wg_bio", "bob", "10", "0.333", "1.000", "0.33", "0.167"],
        ["2026-11-21", "wg_bio", "carol", "20", "0.667", "0.000", "unused", "0.250"],
    ]
    data = json.loads(
        run("report", "fairshare", "--days", ALL_DAYS, "--cluster", cluster_name, "--json").out
    )
    assert data["schema"] == "fairbank.share-day/1"
    assert {row["account"] for row in data["data"]} >= {"root", "physics", "wg_bio"}
    assert all(row["user"] is None for row in data["data"])
    assert run("report", "fairshare", "--days", ALL_DAYS, "--cluster", "elsewhere").out == ""


def test_records_as_a_figure(
    run: Run, write_output: WriteOutput, cluster_name: str, tmp_path: Path
) -> None:
    for day in ("2026-11-18", "2026-11-19", "2026-11-21"):
        write_output(day=day)
        run("share", "record", "--from", tmp_path)
    drawn = run(
        "report",
        "fairshare",
        tmp_path / "new" / "figures",
        "--days",
        ALL_DAYS,
        "--cluster",
        cluster_name,
        "-A",
        "wg_bio,physics",
    )
    file = tmp_path / "new" / "figures" / f"fairshare-{cluster_name}.svg"
    assert str(file) in drawn.err.replace("\n", "")
    texts = [
        "".join(element.itertext())
        for element in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")
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


def test_records_as_a_png(run: Run, cluster_name: str, tmp_path: Path) -> None:
    run("share", "record", "--from", tmp_path)
    assert (
        run(
            "report",
            "fairshare",
            tmp_path / "figures",
            "--png",
            "--days",
            ALL_DAYS,
            "--cluster",
            cluster_name,
            "-A",
            "wg_bio",
        ).code
        == 0
    )
    assert [path.name for path in (tmp_path / "figures").iterdir()] == [
        f"fairshare-{cluster_name}.png"
    ]


def test_table_does_not_need_matplotlib(
    run: Run, cluster_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("share", "record", "--from", tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ("report", "fairshare", "--days", ALL_DAYS, "--cluster", cluster_name)
    result = run(*words, tmp_path / "figures")
    assert result.code == NO_ANSWER
    assert "pip install 'matplotlib>=3.10'" in " ".join(result.err.split())
    assert run(*words).code == 0


def test_empty_history_names_the_record_command(run: Run) -> None:
    result = run("report", "fairshare", "--days", 0, "--cluster", "nowhere")
    assert (result.code, result.out) == (0, "")
    assert "fairbank share record" in result.err


def test_history_of_an_unknown_name_is_refused(run: Run, tmp_path: Path) -> None:
    run("share", "record", "--from", tmp_path)
    for option in ("--cluster", "-A"):
        result = run("report", "fairshare", "--days", ALL_DAYS, option, "nowhere")
        assert (result.code, result.out) == (3, "")
        assert "'nowhere' that you may see" in result.err


def test_unwritable_figure_directory_is_reported(
    run: Run, cluster_name: str, tmp_path: Path
) -> None:
    run("share", "record", "--from", tmp_path)
    (tmp_path / "file").write_text("")
    refused = run(
        "report", "fairshare", tmp_path / "file", "--days", ALL_DAYS, "--cluster", cluster_name
    )
    assert (refused.code, "cannot write" in refused.err) == (2, True)


def test_classic_records_have_levels(
    run: Run, write_output: WriteOutput, cluster_name: str, tmp_path: Path
) -> None:
    write_output("classic")
    run("share", "record", "--from", tmp_path)
    data = json.loads(
        run(
            "report",
            "fairshare",
            "--days",
            ALL_DAYS,
            "--cluster",
            cluster_name,
            "--json",
            "--users",
        ).out
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
def test_invalid_record_is_refused(cluster: str | None, rows: list[ShareRow], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        daily_records(cluster, rows, RULE)
    assert refused.value.field == field


def test_infinite_level_is_stored_as_unused() -> None:
    unused = ShareRow("a", shares=1, norm_shares=1.0, effective=0.0, level=float("inf"))
    (row,) = daily_records("lab", [unused], RULE)
    assert (row["level"], row["effective"]) == (None, 0.0)
