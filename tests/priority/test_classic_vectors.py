"""Classic fair share on trees with known figures: those of Slurm's own tests 24.1 and 130_2 (V1,
V2), and others. Source: docs/reference/slurm-rules.md, "Classic fair share".
"""

from __future__ import annotations

import pytest

from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.tree import Standings
from tests.priority.tree_text import TreeWithUsage, parse_tree
from tests.priority.trees import V1, V2, V7, V8


def printed(case: TreeWithUsage, standings: Standings, names: str) -> list[str]:
    """Return Name, NormShares, NormUsage, EffectvUsage, FairShare."""
    columns = (
        standings.norm_shares,
        standings.norm_usage,
        standings.effective_usage,
        standings.factor,
    )
    return [
        " ".join([name, *(f"{float(column[case.at[name]]):.6f}" for column in columns)])
        for name in names.split()
    ]


def test_v1_matches_slurm_test() -> None:
    tree_with_usage = parse_tree(V1)
    assert printed(
        tree_with_usage, classic(tree_with_usage.tree, tree_with_usage.usage), "U1 U2 U3 U4 U5 U6"
    ) == [
        "U1 0.300000 0.200000 0.387500 0.408479",
        "U2 0.050000 0.250000 0.275000 0.022097",
        "U3 0.050000 0.000000 0.150000 0.125000",
        "U4 0.250000 0.250000 0.250000 0.500000",
        "U5 0.350000 0.000000 0.145833 0.749154",
        "U6 0.000000 0.300000 0.300000 0.000000",
    ]


def test_v1_accounts() -> None:
    tree_with_usage = parse_tree(V1)
    factors = classic(tree_with_usage.tree, tree_with_usage.usage)
    rows = [tree_with_usage.at[name] for name in "ABCDEFG"]
    assert [
        f"{figure:.6f}" for figure in factors.effective_usage[rows]
    ] == "0.450000 0.387500 0.300000 0.250000 0.250000 0.145833 0.300000".split()
    assert [
        f"{figure:.2f}" for figure in factors.norm_shares[rows]
    ] == "0.40 0.30 0.10 0.60 0.25 0.35 0.00".split()
    assert (factors.norm_shares[0], factors.effective_usage[0]) == (1, 1)


def test_v2_matches_slurm_test_of_parent_shares() -> None:
    tree_with_usage = parse_tree(V2)
    assert printed(
        tree_with_usage,
        classic(tree_with_usage.tree, tree_with_usage.usage),
        "U1 U2 U3 U4 U5 U6 R1 R2 R3 T1 T2 T3",
    ) == [
        "U1 0.200000 0.095238 0.184524 0.527550",
        "U2 0.033333 0.119048 0.130952 0.065672",
        "U3 0.033333 0.000000 0.071429 0.226431",
        "U4 0.166667 0.119048 0.119048 0.609507",
        "U5 0.233333 0.000000 0.069444 0.813594",
        "U6 0.000000 0.142857 0.142857 0.000000",
        "R1 0.333333 0.095238 0.523810 0.336475",
        "R2 0.078431 0.095238 0.196078 0.176777",
        "R3 0.098039 0.119048 0.238095 0.185749",
        "T1 0.333333 0.047619 0.523810 0.336475",
        "T2 0.058824 0.047619 0.131653 0.211966",
        "T3 0.098039 0.119048 0.238095 0.185749",
    ]


@pytest.mark.parametrize(
    ("dampening", "expected"),
    [
        (1, "0.222725 0.606163 0.353553 0.353553 0.000000"),
        (5, "0.740549 0.904728 0.812252 0.812252 0.000000"),
    ],
)
def test_v7_with_and_without_dampening(dampening: int, expected: str) -> None:
    tree_with_usage = parse_tree(V7)
    factors = classic(tree_with_usage.tree, tree_with_usage.usage, dampening=dampening)
    users = "alice bob carol dave erin".split()
    assert " ".join(f"{factors.factor[tree_with_usage.at[user]]:.6f}" for user in users) == expected
    assert [
        f"{factors.norm_shares[tree_with_usage.at[user]]:.2f}" for user in users
    ] == "0.15 0.45 0.40 0.40 0.00".split()
    assert [
        f"{factors.effective_usage[tree_with_usage.at[user]]:.3f}" for user in users
    ] == "0.325 0.325 0.600 0.600 0.000".split()


def test_v8_users_have_figures_of_their_lab() -> None:
    tree_with_usage = parse_tree(V8)
    factors = classic(tree_with_usage.tree, tree_with_usage.usage)
    figures = {
        name: f"{factors.norm_shares[at]:.6f} {factors.effective_usage[at]:.6f}"
        f" {factors.factor[at]:.6f}"
        for name, at in tree_with_usage.at.items()
    }
    assert {figures[name] for name in ("lab1", "u1", "u2")} == {"0.244000 0.400000 0.321002"}
    assert {figures[name] for name in ("lab2", "u3")} == {"0.500000 0.100000 0.870551"}
    assert {figures[name] for name in ("lab3", "u4", "u5")} == {"0.256000 0.500000 0.258256"}


def test_published_harvard_row_is_reproduced() -> None:
    """Shares of 0.001363 and usage of 0.000572 give 0.747599 from these rounded figures.

    Source: docs/reference/slurm-rules.md, "Classic fair share".
    """
    tree_with_usage = parse_tree("lab 1363\n    user parent 572\nothers 998637\n    all 1 999428")
    assert printed(
        tree_with_usage, classic(tree_with_usage.tree, tree_with_usage.usage), "user"
    ) == ["user 0.001363 0.000572 0.000572 0.747599"]
