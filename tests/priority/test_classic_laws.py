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
from tests.priority.tree_text import Drawn, draw, drawn

either_way = pytest.mark.parametrize("depth_oblivious", [False, True])


def of(there: Drawn, *, depth_oblivious: bool = False) -> Standings:
    return classic(there.tree, there.usage, depth_oblivious=depth_oblivious)


@either_way
@given(there=trees(), chance=st.randoms(use_true_random=False))
def test_other_names_change_nothing(there: Drawn, chance: Random, depth_oblivious: bool) -> None:
    names = {
        name: f"x{number}"
        for number, name in enumerate(sorted(there.at, key=lambda _: chance.random()))
    }
    renamed = [
        row._replace(
            account=names[row.account],
            user=names.get(row.user, ""),
            parent=names.get(row.parent, ""),
        )
        for row in there.tree.rows
    ]
    again, found = (
        of(each, depth_oblivious=depth_oblivious) for each in (drawn(renamed, there.own), there)
    )
    assert again.factor.tolist() == found.factor.tolist()


@given(trees(), st.data())
def test_another_order_changes_nothing(there: Drawn, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(there.tree.rows))))
    moved = of(drawn([there.tree.rows[at] for at in order], [there.own[at] for at in order]))
    assert moved.factor.tolist() == of(there).factor[order].tolist()
    assert moved.effective_usage.tolist() == of(there).effective_usage[order].tolist()


@given(trees(wild_shares, wild_usage), st.integers(1, DAMPENING_MAX))
def test_every_part_is_from_0_to_1_at_the_extremes_too(there: Drawn, dampening: int) -> None:
    found = classic(there.tree, there.usage, dampening=dampening)
    for column in (found.norm_shares, found.norm_usage, found.effective_usage, found.factor):
        assert ((column >= 0) & (column <= 1)).all()
    assert not found.factor[found.norm_shares == 0].any()


@given(trees(wild_shares, wild_usage))
def test_depth_oblivious_is_a_number_at_the_extremes_too(there: Drawn) -> None:
    found = of(there, depth_oblivious=True)
    assert ((found.factor >= 0) & (found.factor <= 1)).all()
    assert (found.effective_usage >= 0).all()


@given(trees())
def test_the_shares_of_an_account_are_divided_and_none_is_lost(there: Drawn) -> None:
    found, shape = of(there), there.tree.shape
    divided = np.zeros(len(there.tree.rows))
    rows = np.flatnonzero((shape.above >= 0) & ~there.tree.stands_on_parent)
    np.add.at(divided, shape.above[rows], found.norm_shares[rows])
    assert divided[shape.shares_below > 0] == pytest.approx(
        found.norm_shares[shape.shares_below > 0]
    )


@given(trees(), st.data())
def test_more_usage_gives_no_better_factor(there: Drawn, data: st.DataObject) -> None:
    users = np.flatnonzero(there.tree.is_user).tolist()
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = [
        used + (data.draw(st.integers(1, 10**6)) if at == user else 0)
        for at, used in enumerate(there.own)
    ]
    assert of(drawn(list(there.tree.rows), more)).factor[user] <= of(there).factor[user] * (
        1 + 1e-12
    )


@given(trees(), st.data())
def test_more_shares_give_no_worse_factor(there: Drawn, data: st.DataObject) -> None:
    users = [
        at
        for at in np.flatnonzero(there.tree.is_user).tolist()
        if there.tree.rows[at].shares != ON_PARENT
    ]
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = list(there.tree.rows)
    more[user] = more[user]._replace(shares=more[user].shares + data.draw(st.integers(1, 10**6)))
    assert of(drawn(more, there.own)).factor[user] >= of(there).factor[user] * (1 - 1e-12)


@either_way
@given(there=trees(), chance=st.integers(1, 1_000))
def test_only_proportions_of_usage_count(there: Drawn, chance: int, depth_oblivious: bool) -> None:
    larger = drawn(list(there.tree.rows), [used * chance for used in there.own])
    one, other = (of(each, depth_oblivious=depth_oblivious).factor for each in (there, larger))
    assert other == pytest.approx(one, rel=1e-9, abs=1e-300)


@given(trees(), st.integers(2, DAMPENING_MAX))
def test_dampening_draws_every_factor_towards_one(there: Drawn, dampening: int) -> None:
    damped = classic(there.tree, there.usage, dampening=dampening).factor
    plain = of(there).factor
    assert (damped >= plain).all()
    assert damped[plain > 0] == pytest.approx(plain[plain > 0] ** (1 / dampening))


# --- DEPTH_OBLIVIOUS ---


def test_depth_oblivious_gives_one_half_at_any_depth() -> None:
    there = draw(
        "a 60\n    one 1 30\n    two 1 30\nb 40\n    c 1\n        three 3 30\n        four 1 10"
    )
    assert of(there, depth_oblivious=True).factor[1:].tolist() == pytest.approx([0.5] * 7)
    charged_for_its_sibling = 0.3 + (0.6 - 0.3) / 2
    assert of(there).factor[there.at["one"]] == pytest.approx(2 ** -(charged_for_its_sibling / 0.3))


def test_an_account_in_between_makes_no_difference() -> None:
    flat = draw("a 60\n    one 3 30\n    two 1 5\nb 40\n    four 1 90")
    deep = draw(
        "a 60\n    between 9\n        further 1\n            one 3 30\n            two 1 5\nb 40\n "
        "   four 1 90"
    )
    found = [
        of(there, depth_oblivious=True).factor[[there.at["one"], there.at["two"]]].tolist()
        for there in (flat, deep)
    ]
    assert found[0] == pytest.approx(found[1])


def test_depth_oblivious_by_hand() -> None:
    """Account a used 0.35 of 0.6; its user two 0.05 of 0.15, and both users together 0.35 of
    0.6.
    """
    there = draw("a 60\n    one 3 30\n    two 1 5\nb 40\n    four 1 65")
    account_off, row_off = 0.35 / 0.6, (0.05 / 0.15) / (0.35 / 0.6)
    assert math.log(account_off) * math.log(row_off) > 0
    found = of(there, depth_oblivious=True).factor
    assert found[there.at["two"]] == pytest.approx(2 ** -(account_off * row_off))
    one_off = (0.3 / 0.45) / (
        0.35 / 0.6
    )  # further off than the account, the other way: pulled back
    pulled = one_off ** (1 / (1 + (5 * math.log(account_off)) ** 2))
    assert found[there.at["one"]] == pytest.approx(2 ** -(account_off * pulled))


@pytest.mark.parametrize("dampening", [0, -1, DAMPENING_MAX + 1])
def test_a_dampening_out_of_range_is_refused(dampening: int) -> None:
    there = draw("one 1 1")
    with pytest.raises(InvalidInput, match="no dampening factor") as no:
        classic(there.tree, there.usage, dampening=dampening)
    assert (no.value.field, no.value.remedy) == (
        "FairShareDampeningFactor",
        "a whole number from 1 to 65535",
    )
