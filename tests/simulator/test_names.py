"""Numbers that were seen before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.simulator.traces.fast_reader import SeenNumbers


@given(st.lists(st.integers(0, 20), max_size=60))
def test_a_number_that_came_before_is_known_in_whatever_order(numbers: list[int]) -> None:
    seen, came, due = SeenNumbers(), set[int](), 0
    for number in numbers:
        assert seen.is_repeated(number, due) == (number in came)
        came.add(number)
        due = max(due, number + 1)
