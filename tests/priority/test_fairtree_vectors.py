"""Fair Tree on trees with known figures: those of Slurm's own test 24.4 (V3), and others computed
separately. Source: docs/reference/slurm-rules.md, "Fair Tree".
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import NO_LEVEL
from tests.priority.tree_text import parse_tree
from tests.priority.trees import V3, V4, V5, V6, V7, V8, V9
from tests.support.long_doubles import AS_ON_X86_64

as_on_x86_64 = pytest.mark.skipif(
    not AS_ON_X86_64, reason="ties here are those of another processor's long double"
)


def factors(picture: str) -> dict[str, str]:
    """Return the fair-share factor of each user, as sshare prints it."""
    tree_with_usage = parse_tree(picture)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    return {
        row.user: f"{tree.factor[at]:.6f}"
        for at, row in enumerate(tree_with_usage.tree.rows)
        if row.user
    }


# NormShares | RawUsage | NormUsage | EffectvUsage | FairShare | LevelFS, as Slurm prints them
PRINTED_V3 = """
u1    0.048077|0|0.000000|0.000000|1.000000|inf
u2    0.048077|10|0.041667|0.041667|0.666667|1.153846
aA    0.192308|45|0.187500|0.187500||1.025641
aAA   0.750000|20|0.083333|0.444444||1.687500
uAA1  1.000000|20|0.083333|1.000000|0.619048|1.000000
aAB   0.250000|25|0.104167|0.555556||0.450000
uAB1  0.500000|25|0.104167|1.000000|0.523810|0.500000
uAB2  0.500000|0|0.000000|0.000000|0.571429|inf
aB    0.288462|25|0.104167|0.104167||2.769231
aBA   0.416667|25|0.104167|1.000000||0.416667
uBA1  1.000000|25|0.104167|1.000000|0.714286|1.000000
aBB   0.583333|0|0.000000|0.000000||inf
uBB1  1.000000|0|0.000000|0.000000|0.761905|inf
aC    0.000000|30|0.125000|0.125000||0.000000
uC1   0.000000|30|0.125000|1.000000|0.047619|0.000000
aD    0.240385|110|0.458333|0.458333||0.524476
uD1   0.240385|20|0.083333|0.181818|0.476190|
uD2   0.235294|20|0.083333|0.181818|0.238095|1.294118
uD3   0.294118|25|0.104167|0.227273|0.333333|1.294118
aDA   0.240385|45|0.187500|0.409091||
uDA1  0.240385|10|0.041667|0.090909|0.476190|
uDA2  0.176471|10|0.041667|0.090909|0.380952|1.941176
uDA3  0.294118|25|0.104167|0.227273|0.333333|1.294118
aE    0.048077|0|0.000000|0.000000||inf
aE1   0.500000|0|0.000000|0.000000|1.000000|inf
aE2   0.500000|0|0.000000|0.000000|1.000000|inf
aF    0.096154|0|0.000000|0.000000||inf
uF1   0.333333|0|0.000000|0.000000|1.000000|inf
uF2   0.666667|0|0.000000|0.000000|1.000000|inf
aG    0.038462|20|0.083333|0.083333||0.461538
uG1   0.500000|10|0.041667|0.500000|0.190476|1.000000
aGA   0.500000|10|0.041667|0.500000||1.000000
uGA1  0.500000|4|0.016667|0.400000|0.190476|1.250000
uGA2  0.500000|6|0.025000|0.600000|0.095238|0.833333
"""


@as_on_x86_64
def test_v3_matches_slurm_test_in_every_column() -> None:
    tree_with_usage = parse_tree(V3)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    printed = []
    for name, at in list(tree_with_usage.at.items())[1:]:
        user, on_parent = (
            tree_with_usage.tree.is_user[at],
            tree_with_usage.tree.stands_on_parent[at],
        )
        columns = (
            f"{tree.norm_shares[at]:.6f}",
            f"{tree.usage[at]:.0f}",
            f"{tree.norm_usage[at]:.6f}",
            f"{tree.effective_usage[at]:.6f}",
            f"{tree.factor[at]:.6f}" if user else "",
            "" if on_parent else f"{float(tree.level[at]):.6f}",
        )
        printed.append(f"{name:<5} {'|'.join(columns)}")
    assert printed == PRINTED_V3.split("\n")[1:-1]


def test_v3_root_has_all_usage_and_no_shares() -> None:
    tree_with_usage = parse_tree(V3)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    assert (
        tree.norm_shares[0],
        tree.usage[0],
        tree.effective_usage[0],
        tree.level[0],
        tree.rank[0],
    ) == (0, 240, 1, NO_LEVEL, 0)


@as_on_x86_64
@pytest.mark.parametrize(
    ("all_shares", "shares", "used", "used_in_all", "better"),
    [
        (3, (1, 2), (10, 20), 30, None),
        (5, (1, 3), (10, 30), 534, 0),
        (5, (2, 3), (20, 30), 326, 0),
        (7, (1, 6), (10, 60), 77, None),
        (7, (2, 3), (20, 30), 50, None),
        (7, (3, 4), (30, 40), 77, None),
        (170, (40, 50), (20, 25), 110, 1),
    ],
)
def test_v3b_two_users_tie_in_long_double(
    all_shares: int,
    shares: tuple[int, int],
    used: tuple[int, int],
    used_in_all: int,
    better: int | None,
) -> None:
    """The levels of each pair are equal in exact arithmetic."""
    tree_with_usage = parse_tree(f"""
        a 1
            one {shares[0]} {used[0]}
            two {shares[1]} {used[1]}
            rest {all_shares - sum(shares)} {used_in_all - sum(used)}
    """)
    rank = fair_tree(tree_with_usage.tree, tree_with_usage.usage).rank
    one, two = rank[tree_with_usage.at["one"]], rank[tree_with_usage.at["two"]]
    assert (None if one == two else int(two > one)) == better


def test_v4_accounts_that_tie_are_not_ranked_together() -> None:
    assert factors(V4) == {"a1": "0.750000", "a2": "1.000000", "b1": "0.750000", "b2": "0.750000"}


def test_v5_best_of_second_gets_last_rank_of_first() -> None:
    assert factors(V5) == {
        "a1": "0.500000",
        "a2": "0.666667",
        "b1": "0.500000",
        "b2": "0.166667",
        "c1": "1.000000",
        "c2": "1.000000",
    }


def test_v6_without_usage_shares_decide() -> None:
    assert factors(V6) == {"u1": "1.000000", "u2": "0.666667", "u3": "0.333333"}
    tree_with_usage = parse_tree(V6)
    level = fair_tree(tree_with_usage.tree, tree_with_usage.usage).level
    assert [float(level[tree_with_usage.at[name]]) for name in ("u1", "u2", "u3", "b")] == [
        math.inf,
        0,
        math.inf,
        0,
    ]


def test_v7_in_every_column() -> None:
    tree_with_usage = parse_tree(V7)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    printed = {
        name: " ".join(
            f"{float(column[at]):.6f}"
            for column in (tree.norm_shares, tree.effective_usage, tree.level, tree.factor)
        )
        for name, at in tree_with_usage.at.items()
    }
    printed.pop("root")
    assert printed == {
        "physics": "0.600000 0.400000 1.500000 0.000000",
        "alice": "0.250000 0.750000 0.333333 0.800000",
        "bob": "0.750000 0.250000 3.000000 1.000000",
        "chem": "0.400000 0.600000 0.666667 0.000000",
        "carol": "1.000000 1.000000 1.000000 0.400000",
        "dave": "0.400000 0.000000 inf 0.600000",
        "bio": "0.000000 0.000000 0.000000 0.000000",
        "erin": "1.000000 0.000000 inf 0.200000",
    }


def test_v8_users_with_parent_shares_tie() -> None:
    assert factors(V8) == {
        "u1": "0.800000",
        "u2": "0.800000",
        "u3": "1.000000",
        "u4": "0.400000",
        "u5": "0.400000",
    }
    tree_with_usage = parse_tree(V8)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    assert [
        f"{float(tree.level[tree_with_usage.at[lab]]):.3f}" for lab in ("lab1", "lab2", "lab3")
    ] == ["0.610", "5.000", "0.512"]
    assert [float(tree.effective_usage[tree_with_usage.at[user]]) for user in ("u1", "u2")] == [
        0.25,
        0.75,
    ]


def test_v9_account_with_parent_shares_passes_users_to_parent() -> None:
    tree_with_usage = parse_tree(V9)
    tree = fair_tree(tree_with_usage.tree, tree_with_usage.usage)
    assert {
        name: " ".join(
            f"{float(column[tree_with_usage.at[name]]):.6f}"
            for column in (tree.norm_shares, tree.effective_usage, tree.level, tree.factor)
        )
        for name in ("s1", "s2", "e1", "r1")
    } == {
        "s1": "0.333333 0.125000 2.666667 1.000000",
        "s2": "0.333333 0.375000 0.888889 0.750000",
        "e1": "0.333333 0.500000 0.666667 0.500000",
        "r1": "1.000000 1.000000 1.000000 0.250000",
    }
    sub = tree_with_usage.at["eng_sub"]
    assert (tree.norm_shares[sub], tree.effective_usage[sub], tree.level[sub]) == (
        0.5,
        np.longdouble(0.5),
        NO_LEVEL,
    )
