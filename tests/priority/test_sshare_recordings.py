"""Fair share of random trees of a real Slurm 22.05, computed from shares and usage of users: every
figure as its sshare printed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest

from fairbank.priority.fairshare.regimes import RankingRule
from fairbank.report.slurm.layout import SlurmColumn
from fairbank.report.slurm.sshare import ShareRow, lines, parse_fields
from fairbank.slurm.fairshare_view.shares import compute_shares
from fairbank.slurm.rankings import Shares, read_shares

TREES = Path(__file__).parents[1] / "golden" / "slurm-22.05" / "trees"
FIGURES = "norms,normu,eff,fair,level"
"""Computed columns, by their names in sshare."""
SETUPS = sorted(folder.name for folder in TREES.iterdir())


def sshare_output(setup: str) -> Shares:
    return read_shares(str(TREES / setup), 0, UTC)


def differences(rows: Sequence[ShareRow], rule: RankingRule) -> list[str]:
    """Return the figures in which Slurm differs from those computed from shares and usage, as
    printed.
    """
    fields = parse_fields(FIGURES)
    return [
        f"{field.name} of {theirs.user or theirs.account} in {theirs.account}: Slurm says {one},"
        f" computed {other}"
        for theirs, ours in zip(rows, compute_shares(rows, rule), strict=True)
        for field in fields
        if (one := printed(theirs, field)) != (other := printed(ours, field))
    ]


def printed(row: ShareRow, field: SlurmColumn) -> str:
    (line,) = lines([row], [field], header=False)
    return line.strip()


def test_recordings_cover_every_rule() -> None:
    rules = {
        (rule.fair_tree, rule.dampening, rule.depth_oblivious)
        for rule in (sshare_output(setup).rule for setup in SETUPS)
    }
    assert rules == {(True, 1, False), (False, 1, False), (False, 3, False), (False, 1, True)}
    assert (
        sum(len(sshare_output(setup).rows) for setup in SETUPS) * len(parse_fields(FIGURES)) > 1_000
    ), "figures that are compared"


@pytest.mark.parametrize("setup", SETUPS)
def test_figures_equal_recorded_sshare(setup: str) -> None:
    result = sshare_output(setup)
    assert result.unreadable == ()
    assert differences(result.rows, result.rule) == []


@pytest.mark.parametrize("setup", SETUPS)
def test_recorded_usage_adds_up(setup: str) -> None:
    """Slurm truncates each row, so the sum of many rows may be smaller by up to their number."""
    result = sshare_output(setup)
    for theirs, ours in zip(result.rows, compute_shares(result.rows, result.rule), strict=True):
        assert abs(theirs.usage - ours.usage) <= max(len(result.rows), theirs.usage * 1e-9)


@pytest.mark.parametrize("figure", ["norm_shares", "norm_usage", "effective", "factor"])
def test_wrong_figure_is_found(figure: str) -> None:
    result = sshare_output(SETUPS[0])
    rows = list(result.rows)
    at = next(at for at, row in enumerate(rows) if row.user and 0 < (getattr(row, figure) or 0) < 1)
    rows[at] = rows[at]._replace(**{figure: getattr(rows[at], figure) + 0.000001})
    (line,) = differences(rows, result.rule)
    assert f"of {rows[at].user} in {rows[at].account}: Slurm says" in line


@pytest.mark.parametrize(
    "rule",
    [
        RankingRule(fair_tree=True, half_life=604_800),
        RankingRule(fair_tree=False, half_life=604_800),
    ],
)
def test_recorded_usage_of_deleted_users_stays_with_account(rule: RankingRule) -> None:
    rows = [
        ShareRow("root", usage=1_001),
        ShareRow("bio", parent="root", shares=1, usage=700),
        ShareRow("bio", "ada", shares=1, usage=100),
        ShareRow("chem", parent="root", shares=1, usage=301),
        ShareRow("chem", "bob", shares=1, usage=150),
        ShareRow("chem", "eve", shares=1, usage=150),
    ]
    result = {row.user or row.account: row for row in compute_shares(rows, rule)}
    assert result["bio"].usage == 700, "ada used 100 of it, and 600 who is gone"
    assert result["chem"].usage == 300, "what cutting off makes is nobody's"
    assert result["root"].usage == 1_000
    assert result["ada"].norm_usage == pytest.approx(0.1)
