"""Sets of nodes: what whole numbers say of them is what sets say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.placement import nodeset

some = st.sets(st.integers(0, 300))
counts = st.integers(0, 320)


@given(some, some)
def test_they_are_sets(ones: set[int], others: set[int]) -> None:
    left, right = nodeset.of(ones), nodeset.of(others)
    assert set(nodeset.each(left)) == ones
    assert nodeset.places(left).tolist() == sorted(ones)
    assert nodeset.without(left, right) == nodeset.of(ones - others)
    assert left & right == nodeset.of(ones & others)
    assert (left | right).bit_count() == len(ones | others)


@given(some, counts)
def test_the_first_of_them_are_the_lowest(ones: set[int], count: int) -> None:
    assert nodeset.first(nodeset.of(ones), count) == nodeset.of(sorted(ones)[:count])


@given(some, st.integers(1, 40))
def test_runs_are_as_long_as_they_can_be(ones: set[int], length: int) -> None:
    found = nodeset.runs(nodeset.of(ones))
    assert [place for begin, end in found for place in range(begin, end)] == sorted(ones)
    assert all(end not in ones and begin - 1 not in ones for begin, end in found)
    assert nodeset.has_run(nodeset.of(ones), length) == any(
        end - begin >= length for begin, end in found
    )


@given(st.lists(st.booleans(), max_size=100))
def test_a_flag_for_each_node_makes_a_set(flags: list[bool]) -> None:
    assert nodeset.packed(np.array(flags, np.bool_)) == nodeset.of(
        place for place, flag in enumerate(flags) if flag
    )


def test_stretches_and_single_nodes() -> None:
    assert nodeset.between(3, 6) == nodeset.of([3, 4, 5])
    assert nodeset.between(3, 3) == nodeset.NOBODY
    assert nodeset.everybody(3) == nodeset.one(0) | nodeset.one(1) | nodeset.one(2)
