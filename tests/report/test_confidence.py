"""Confidence intervals: published figures, and coverage of the true mean."""

from __future__ import annotations

from random import Random

import pytest

from fairbank.report.simulations import interval, quantile


@pytest.mark.parametrize(
    ("freedom", "known"),
    [
        (1, 12.706),
        (9, 2.262),
        (30, 2.042),
        (31, 2.0395),
        (40, 2.0211),
        (100, 1.9840),
        (999, 1.9623),
    ],
)
def test_quantiles_are_those_of_the_tables(freedom: int, known: float) -> None:
    assert quantile(freedom) == pytest.approx(known, abs=6e-4)


def test_interval_of_four_values() -> None:
    """1, 2, 3, 4: mean 2.5, variance 5/3, of the mean 5/12; with three degrees of freedom 3.1824
    times its root.
    """
    bounds = interval([1, 2, 3, 4])
    assert bounds is not None
    assert bounds.mean == 2.5
    assert bounds.half == pytest.approx(3.1824 * (5 / 12) ** 0.5)


def test_one_value_has_no_interval() -> None:
    assert interval([]) is None
    assert interval([3.0]) is None
    assert interval([3.0, 3.0]) == (3.0, 0.0)


def test_intervals_cover_the_mean_in_95_percent() -> None:
    """4,000 samples of six values from a normal distribution; 41 is three standard deviations of
    the count.
    """
    rng = Random(5)
    held = 0
    for _ in range(4_000):
        bounds = interval([rng.gauss(10, 3) for _ in range(6)])
        assert bounds is not None
        held += abs(bounds.mean - 10) <= bounds.half
    assert abs(held - 3_800) < 42
