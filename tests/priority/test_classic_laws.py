"""Laws of classic fair share on every tree."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.tree import Standings
from fairbank.priority.settings import DAMPENING_MAX
from tests.priority.random_trees import trees, wild_shares, wild_usage
from tests.priority.tree_text import TreeWithUsage, parse_tree, tree_with_usage

either_way = pytest.mark.parametrize("depth_oblivious", [False, True])


def standings_of(case: TreeWithUsage, *, depth_oblivious: bool = False) -> Standings:
    return classic(case.tree, case.usage, depth_oblivious=depth_oblivious)


@either_way
@given(case=trees(), chance=st.randoms(use_true_random=False))
def test_other_names_change_nothing(
    case: TreeWithUsage, chance: Random, depth_oblivious: bool
) -> None:
    names = {
        name: f"x{number}"
        for number, name in enumerate(sorted(case.at, key=lambda _: chance.random()))
    }
    renamed = [
        row._replace(
            account=names[row.account],
            user=names.get(row.user, ""),
            parent=names.get(row.parent, ""),
        )
        for row in case.tree.rows
    ]
    again, result = (
        standings_of(tree, depth_oblivious=depth_oblivious)
        for tree in (tree_with_usage(renamed, case.own), case)
    )
    assert again.factor.tolist() == result.factor.tolist()


@given(trees(), st.data())
def test_another_order_changes_nothing(case: TreeWithUsage, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case.tree.rows))))
    moved = standings_of(
        tree_with_usage([case.tree.rows[at] for at in order], [case.own[at] for at in order])
    )
    assert moved.factor.tolist() == standings_of(case).factor[order].tolist()
    assert moved.effective_usage.tolist() == standings_of(case).effective_usage[order].tolist()


@given(trees(wild_shares, wild_usage), st.integers(1, DAMPENING_MAX))
def test_factors_are_from_0_to_1_at_the_extremes(case: TreeWithUsage, dampening: int) -> None:
    factors = classic(case.tree, case.usage, dampening=dampening)
    for column in (
        factors.norm_shares,
        factors.norm_usage,
        factors.effective_usage,
        factors.factor,
    ):
        assert ((column >= 0) & (column <= 1)).all()
    assert not factors.factor[factors.norm_shares == 0].any()


@given(trees(wild_shares, wild_usage))
def test_depth_oblivious_is_finite_at_the_extremes(case: TreeWithUsage) -> None:
    result = standings_of(case, depth_oblivious=True)
    assert ((result.factor >= 0) & (result.factor <= 1)).all()
    assert (result.effective_usage >= 0).all()


@given(trees())
def test_shares_of_an_account_are_fully_divided(case: TreeWithUsage) -> None:
    result, shape = standings_of(case), case.tree.shape
    divided = np.zeros(len(case.tree.rows))
    rows = np.flatnonzero((shape.above >= 0) & ~case.tree.stands_on_parent)
    np.add.at(divided, shape.above[rows], result.norm_shares[rows])
    assert divided[shape.shares_below > 0] == pytest.approx(
        result.norm_shares[shape.shares_below > 0]
    )


@given(trees(), st.data())
def test_more_usage_gives_no_better_factor(case: TreeWithUsage, data: st.DataObject) -> None:
    users = np.flatnonzero(case.tree.is_user).tolist()
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = [
        used + (data.draw(st.integers(1, 10**6)) if at == user else 0)
        for at, used in enumerate(case.own)
    ]
    assert standings_of(tree_with_usage(list(case.tree.rows), more)).factor[user] <= standings_of(
        case
    ).factor[user] * (1 + 1e-12)


@given(trees(), st.data())
def test_more_shares_give_no_worse_factor(case: TreeWithUsage, data: st.DataObject) -> None:
    users = [
        at
        for at in np.flatnonzero(case.tree.is_user).tolist()
        if case.tree.rows[at].shares != ON_PARENT
    ]
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = list(case.tree.rows)
    more[user] = more[user]._replace(shares=more[user].shares + data.draw(st.integers(1, 10**6)))
    assert standings_of(tree_with_usage(more, case.own)).factor[user] >= standings_of(case).factor[
        user
    ] * (1 - 1e-12)


@either_way
@given(case=trees(), chance=st.integers(1, 1_000))
def test_only_ratios_of_usage_count(
    case: TreeWithUsage, chance: int, depth_oblivious: bool
) -> None:
    larger = tree_with_usage(list(case.tree.rows), [used * chance for used in case.own])
    one, other = (
        standings_of(tree, depth_oblivious=depth_oblivious).factor for tree in (case, larger)
    )
    assert other == pytest.approx(one, rel=1e-9, abs=1e-300)


@given(trees(), st.integers(2, DAMPENING_MAX))
def test_dampening_moves_factors_towards_1(case: TreeWithUsage, dampening: int) -> None:
    damped = classic(case.tree, case.usage, dampening=dampening).factor
    plain = standings_of(case).factor
    assert (damped >= plain).all()
    assert damped[plain > 0] == pytest.approx(plain[plain > 0] ** (1 / dampening))


# --- DEPTH_OBLIVIOUS ---


def test_depth_oblivious_gives_one_half_at_any_depth() -> None:
    result = parse_tree(
        "a 60\n    one 1 30\n    two 1 30\nb 40\n    c 1\n        three 3 30\n        four 1 10"
    )
    assert standings_of(result, depth_oblivious=True).factor[1:].tolist() == pytest.approx(
        [0.5] * 7
    )
    charged_for_its_sibling = 0.3 + (0.6 - 0.3) / 2
    assert standings_of(result).factor[result.at["one"]] == pytest.approx(
        2 ** -(charged_for_its_sibling / 0.3)
    )


def test_intermediate_account_makes_no_difference() -> None:
    flat = parse_tree("a 60\n    one 3 30\n    two 1 5\nb 40\n    four 1 90")
    deep = parse_tree(
        "a 60\n    between 9\n        further 1\n            one 3 30\n            two 1 5\nb 40\n "
        "   four 1 90"
    )
    result = [
        standings_of(case, depth_oblivious=True).factor[[case.at["one"], case.at["two"]]].tolist()
        for case in (flat, deep)
    ]
    assert result[0] == pytest.approx(result[1])


def test_depth_oblivious_matches_hand_computation() -> None:
    """Account a used 0.35 of 0.6; its user two 0.05 of 0.15, and both users together 0.35 of
    0.6.
    """
    outcome = parse_tree("a 60\n    one 3 30\n    two 1 5\nb 40\n    four 1 65")
    account_off, row_off = 0.35 / 0.6, (0.05 / 0.15) / (0.35 / 0.6)
    assert math.log(account_off) * math.log(row_off) > 0
    result = standings_of(outcome, depth_oblivious=True).factor
    assert result[outcome.at["two"]] == pytest.approx(2 ** -(account_off * row_off))
    one_off = (0.3 / 0.45) / (
        0.35 / 0.6
    )  # further off than the account, the other way: pulled back
    pulled = one_off ** (1 / (1 + (5 * math.log(account_off)) ** 2))
    assert result[outcome.at["one"]] == pytest.approx(2 ** -(account_off * pulled))


@pytest.mark.parametrize("dampening", [0, -1, DAMPENING_MAX + 1])
def test_dampening_out_of_range_is_refused(dampening: int) -> None:
    result = parse_tree("one 1 1")
    with pytest.raises(InvalidInput, match="not a dampening factor") as no:
        classic(result.tree, result.usage, dampening=dampening)
    assert (no.value.field, no.value.remedy) == (
        "FairShareDampeningFactor",
        "a whole number from 1 to 65535",
    )
