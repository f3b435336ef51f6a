"""Time series and sizes of a simulation: sums over intervals equal a plain count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.simulator.results.time_series import STRETCHES, BinnedSum, TimeSeries
from fairbank.simulator.traces.workload import TraceJob

intervals = st.lists(
    st.builds(
        lambda since, length, amount: (since, since + length, amount),
        st.integers(0, 900),
        st.integers(0, 900),
        st.integers(1, 9),
    ),
    max_size=12,
)


@given(st.integers(0, 10**9), intervals)
def test_sums_are_those_of_counting_each_second(
    begin: int, amounts: list[tuple[int, int, int]]
) -> None:
    sums = BinnedSum(begin)
    for since, until, amount in amounts:
        sums.add(begin + since, begin + until, amount)
    seconds = [
        sum(amount for since, until, amount in amounts if since <= second < until)
        for second in range(2048)
    ]
    stretches = [sum(seconds[at : at + sums.width]) for at in range(0, 2048, sums.width)]
    while stretches and not stretches[-1]:
        stretches.pop()
    assert sums.sums() == stretches
    assert len(stretches) <= STRETCHES


def job(number: int, submitted: int, run: int, processors: int = 1) -> TraceJob:
    return TraceJob(number, submitted, processors, run, run, 1, number, 1, 1)


def test_day_on_four_processors() -> None:
    """One job has the machine for an hour; another waits for it, and then uses half of it for an
    hour.
    """
    course = TimeSeries(4)
    course.take((0, [job(0, 0, 3600, 4)]))
    course.take((3600, [job(1, 1800, 3600, 2)]))
    used, waiting, expected = (
        list(course.over_time(binned)) for binned in (course.used, course.waiting, course.wanted)
    )
    assert (used[0].mean, used[-1].mean) == (4, 2)
    assert (used[0].since, used[-1].until) == (0, 7200)
    assert sum(stretch.mean * (stretch.until - stretch.since) for stretch in waiting) == 1800
    assert (waiting[-1].until, waiting[-1].mean) == (7200, 0)
    assert {stretch.mean for stretch in expected if 1900 < stretch.since < 3500} == {2}


def test_last_stretch_is_as_long_as_the_simulation() -> None:
    """A machine that is full until the end is also full in the last interval."""
    course = TimeSeries(1)
    course.take((0, [job(0, 0, 1001)]))
    assert {stretch.mean for stretch in course.over_time(course.used)} == {1.0}
    assert 1001 % course.used.width == 1


def test_waits_by_size() -> None:
    course = TimeSeries(8)
    for number, (wait, processors) in enumerate(
        [(0, 1), (10, 1), (20, 1), (100_000, 3), (7, 4), (50, 5), (50, 8)]
    ):
        course.take((1000 + wait, [job(number, 1000, 5, processors)]))
    one, four, eight = course.sizes()
    assert (
        one.least,
        one.most,
        one.jobs,
        one.mean,
        one.quarter,
        one.median,
        one.three_quarters,
    ) == (1, 1, 3, 10, 0, 10, 20)
    assert (four.least, four.most, four.jobs, four.median) == (3, 4, 2, 7)
    assert four.three_quarters == pytest.approx(100_000, rel=1 / 32)
    assert (eight.least, eight.most, eight.quarter) == (5, 8, 50)


def test_empty_simulation_has_no_time_series() -> None:
    course = TimeSeries(8)
    assert (course.used.sums(), course.sizes()) == ([], [])
