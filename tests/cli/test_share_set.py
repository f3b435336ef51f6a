"""Tests of `share --set`: changed shares are computed, and options without effect are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, Run
from tests.support.fairshare_recordings import printed


@pytest.fixture
def run(fairbank: Run, tmp_path: Path) -> Run:
    """Run a command on the recorded output of a Slurm with Fair Tree."""
    (tmp_path / "sshare.txt").write_text(printed("fair-tree", "sshare-everything"))
    (tmp_path / "config.txt").write_text(printed("fair-tree", "config"))

    def call(*words: object) -> CommandResult:
        return fairbank(*words, "--from", tmp_path)

    return call


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("share", "--tree", "-o", "account"), "-o"),
        (("share", "--tree", "-l"), "-l"),
        (("share", "--tree", "-m"), "-m"),
        (("share", "--json", "-n"), "-n"),
        (("share", "--forecast", "-P"), "--forecast"),
        (("share", "--forecast", "-p"), "--forecast"),
        (("share", "--forecast", "--tree"), "--forecast"),
        (("share", "--forecast", "-o", "account"), "-o"),
        (("share", "--forecast", "--json", "-n"), "-n"),
        (("prio", "--explain", "-l"), "-l"),
        (("prio", "--explain", "-o", "%i"), "-o"),
        (("prio", "--check", "-n"), "-n"),
        (("prio", "--json", "--noheader"), "--noheader"),
    ],
)
def test_option_without_effect_is_refused(
    fairbank: Run, words: tuple[str, ...], field: str
) -> None:
    result = fairbank(*words)
    # Before a command of Slurm runs, which is not even there.
    assert (result.code, "data" in result.out) == (2, False)
    assert f"field: {field}" in result.err
    assert "try: " in result.err


def test_set_computes_with_changed_shares(run: Run) -> None:
    result = run(
        "share",
        "-n",
        "-A",
        "wg_chem,biology",
        "--set",
        "wg_chem=161,biology=80",
        "-o",
        "account,rawshares,normshares,levelfs%8",
        "-a",
    )
    assert result.out == (
        "biology                      80    0.209424 0.209424 \n"
        " biology                      1    1.000000 1.000000 \n"
        "wg_chem                     161    0.421466 3.03e+10 \n"
        " wg_chem                 parent    0.421466          \n"
    )
    assert result.err == "Computed from these shares and what users used; Slurm has others.\n"
    assert run("share", "--set", "nonsense=1").code == 3
    for wrong in (
        "wg_chem",
        "wg_chem=",
        "wg_chem=-1",
        "wg_chem=2147483647",
        "=4",
        "=parent",
        "wg_chem=1,wg_chem=2",
    ):
        assert run("share", "--set", wrong).code == 2


def test_set_parent_merges_users_into_the_parent_account(run: Run) -> None:
    """Its users then share with the accounts next to it: 20 of 161 shares are gone."""
    result = run(
        "share",
        "-P",
        "-n",
        "-A",
        "wg_chem,wg_bio",
        "--set",
        "wg_chem=parent",
        "-o",
        "account,rawshares,normshares",
        "-u",
        "nobody",
    )
    assert result.out.splitlines() == ["wg_bio|30|0.212766", "wg_chem|parent|0.000000"]


def test_forecast_uses_the_changed_shares(run: Run) -> None:
    words = ("share", "-a", "-A", "lasers")
    assert run(*words, "--forecast").out.splitlines()[1].split() == ["lasers", "1.46", "now", "now"]
    then = run(*words, "--forecast", "--set", "lasers=4")
    assert then.code == 0
    assert then.out.splitlines()[1].split() == ["lasers", "0.62", "4.8", "days", "8.5", "days"]
    assert "lasers is back" not in run(*words, "--tree").err
    assert (
        "lasers is back at level 1 in 4.8 days to 8.5 days"
        in run(*words, "--tree", "--set", "lasers=4").err
    )
