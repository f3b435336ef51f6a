"""Numbers of names: a known name keeps its number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.simulator.traces.fast_reader import SeenNumbers


@given(st.lists(st.integers(0, 20), max_size=60))
def test_known_name_keeps_its_number_in_any_order(numbers: list[int]) -> None:
    seen, came, due = SeenNumbers(), set[int](), 0
    for number in numbers:
        assert seen.is_repeated(number, due) == (number in came)
        came.add(number)
        due = max(due, number + 1)
