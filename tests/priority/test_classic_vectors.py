"""Classic fair share on trees with known figures: those of Slurm's own tests 24.1 and 130_2 (V1,
V2), and others. Source: docs/reference/slurm-rules.md, "Classic fair share".
"""

from __future__ import annotations

import pytest

from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.tree import Standings
from tests.priority.tree_text import Drawn, draw
from tests.priority.trees import V1, V2, V7, V8


def printed(there: Drawn, found: Standings, names: str) -> list[str]:
    """Return Name, NormShares, NormUsage, EffectvUsage, FairShare."""
    columns = (found.norm_shares, found.norm_usage, found.effective_usage, found.factor)
    return [
        " ".join([name, *(f"{float(column[there.at[name]]):.6f}" for column in columns)])
        for name in names.split()
    ]


def test_v1_is_what_slurms_own_test_expects() -> None:
    there = draw(V1)
    assert printed(there, classic(there.tree, there.usage), "U1 U2 U3 U4 U5 U6") == [
        "U1 0.300000 0.200000 0.387500 0.408479",
        "U2 0.050000 0.250000 0.275000 0.022097",
        "U3 0.050000 0.000000 0.150000 0.125000",
        "U4 0.250000 0.250000 0.250000 0.500000",
        "U5 0.350000 0.000000 0.145833 0.749154",
        "U6 0.000000 0.300000 0.300000 0.000000",
    ]


def test_v1_accounts() -> None:
    there = draw(V1)
    found = classic(there.tree, there.usage)
    rows = [there.at[name] for name in "ABCDEFG"]
    assert [
        f"{each:.6f}" for each in found.effective_usage[rows]
    ] == "0.450000 0.387500 0.300000 0.250000 0.250000 0.145833 0.300000".split()
    assert [
        f"{each:.2f}" for each in found.norm_shares[rows]
    ] == "0.40 0.30 0.10 0.60 0.25 0.35 0.00".split()
    assert (found.norm_shares[0], found.effective_usage[0]) == (1, 1)


def test_v2_is_what_slurms_own_test_expects_of_shares_that_are_the_parents() -> None:
    there = draw(V2)
    assert printed(
        there, classic(there.tree, there.usage), "U1 U2 U3 U4 U5 U6 R1 R2 R3 T1 T2 T3"
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
    there = draw(V7)
    found = classic(there.tree, there.usage, dampening=dampening)
    users = "alice bob carol dave erin".split()
    assert " ".join(f"{found.factor[there.at[user]]:.6f}" for user in users) == expected
    assert [
        f"{found.norm_shares[there.at[user]]:.2f}" for user in users
    ] == "0.15 0.45 0.40 0.40 0.00".split()
    assert [
        f"{found.effective_usage[there.at[user]]:.3f}" for user in users
    ] == "0.325 0.325 0.600 0.600 0.000".split()


def test_v8_all_of_a_lab_have_the_labs_figures() -> None:
    there = draw(V8)
    found = classic(there.tree, there.usage)
    figures = {
        name: f"{found.norm_shares[at]:.6f} {found.effective_usage[at]:.6f} {found.factor[at]:.6f}"
        for name, at in there.at.items()
    }
    assert {figures[name] for name in ("lab1", "u1", "u2")} == {"0.244000 0.400000 0.321002"}
    assert {figures[name] for name in ("lab2", "u3")} == {"0.500000 0.100000 0.870551"}
    assert {figures[name] for name in ("lab3", "u4", "u5")} == {"0.256000 0.500000 0.258256"}


def test_the_row_that_harvard_publishes() -> None:
    """Shares of 0.001363 and usage of 0.000572 give 0.747599 from these rounded figures.

    Source: docs/reference/slurm-rules.md, "Classic fair share".
    """
    there = draw("lab 1363\n    user parent 572\nothers 998637\n    all 1 999428")
    assert printed(there, classic(there.tree, there.usage), "user") == [
        "user 0.001363 0.000572 0.000572 0.747599"
    ]
