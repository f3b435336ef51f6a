"""One account with equal shares: counting gives the result of the tree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.priority.fairshare.fair_tree import EqualShares, fair_tree
from fairbank.priority.fairshare.tree import ShareAssociation, planted
from tests.support.long_doubles import AS_ON_X86_64

neighbours = st.integers(0, 3).map(lambda places: 1e9 + places * 2**-23)
amounts = st.one_of(st.integers(0, 5).map(float), st.floats(1.0, 1e220), neighbours)


def by_the_tree(used: Sequence[float]) -> list[float]:
    tree = planted(
        [
            ShareAssociation("root"),
            *(ShareAssociation("root", user=f"u{number}") for number in range(len(used))),
        ]
    )
    factors: list[float] = fair_tree(tree, [sum(used), *used]).factor.tolist()
    return factors[1:]


@pytest.mark.skipif(
    not AS_ON_X86_64, reason="ties here are those of another processor's long double"
)
@given(st.lists(amounts, min_size=1, max_size=20))
def test_equal_shares_match_the_tree(used: list[float]) -> None:
    even = EqualShares(used)
    assert [even.factor(amount) for amount in used] == by_the_tree(used)


def test_same_usage_has_the_same_rank() -> None:
    even = EqualShares([5.0, 0.0, 5.0, 7.0])
    assert [even.factor(number) for number in (0.0, 5.0, 7.0)] == [1.0, 0.75, 0.25]
