"""Tests of `share --forecast` with the output of a real Slurm."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.regimes import RankingRule, level_of
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.fairshare_view.shares import recovery_times
from tests.cli.conftest import CommandResult, Run
from tests.cli.output_values import fold
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
        "wg_bio          768186      now     now",
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


def test_levels_after_a_run_of_a_named_price(run: Run) -> None:
    """4.85 SU are 17,460 billing-seconds, as much as bob used: carol then has half of the usage of
    wg_bio with two thirds of its shares. An account on its parent's shares is no level of its own:
    lasers has 52 of the 97 of physics, and 60 more are 0.789 x 157 / 112.
    """
    result = run("-A", "wg_bio", "-a", "--run", "4.85")
    assert (result.code, result.out.splitlines()) == (
        0,
        [
            "ACCOUNT  USER    LEVEL   LEAST    MOST",
            "wg_bio          768186  384131  384131",
            "wg_bio   bob      0.33    0.33    0.33",
            "wg_bio   carol  unused    1.33    1.33",
        ],
    )
    assert result.err.startswith(
        "The level of each after a run of 4.85 SU, all of which counts at once."
    )
    (_, line) = run("-A", "lasers", "--run", "1m").out.splitlines()
    assert line.split() == ["lasers", "1.46", "1.11", "1.11"]


def test_levels_after_a_pause(run: Run) -> None:
    """After a half-life bob's part is still all of it, and lasers has 26 of 71, or of 97: 0.789 x
    71 / 26, and 0.789 x 97 / 26.
    """
    lines = run("-A", "lasers,wg_bio", "-u", "bob", "--pause", "1week").out.splitlines()
    assert [line.split()[-3:] for line in lines[1:]] == [
        ["1.46", "2.16", "2.94"],
        ["768186", ">999999", ">999999"],
        ["0.33", "0.33", "0.33"],
    ]
    result = run("-A", "wg_bio", "--pause", "3weeks", "--run", "2")
    assert result.err.startswith("The level of each after a pause of 21 days, then a run of 2 SU")
    # After a reset nothing counts but the run, and what the others use until then is unknown.
    lines = run("-A", "wg_bio", "--pause", "2weeks", reset="MONTHLY").out.splitlines()
    assert lines[1].split()[-2:] == ["unused", "unused"]
    lines = run("-A", "wg_bio", "--pause", "2weeks", "--run", "2", reset="MONTHLY").out.splitlines()
    assert lines[1].split()[-2:] == ["0.19", "unknown"]
    data = json.loads(run("-A", "wg_bio", "--pause", "2weeks", "--json", reset="MONTHLY").out)
    assert {row["most_level"] for row in data["data"]} == {"inf"}


def test_classic_score_after_a_pause_is_a_factor(run: Run) -> None:
    """bob of wg_bio has all but nothing of the usage: 48,203 of 71,988,911,818. With 10,000,000 SU
    he has a third of it: 36 / 107.99, over a share of 0.0621, is 2 ** -5.37.
    """
    lines = run("-A", "wg_bio", "-u", "bob", "--run", "10000000", rule="classic").out.splitlines()
    assert lines[0].split()[-2:] == ["LEAST-FACTOR", "MOST-FACTOR"]
    assert lines[2].split()[-4:] == ["0.19", "0.19", "0.024", "0.024"]
    (row,) = json.loads(
        run("-U", "-A", "wg_bio", "-u", "bob", "--run", "10000000", "--json", rule="classic").out
    )["data"]
    assert row["least_level"] == row["most_level"] == pytest.approx(0.1863, abs=1e-4)
    assert row["least_factor"] == pytest.approx(2 ** -(1 / 0.1863), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (("--pause", text), f"{text!r} is not a length of time; write for example 3weeks")
            for text in ("", "0", "3", "nan", "-3weeks")
        ),
        *(
            (
                ("--pause", text),
                f"{text!r} has an unknown unit or is too long; write for example 2weeks, 10days or"
                " 6months",
            )
            for text in ("3fortnights", "999999years")
        ),
        (
            ("--run", "90M"),
            "'90M' is ambiguous: M may mean minutes or millions field: --run try: write 90m for"
            " SU-minutes, or 90000k for millions of SU",
        ),
        *(
            (
                ("--run", text),
                f"{text} SU is too small an amount field: --run try: an amount is at least one"
                " SU-minute: 1m",
            )
            for text in ("0", "-4")
        ),
        *(
            (
                ("--run", text),
                f"{text!r} is not an amount of SU field: --run try: write SU (hours) such as 100 or"
                " 12.5, or 90m, 20k",
            )
            for text in ("", "nan", "1e400")
        ),
        (
            ("--pause", "3M"),
            "'3M' is ambiguous: M may mean minutes or months field: --pause try: write 3minutes or"
            " 3months",
        ),
        (
            ("--run", "9" * 30),
            "SU-minutes is more than the bank counts in one entry field: --run try: at most"
            " 1000000000000000m, which is 16,666,666,666,666.67 SU",
        ),
    ],
)
def test_unusable_pause_and_run_are_refused(run: Run, words: tuple[str, str], message: str) -> None:
    result = run(*words)
    assert result.code == 2
    assert message in fold(result.err)


def test_pause_and_run_need_a_forecast(fairbank: Run) -> None:
    result = fairbank("share", "--pause", "3weeks")
    assert result.code == 2
    assert "it changes nothing without --forecast" in result.err


@pytest.mark.parametrize("rule", ["fair-tree", "classic"])
def test_json_has_times_of_associations_below_their_level(run: Run, rule: str) -> None:
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
