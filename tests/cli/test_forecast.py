"""Tests of `share --forecast` with the output of a real Slurm."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.fair_share import RankingRule, level_of
from fairbank.report.sshare import ShareRow
from fairbank.slurm.fairshare_view.shares import recovery_times
from tests.cli.conftest import CommandResult, Run
from tests.support.fairshare_recordings import printed, standings

DAY = 86_400
WEEK = {
    "fair-tree": RankingRule(fair_tree=True, half_life=7 * DAY),
    "classic": RankingRule(fair_tree=False, half_life=7 * DAY),
}


@pytest.fixture
def run(fairbank: Run, tmp_path: Path) -> Run:
    def call(*words: object, rule: str = "fair-tree", reset: str = "NONE") -> CommandResult:
        (tmp_path / "sshare.txt").write_text(printed(rule, "sshare-everything"))
        (tmp_path / "config.txt").write_text(
            printed(rule, "config").replace("ResetPeriod = NONE", f"ResetPeriod = {reset}")
        )
        return fairbank("share", "--forecast", "--from", tmp_path, *words)

    return call


def test_overused_account_recovers_only_if_others_use(run: Run) -> None:
    result = run("-A", "wg_bio", "-a")
    assert result.code == 0
    assert result.out.splitlines() == [
        "ACCOUNT  USER    LEVEL  SOONEST  LATEST",
        "wg_bio           8e+05      now     now",
        "wg_bio   bob      0.33    never   never",
        "wg_bio   carol  unused      now     now",
    ]
    assert result.err.startswith("When each is back at level 1, if it pauses.")


def test_usage_reset_brings_all_accounts_with_shares_back(run: Run) -> None:
    result = run("-A", "wg_bio", "-a", reset="MONTHLY")
    assert result.out.splitlines()[2].split() == [
        "wg_bio",
        "bob",
        "0.33",
        "9.2",
        "days",
        "9.2",
        "days",
    ]
    assert "All usage is reset in 9.2 days" in " ".join(result.err.split())


@pytest.mark.parametrize("rule", ["fair-tree", "classic"])
def test_json_output(run: Run, rule: str) -> None:
    data = json.loads(run("--json", "-a", rule=rule).out)
    assert data["schema"] == "fairbank.forecast/1"
    assert data["as_of"].startswith("2026-11-21T23:5")
    over = [row for row in data["data"] if row["soonest_seconds"]]
    assert bool(over) == (
        rule == "fair-tree"
    )  # under the classic rule dave, without a share, used nearly all
    assert all(
        row["level"] < 1 and 0 < row["soonest_seconds"] <= row["latest_seconds"] for row in over
    )


@pytest.mark.parametrize("rule", ["fair-tree", "classic"])
def test_every_association_with_its_own_level_has_a_forecast(rule: str) -> None:
    rows = standings(rule)
    forecasts = {recovery[:3]: recovery for recovery in recovery_times(rows, WEEK[rule])}
    for row in rows:
        recovery = forecasts.get((row.account, row.user, row.partition))
        level = level_of(row, WEEK[rule])
        expected = bool(row.user or row.parent) and (rule == "classic" or row.shares != ON_PARENT)
        assert (recovery is not None) == expected
        if recovery is not None and level is not None:
            assert recovery.level == level
            assert (recovery.latest == 0) == (level >= 1) or abs(level - 1) < 0.01


def test_levels_of_depth_oblivious_have_no_forecast() -> None:
    rows = standings("classic")
    below_root = {row.account for row in rows if row.parent == "root" and not row.user}
    recoveries = recovery_times(rows, WEEK["classic"]._replace(depth_oblivious=True))
    assert len(recoveries) == len(below_root) + 1
    assert all(
        (not recovery.user and recovery.account in below_root)
        or (recovery.user and recovery.account == "root")
        for recovery in recoveries
    )


def test_classic_forecast_counts_the_usage_of_the_account() -> None:
    """U2 of vector V1 has a quarter of all usage itself and is charged another 2.5 %."""
    rows = [
        ShareRow("root", norm_shares=1.0, effective=1.0, usage=100.0),
        ShareRow(
            "C",
            "U2",
            shares=1,
            norm_shares=0.05,
            usage=25.0,
            norm_usage=0.25,
            effective=0.275,
            factor=0.022097,
        ),
    ]
    (recovery,) = recovery_times(rows, WEEK["classic"])
    assert recovery.level == pytest.approx(0.05 / 0.275)
    assert recovery.latest == pytest.approx(
        math.log((0.05 * 75 - 2.5) / (25 * 0.95)) / math.log1p(-0.693 / (7 * DAY))
    )


def test_no_forecast_without_the_root_account() -> None:
    assert (
        recovery_times(
            [ShareRow("lost", "ada", shares=1, norm_shares=0.5, usage=50.0, effective=1.0)],
            WEEK["classic"],
        )
        == []
    )
