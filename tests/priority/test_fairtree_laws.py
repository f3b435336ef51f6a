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
from fairbank.priority.fairshare.columns import AS_ON_X86_64
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import FairTreeResult, ShareAssociation, planted, summed
from tests.priority.random_trees import trees, wild_shares, wild_usage
from tests.priority.recursion import Visit, to_64_bits
from tests.priority.tree_text import Drawn, draw, drawn

as_on_x86_64 = pytest.mark.skipif(
    not AS_ON_X86_64, reason="ties here are those of another processor's long double"
)


def ranked(there: Drawn) -> FairTreeResult:
    return fair_tree(there.tree, there.usage)


def peopled(there: Drawn) -> Drawn:
    """Return the tree with a user in each account without children. In Slurm, a user that ties with
    such an account gets the rank of the previous user, even a better one. No law of better and
    worse ranks holds then.
    """
    rows, shape = there.tree.rows, there.tree.shape
    empty = [int(shape.row[place]) for place in np.flatnonzero(shape.users == 0)]
    more = [
        ShareAssociation(rows[at].account, f"only{at}")
        for at in empty
        if rows[at].shares != ON_PARENT
    ]
    return drawn([*rows, *more], [*there.own, *[0.0] * len(more)])


@as_on_x86_64
@given(trees())
def test_every_rank_is_that_of_the_recursion(there: Drawn) -> None:
    rank = ranked(there).rank
    users = np.flatnonzero(there.tree.is_user).tolist()
    assert {at: int(rank[at]) for at in users} == Visit(
        there.tree, [int(used) for used in there.usage]
    ).ranks


@as_on_x86_64
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_long_doubles_are_rounded_as_the_recursion_rounds(above: int, below: int) -> None:
    found = np.longdouble(above) / np.longdouble(below)
    assert Fraction(*found.as_integer_ratio()) == to_64_bits(Fraction(above, below))


@given(trees(), st.randoms(use_true_random=False))
def test_other_names_change_nothing(there: Drawn, chance: Random) -> None:
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
    assert ranked(drawn(renamed, there.own)).rank.tolist() == ranked(there).rank.tolist()


@given(trees(), st.data())
def test_another_order_changes_nothing_but_ties(there: Drawn, data: st.DataObject) -> None:
    found = ranked(there)
    accounts = ~there.tree.is_user & ~there.tree.stands_on_parent
    levels = list(zip(there.tree.shape.above[accounts], found.level[accounts], strict=True))
    assume(len(set(levels)) == len(levels))
    order = data.draw(st.permutations(range(len(there.tree.rows))))
    moved = ranked(drawn([there.tree.rows[at] for at in order], [there.own[at] for at in order]))
    assert moved.rank.tolist() == found.rank[order].tolist()
    assert moved.level.tolist() == found.level[order].tolist()


@given(trees().map(peopled))
def test_all_below_the_better_of_two_siblings_are_ahead_of_all_below_the_other(
    there: Drawn,
) -> None:
    found, above = ranked(there), there.tree.shape.above
    below: dict[int, list[int]] = {at: [] for at in range(len(above))}
    for user in np.flatnonzero(there.tree.is_user):
        at = int(user)
        while at >= 0:
            below[at].append(int(found.rank[user]))
            at = int(above[at])
    for one, other in (
        (one, other)
        for one in below
        for other in below
        if above[one] == above[other] and found.level[one] > found.level[other]
    ):
        if below[one] and below[other]:
            assert min(below[one]) > max(below[other])


@given(trees(wild_shares, wild_usage))
def test_every_part_is_from_0_to_1_at_the_extremes_too(there: Drawn) -> None:
    found, users = ranked(there), int(there.tree.is_user.sum())
    for column in (found.norm_shares, found.norm_usage, found.effective_usage, found.factor):
        assert ((column >= 0) & (column <= 1)).all()
    assert (found.level >= 0).all()
    assert (found.factor[there.tree.is_user] >= 1 / max(1, users)).all()
    assert not found.factor[~there.tree.is_user].any()


@given(trees().map(peopled), st.data())
def test_more_usage_gives_no_better_rank(there: Drawn, data: st.DataObject) -> None:
    users = np.flatnonzero(there.tree.is_user).tolist()
    assume(users)
    user = data.draw(st.sampled_from(users))
    more = [
        used + (data.draw(st.integers(1, 10**6)) if at == user else 0)
        for at, used in enumerate(there.own)
    ]
    assert ranked(drawn(list(there.tree.rows), more)).rank[user] <= ranked(there).rank[user]


def test_tie_with_an_empty_account_takes_the_previous_rank() -> None:
    there = draw("first 2 0\nnobody 0\nb 0\n    last 1 0")
    assert ranked(there).rank.tolist() == [0, 2, 0, 0, 2]
    assert ranked(draw("first 2 0\nb 0\n    last 1 0")).rank.tolist() == [0, 2, 0, 1]


@given(trees().map(peopled), st.data())
def test_more_shares_give_no_worse_rank(there: Drawn, data: st.DataObject) -> None:
    """The same holds for all users below an account with more shares."""
    rows = there.tree.rows
    may_have_more = [
        at for at, row in enumerate(rows) if at != there.tree.root and row.shares != ON_PARENT
    ]
    assume(may_have_more)
    chosen = data.draw(st.sampled_from(may_have_more))
    more = [
        row._replace(shares=row.shares + data.draw(st.integers(1, 10**6))) if at == chosen else row
        for at, row in enumerate(rows)
    ]
    before, after = ranked(there).rank, ranked(drawn(more, there.own)).rank
    concerned = [
        at for at in np.flatnonzero(there.tree.is_user).tolist() if chosen in line(there, at)
    ]
    assert all(after[at] >= before[at] for at in concerned)


def line(there: Drawn, at: int) -> list[int]:
    """Return the row and all its ancestors with shares."""
    found = [at]
    while (above := int(there.tree.shape.above[found[-1]])) >= 0:
        found.append(above)
    return found


@given(trees(), st.data())
def test_another_order_within_ties_gives_each_level_the_same_places(
    there: Drawn, data: st.DataObject
) -> None:
    """Tied associations may swap places; the order of accounts does not change."""
    order = data.draw(st.permutations(range(len(there.tree.rows))))
    found, moved = (
        ranked(there),
        ranked(drawn([there.tree.rows[at] for at in order], [there.own[at] for at in order])),
    )
    back = np.argsort(order)
    for one, other in itertools.combinations(np.flatnonzero(there.tree.is_user).tolist(), 2):
        if (
            there.tree.shape.above[one] == there.tree.shape.above[other]
            and found.level[one] != found.level[other]
        ):
            assert np.sign(found.rank[one] - found.rank[other]) == np.sign(
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
