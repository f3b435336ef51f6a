"""The first of many are those that sorting all would put first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from fairbank.priority.multifactor.combination import best

queues = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 2)), max_size=40)


def columns(
    queue: list[tuple[int, int, int]],
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    table = np.array(queue, dtype=np.int64).reshape(len(queue), 3)
    return table[:, 0].astype(np.uint32), table[:, 1], table[:, 2]


@given(queues, st.integers(0, 50))
def test_they_are_the_first_of_the_sorted_queue(
    queue: list[tuple[int, int, int]], count: int
) -> None:
    priority, submitted, ids = columns(queue)
    expected = sorted(
        range(len(queue)), key=lambda row: (-queue[row][0], queue[row][1], queue[row][2], row)
    )[:count]
    assert best(priority, count, submitted, ids).tolist() == expected


@given(queues, st.integers(0, 50))
def test_without_further_columns_the_lowest_row_goes_first(
    queue: list[tuple[int, int, int]], count: int
) -> None:
    priority, *_ = columns(queue)
    expected = sorted(range(len(queue)), key=lambda row: -queue[row][0])[:count]
    assert best(priority, count).tolist() == expected
    assert best(priority.astype(np.float64), count).tolist() == expected


def test_the_ends_of_32_bits_are_in_order() -> None:
    priority = np.array([1, 2**32 - 1, 0, 2**31, 2**31 - 1], dtype=np.uint32)
    assert best(priority, 4).tolist() == [1, 3, 4, 0]
