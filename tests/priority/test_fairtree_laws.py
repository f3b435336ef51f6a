"""Laws of Fair Tree on every tree."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import FairTreeResult, ShareAssociation, planted, summed
from tests.priority.random_trees import trees, wild_shares, wild_usage
from tests.priority.recursive_fair_tree import Visit, to_64_bits
from tests.priority.tree_text import TreeWithUsage, parse_tree, tree_with_usage
from tests.support.long_doubles import AS_ON_X86_64

as_on_x86_64 = pytest.mark.skipif(
    not AS_ON_X86_64, reason="ties here are those of another processor's long double"
)


def ranks_of(case: TreeWithUsage) -> FairTreeResult:
    return fair_tree(case.tree, case.usage)


def with_users(case: TreeWithUsage) -> TreeWithUsage:
    """Return the tree with a user in each account without children. In Slurm, a user that ties with
    such an account gets the rank of the previous user, even a better one. No law of better and
    worse ranks holds then.
    """
    rows, shape = case.tree.rows, case.tree.shape
    empty = [int(shape.row[place]) for place in np.flatnonzero(shape.users == 0)]
    more = [
        ShareAssociation(rows[at].account, f"only{at}")
        for at in empty
        if rows[at].shares != ON_PARENT
    ]
    return tree_with_usage([*rows, *more], [*case.own, *[0.0] * len(more)])


@as_on_x86_64
@given(trees())
def test_ranks_equal_recursive_computation(case: TreeWithUsage) -> None:
    rank = ranks_of(case).rank
    users = np.flatnonzero(case.tree.is_user).tolist()
    assert {at: int(rank[at]) for at in users} == Visit(
        case.tree, [int(used) for used in case.usage]
    ).ranks


@as_on_x86_64
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_long_doubles_are_rounded_like_the_recursion(above: int, below: int) -> None:
    result = np.longdouble(above) / np.longdouble(below)
    assert Fraction(*result.as_integer_ratio()) == to_64_bits(Fraction(above, below))


@given(trees(), st.randoms(use_true_random=False))
def test_other_names_change_nothing(case: TreeWithUsage, chance: Random) -> None:
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
    assert (
        ranks_of(tree_with_usage(renamed, case.own)).rank.tolist() == ranks_of(case).rank.tolist()
    )


@given(trees(), st.data())
def test_order_changes_only_ties(case: TreeWithUsage, data: st.DataObject) -> None:
    result = ranks_of(case)
    accounts = ~case.tree.is_user & ~case.tree.stands_on_parent
    levels = list(zip(case.tree.shape.above[accounts], result.level[accounts], strict=True))
    assume(len(set(levels)) == len(levels))
    order = data.draw(st.permutations(range(len(case.tree.rows))))
    moved = ranks_of(
        tree_with_usage([case.tree.rows[at] for at in order], [case.own[at] for at in order])
    )
    assert moved.rank.tolist() == result.rank[order].tolist()
    assert moved.level.tolist() == result.level[order].tolist()


@given(trees().map(with_users))
def test_users_below_better_sibling_rank_first(case: TreeWithUsage) -> None:
    result, above = ranks_of(case), case.tree.shape.above
    below: dict[int, list[int]] = {at: [] for at in range(len(above))}
    for user in np.flatnonzero(case.tree.is_user):
        at = int(user)
        while at >= 0:
            below[at].append(int(result.rank[user]))
            at = int(above[at])
    for one, other in (
        (one, other)
        for one in below
        for other in below
        if above[one] == above[other] and result.level[one] > result.level[other]
    ):
        if below[one] and below[other]:
            assert min(below[one]) > max(below[other])


@given(trees(wild_shares, wild_usage))
def test_factors_are_from_0_to_1_at_the_extremes(case: TreeWithUsage) -> None:
    result, users = ranks_of(case), int(case.tree.is_user.sum())
    for column in (result.norm_shares, result.norm_usage, result.effective_usage, result.factor):
        assert ((column >= 0) & (column <= 1)).all()
    assert (result.level >= 0).all()
    assert (result.factor[case.tree.is_user] >= 1 / max(1, users)).all()
    assert not result.factor[~case.tree.is_user].any()


@given(trees().map(with_users), st.data())
def test_more_usage_gives_no_better_rank(case: TreeWithUsage, data: st.DataObject) -> None:
    users = np.flatnonzero(case.tree.is_user).tolist()
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = [
        used + (data.draw(st.integers(1, 10**6)) if at == user else 0)
        for at, used in enumerate(case.own)
    ]
    assert (
        ranks_of(tree_with_usage(list(case.tree.rows), more)).rank[user]
        <= ranks_of(case).rank[user]
    )


def test_tie_with_an_empty_account_takes_the_previous_rank() -> None:
    result = parse_tree("first 2 0\nnobody 0\nb 0\n    last 1 0")
    assert ranks_of(result).rank.tolist() == [0, 2, 0, 0, 2]
    assert ranks_of(parse_tree("first 2 0\nb 0\n    last 1 0")).rank.tolist() == [0, 2, 0, 1]


@given(trees().map(with_users), st.data())
def test_more_shares_give_no_worse_rank(case: TreeWithUsage, data: st.DataObject) -> None:
    """The same holds for all users below an account with more shares."""
    rows = case.tree.rows
    may_have_more = [
        at for at, row in enumerate(rows) if at != case.tree.root and row.shares != ON_PARENT
    ]
    assume(may_have_more)
    chosen = data.draw(st.sampled_from(may_have_more))
    more = [
        row._replace(shares=row.shares + data.draw(st.integers(1, 10**6))) if at == chosen else row
        for at, row in enumerate(rows)
    ]
    before, after = ranks_of(case).rank, ranks_of(tree_with_usage(more, case.own)).rank
    concerned = [
        at for at in np.flatnonzero(case.tree.is_user).tolist() if chosen in line(case, at)
    ]
    assert all(after[at] >= before[at] for at in concerned)


def line(case: TreeWithUsage, at: int) -> list[int]:
    """Return the row and all its ancestors with shares."""
    result = [at]
    while (above := int(case.tree.shape.above[result[-1]])) >= 0:
        result.append(above)
    return result


@given(trees(), st.data())
def test_order_within_ties_keeps_ranks_of_level(case: TreeWithUsage, data: st.DataObject) -> None:
    """Tied associations may swap places; the order of accounts does not change."""
    order = data.draw(st.permutations(range(len(case.tree.rows))))
    result, moved = (
        ranks_of(case),
        ranks_of(
            tree_with_usage([case.tree.rows[at] for at in order], [case.own[at] for at in order])
        ),
    )
    back = np.argsort(order)
    for one, other in itertools.combinations(np.flatnonzero(case.tree.is_user).tolist(), 2):
        if (
            case.tree.shape.above[one] == case.tree.shape.above[other]
            and result.level[one] != result.level[other]
        ):
            assert np.sign(result.rank[one] - result.rank[other]) == np.sign(
                moved.rank[back[one]] - moved.rank[back[other]]
            )


@as_on_x86_64
def test_levels_that_differ_only_as_long_doubles_are_distinguished() -> None:
    """Their sort keys are equal, because they are equal as doubles."""
    users = 500
    rows = [
        ShareAssociation("root"),
        *(ShareAssociation("root", f"u{number}") for number in range(users)),
    ]
    used = [np.longdouble(2**62 + (7 * number) % users) for number in range(users)]
    tree = planted(rows)
    rank = fair_tree(tree, summed(tree, [np.longdouble(0), *used])).rank[1:]
    assert sorted(rank.tolist()) == list(range(1, users + 1))
    assert (np.argsort(-rank) == np.argsort(used)).all()
