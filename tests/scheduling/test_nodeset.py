"""Sets of nodes as whole numbers give the same results as Python sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.placement import node_set

some = st.sets(st.integers(0, 300))
counts = st.integers(0, 320)


@given(some, some)
def test_nodesets_behave_like_sets(ones: set[int], others: set[int]) -> None:
    left, right = node_set.of(ones), node_set.of(others)
    assert set(node_set.each(left)) == ones
    assert node_set.places(left).tolist() == sorted(ones)
    assert node_set.without(left, right) == node_set.of(ones - others)
    assert left & right == node_set.of(ones & others)
    assert (left | right).bit_count() == len(ones | others)


@given(some, counts)
def test_first_of_them_are_the_lowest(ones: set[int], count: int) -> None:
    assert node_set.first(node_set.of(ones), count) == node_set.of(sorted(ones)[:count])


@given(some, st.integers(1, 40))
def test_runs_are_as_long_as_they_can_be(ones: set[int], length: int) -> None:
    result = node_set.runs(node_set.of(ones))
    assert [place for begin, end in result for place in range(begin, end)] == sorted(ones)
    assert all(end not in ones and begin - 1 not in ones for begin, end in result)
    assert set(node_set.each(node_set.run_starts(node_set.of(ones), length))) == {
        place for begin, end in result for place in range(begin, end - length + 1)
    }


@given(st.lists(st.booleans(), max_size=100))
def test_flag_for_each_node_makes_a_set(flags: list[bool]) -> None:
    assert node_set.pack_flags(np.array(flags, np.bool_)) == node_set.of(
        place for place, flag in enumerate(flags) if flag
    )


def test_stretches_and_single_nodes() -> None:
    assert node_set.between(3, 6) == node_set.of([3, 4, 5])
    assert node_set.between(3, 3) == node_set.NO_NODES
    assert node_set.all_nodes(3) == node_set.one(0) | node_set.one(1) | node_set.one(2)
