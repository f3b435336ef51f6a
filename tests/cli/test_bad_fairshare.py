"""Tests of `share` and `prio` with impossible rows: the row is reported with its place, and no
figure is computed from the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandResult, Run
from tests.cli.output_values import fold
from tests.support.fairshare_recordings import printed

Damage = Callable[[list[str]], list[str]]
HALF_LIFE = "PriorityDecayHalfLife   = 7-00:00:00"
TRES = "PriorityWeightTRES      = CPU=1000"


def replace_cell(line: int, column: int, text: str) -> Damage:
    """Replace one cell of a line; lines count from 1, columns from 0."""

    def damage(lines: list[str]) -> list[str]:
        cells = lines[line - 1].split("|")
        cells[column] = text
        return [*lines[: line - 1], "|".join(cells), *lines[line:]]

    return damage


@pytest.fixture
def run(fairbank: Run, tmp_path: Path) -> Run:
    """Run a command on the recorded output of Slurm, with `damage` done to its fair share, `sprio`
    to its priorities, or `config` changed from one text to another.
    """

    def call(
        *words: object,
        damage: Damage = list,
        sprio: Damage = list,
        config: tuple[str, str] = ("", ""),
    ) -> CommandResult:
        for name, changed in (("sshare", damage), ("sprio", sprio)):
            lines = printed("fair-tree", f"{name}-everything").splitlines()
            (tmp_path / f"{name}.txt").write_text("".join(f"{line}\n" for line in changed(lines)))
        (tmp_path / "config.txt").write_text(printed("fair-tree", "config").replace(*config))
        return fairbank(*words, "--from", tmp_path)

    return call


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_cell(3, 4, "-5"), "line 3, RawShares: '-5' is not a whole number"),
        (
            replace_cell(3, 4, "99999999999"),
            "line 3, RawShares: '99999999999' is not a whole number",
        ),
        (replace_cell(3, 5, "nan"), "line 3, NormShares: 'nan' is not a figure"),
        (replace_cell(3, 5, "1.5"), "line 3, NormShares: '1.5' is not a figure from 0 to 1"),
        (replace_cell(3, 7, "1.5"), "line 3, NormUsage: '1.5' is not a figure from 0 to 1"),
        (replace_cell(3, 8, "-3"), "line 3, EffectvUsage: '-3' is not a figure from 0"),
        (replace_cell(3, 8, "inf"), "line 3, EffectvUsage: 'inf' is not a figure from 0"),
        (
            replace_cell(4, 9, "1.000001"),
            "line 4, FairShare: '1.000001' is not a figure from 0 to 1",
        ),
        (replace_cell(3, 10, "-1"), "line 3, LevelFS: '-1' is not a figure from 0"),
        (replace_cell(3, 6, "-1"), "line 3, RawUsage: '-1' is not a whole number"),
        (
            replace_cell(3, 0, "     biology"),
            "line 3, Account: 'biology' is not below another account",
        ),
        (
            replace_cell(4, 0, "  elsewhere"),
            "line 4, Account: a user of 'elsewhere' is not below that account",
        ),
        (lambda lines: [*lines, lines[2]], "line 22, Account: 'biology' is there twice"),
        (lambda lines: [*lines[:4], *lines[3:]], "line 5, User:"),
        (replace_cell(3, 1, "other"), "line 3, Cluster: 'other' is another cluster than 'lab'"),
        (lambda lines: [*lines, "garbage"], "line 22, Account: 1 cells instead of 15: 'garbage'"),
    ],
)
def test_impossible_row_is_reported_and_omitted(run: Run, damage: Damage, message: str) -> None:
    for form in ((), ("--tree",), ("--forecast",), ("--json",)):
        result = run("share", "-a", *form, damage=damage)
        assert result.code == 8
        assert f"! not read: sshare, {message}" in fold(result.err)
        assert "To see what Slurm has there: sshare -a -l -P" in fold(result.err)
    result = run("share", "-a", "--set", "physics=5", damage=damage)
    assert (result.code, result.out) == (2, ""), "nothing is computed from only some of the rows"
    assert "sacctmgr show associations" in result.err


def test_forecast_is_bounded_by_usage_of_siblings(run: Run) -> None:
    for form in ((), ("--tree",), ("--forecast",)):
        assert run("share", "-a", *form, damage=replace_cell(3, 8, "1.000004")).code == 0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_cell(1, 12, "7.5"), "f: 7.5 is not a figure from 0 to 1"),
        (replace_cell(1, 12, "-0.3333333"), "f: -0.3333333 is not a figure from 0 to 1"),
        (
            replace_cell(1, 12, "0.3333390"),
            "f: 0.333339 of PriorityWeightFairShare=100000 is not 33333, as column F says",
        ),
        (
            replace_cell(1, 11, "999"),
            "f: 0.3333333 of PriorityWeightFairShare=100000 is not 999, as column F says",
        ),
        (
            replace_cell(1, 11, "33334"),
            "f: 0.3333333 of PriorityWeightFairShare=100000 is not 33334, as column F says",
        ),
        (
            replace_cell(1, 20, "cpu=900,mem=20"),
            "t: 0.02 of cpu=1000 in PriorityWeightTRES is not 900, as column T says",
        ),
        (
            replace_cell(1, 21, "cpu=0.52,mem=0.01"),
            "t: 0.52 of cpu=1000 in PriorityWeightTRES is not 21, as column T says",
        ),
    ],
)
def test_contradictory_factors_are_reported_and_omitted(
    run: Run, damage: Damage, message: str
) -> None:
    for form in ((), ("-n",), ("-l",), ("--json",), ("--explain", "-u", "bob")):
        result = run("prio", *form, sprio=damage)
        assert result.code == 8
        assert f"! not read: sprio, line 1, {message}" in fold(result.err)
        assert "33631" not in result.out, "its priority is not shown without them"
    assert run("prio", "-j", "10", sprio=damage).out.count("\n") == 1, "only the header is left"


def test_duplicate_row_is_reported_and_shown_once(run: Run) -> None:
    for form in ((), ("-n",), ("-l",)):
        result = run("prio", *form, sprio=lambda lines: [*lines, lines[3]])
        assert result.code == 8
        assert "! not read: sprio, line 11, JOBID: job 12 is listed twice in partition gpu" in fold(
            result.err
        )
        assert result.out == run("prio", *form).out


def test_factor_without_normalisation_may_be_large(run: Run) -> None:
    raw = ("PriorityFlags           = MAX_TRES", "PriorityFlags           = NO_NORMAL_ALL")

    def large(lines: list[str]) -> list[str]:
        return replace_cell(1, 17, "40000")(replace_cell(1, 18, "40.0000000")(lines))

    assert run("prio", sprio=large, config=raw).code == 0
    assert run("prio", sprio=large).code == 8


def test_many_impossible_rows_are_counted(run: Run) -> None:
    result = run("share", "-a", damage=replace_cell(1, 5, "nan"))
    assert result.code == 2, "without the root no level is known"
    assert fold(result.err).count("! not read:") == 11
    assert "! not read: 11 further lines" in result.err


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [],
        lambda lines: ["garbage"],
        lambda lines: ["\udcff".encode("utf-8", "replace").decode()],
    ],
)
def test_empty_or_unreadable_output_is_an_error(run: Run, damage: Damage) -> None:
    for form in ((), ("--tree",), ("--json",)):
        result = run("share", *form, damage=damage)
        assert (result.code, "data" in result.out) == (2, False)
        assert "check what it prints: sshare -a" in result.err


@pytest.mark.parametrize(
    ("program", "config", "field"),
    [
        (
            "prio",
            ("PriorityWeightAge       = 1000", "PriorityWeightAge       = nan"),
            "PriorityWeightAge",
        ),
        (
            "prio",
            ("PriorityWeightQOS       = 1000", "PriorityWeightQOS       = -1"),
            "PriorityWeightQOS",
        ),
        ("prio", (TRES, "PriorityWeightTRES      = CPU=inf"), "PriorityWeightTRES"),
        ("share", (HALF_LIFE, "PriorityDecayHalfLife   = -7"), "PriorityDecayHalfLife"),
        ("share", ("PriorityUsageResetPeriod = NONE\n", ""), "PriorityUsageResetPeriod"),
        (
            "share",
            ("PriorityUsageResetPeriod = NONE", "PriorityUsageResetPeriod = OFTEN"),
            "PriorityUsageResetPeriod",
        ),
        (
            "share",
            ("FairShareDampeningFactor = 1", "FairShareDampeningFactor = 0"),
            "FairShareDampeningFactor",
        ),
        ("share", ("Configuration data as of", "Some time after"), "scontrol show config"),
    ],
)
def test_impossible_setting_is_named(
    run: Run, program: str, config: tuple[str, str], field: str
) -> None:
    result = run(program, config=config)
    assert (result.code, result.out) == (2, "")
    assert f"field: {field}" in result.err
    assert "try: " in result.err


def test_missing_setting_is_named_in_the_message(run: Run) -> None:
    result = run("share", config=(HALF_LIFE, ""))
    assert result.code == 2
    assert "PriorityDecayHalfLife is not there" in fold(result.err)


def test_usage_without_decay_is_reported(run: Run) -> None:
    result = run("share", "--tree", "-a", config=(HALF_LIFE, "PriorityDecayHalfLife   = 00:00:00"))
    assert result.code == 0
    assert "Usage never decays here (PriorityDecayHalfLife=0)" in fold(result.err)
