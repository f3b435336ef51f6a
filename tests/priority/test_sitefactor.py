"""HADM's site factor: two fractions, the rules that transform them, and Slurm's integer."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.core.slurm_numbers import NICE_MAX
from fairbank.priority.site_factor import (
    LINEAR,
    CurveRule,
    Power,
    Sigmoid,
    credit_factor,
    expiry_factor,
    scale_factors,
)

LAST_BITS = 1e-13  # of what a formula in doubles may differ by

parts = st.floats(0, 1)
exponents = st.floats(0.01, 100)
steepnesses = (
    st.floats(-1e9, 1e9)
    | st.floats(0, 100)
    | st.sampled_from([0.0, 5e-324, 1e-300, 1e-18, 1e-10, 1e308])
)
midpoints = parts | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -1e308, 1e308])
curves = st.builds(Power, exponents) | st.builds(Sigmoid, steepnesses, midpoints)
rules = st.builds(CurveRule, curves, curves)

# ---------------------------------------------------------------- the two fractions


@pytest.mark.parametrize(
    ("deposited", "used", "factor"),
    [(100, 5, 0.95), (100, 95, 0.05), (100, 100, 0), (100, 130, 0), (0, 0, 0)],
)
def test_credit_fraction(deposited: int, used: int, factor: float) -> None:
    assert credit_factor(deposited, used) == factor


@pytest.mark.parametrize(
    ("left", "longest", "factor"),
    [(10, 100, 0.9), (100, 100, 0), (0, 100, 1), (-5, 100, 1), (0, 0, 0)],
)
def test_time_fraction(left: int, longest: int, factor: float) -> None:
    assert expiry_factor(left, longest) == factor


def test_factor_is_vectorised() -> None:
    assert credit_factor([100, 0, 4], [5, 0, 1]).tolist() == [0.95, 0.0, 0.75]
    assert expiry_factor([10, 50], 100).tolist() == [0.9, 0.5]
    assert credit_factor([], []).tolist() == []


@given(deposited=st.integers(0, 2**63 - 1), used=st.integers(-(2**63), 2**63 - 1))
def test_fractions_are_from_0_to_1_at_the_extremes(deposited: int, used: int) -> None:
    exact = (
        min(max(1 - Fraction(used, deposited), Fraction(0)), Fraction(1))
        if deposited
        else Fraction(0)
    )
    assert 0 <= float(credit_factor(deposited, used)) <= 1
    assert float(credit_factor(deposited, used)) == pytest.approx(float(exact), abs=1e-15)


# ---------------------------------------------------------------- the curves


def test_power_rule_raises_the_fraction_to_its_exponent() -> None:
    """Squaring: twice the unused credit is four times the priority. A root raises low values."""
    assert Power(2).of(0.8) / Power(2).of(0.4) == pytest.approx(4, rel=LAST_BITS)
    assert Power(0.5).of(0.25) == 0.5
    assert Power(1).of(0.3) == 0.3


@given(credit=st.floats(1e-9, 1), expiry=st.floats(1e-9, 1), exponent=exponents)
def test_one_exponent_is_the_same_for_both(credit: float, expiry: float, exponent: float) -> None:
    assert CurveRule(Power(exponent), Power(exponent)).of(credit, expiry) == pytest.approx(
        (credit * expiry) ** exponent, rel=1e-11, abs=1e-300
    )


@given(fraction=parts, steepness=st.floats(0.1, 100), midpoint=parts)
def test_sigmoid_has_the_published_formula(
    fraction: float, steepness: float, midpoint: float
) -> None:
    x, l, x0 = fraction, steepness, midpoint  # noqa: E741
    seed = (
        math.expm1(l * x)
        * (math.exp(l) + math.exp(l * x0))
        / (math.expm1(l) * (math.exp(l * x) + math.exp(l * x0)))
    )
    assert float(Sigmoid(l, x0).of(x)) == pytest.approx(seed, rel=1e-11)


@given(steepness=steepnesses, midpoint=midpoints)
@example(steepness=1e308, midpoint=0.5)
@example(steepness=5e-324, midpoint=1e308)
def test_sigmoid_runs_from_0_to_1(steepness: float, midpoint: float) -> None:
    assert Sigmoid(steepness, midpoint).of([0.0, 1.0]).tolist() == [0.0, 1.0]


@given(curve=curves, first=parts, second=parts)
@example(curve=Sigmoid(1e308, 0.5), first=0.5, second=0.5)
def test_curve_is_monotonic_from_0_to_1(
    curve: Power | Sigmoid, first: float, second: float
) -> None:
    low, high = curve.of([min(first, second), max(first, second)]).tolist()
    assert 0 <= low <= high + LAST_BITS
    assert high <= 1


@given(curve=curves)
def test_curve_is_strictly_monotonic(curve: Power | Sigmoid) -> None:
    points = curve.of(np.linspace(0, 1, 501))
    assert points[0] == 0
    assert points[-1] == 1
    assert np.diff(points).min() >= -LAST_BITS


@given(fraction=parts, midpoint=midpoints)
def test_sigmoid_of_steepness_0_is_linear(fraction: float, midpoint: float) -> None:
    assert Sigmoid(0, midpoint).of(fraction) == fraction
    assert Sigmoid(1e-9, midpoint).of(fraction) == pytest.approx(fraction, abs=1e-8)
    assert Sigmoid(1, 0.5).of(fraction) == pytest.approx(fraction, abs=0.01), (
        "HADM: l = 1 approximates a line of unit slope"
    )


@given(fraction=parts, steepness=st.floats(0, 1e9), midpoint=midpoints)
def test_negative_steepness_is_the_same_curve(
    fraction: float, steepness: float, midpoint: float
) -> None:
    assert Sigmoid(-steepness, midpoint).of(fraction) == Sigmoid(steepness, midpoint).of(fraction)


@pytest.mark.parametrize("steepness", [1e5, 1e9, 1e300])
def test_steep_sigmoid_is_a_step_at_its_midpoint(steepness: float) -> None:
    assert Sigmoid(steepness, 0.3).of([0.0, 0.2, 0.299, 0.3, 0.301, 0.9, 1.0]).round(
        6
    ).tolist() == [0, 0, 0, 0.5, 1, 1, 1]


def test_figure_6_weighs_credit_only_near_the_end() -> None:
    """Until the remaining time is near a quarter of the longest, the remaining credit has no
    influence.
    """
    rule = CurveRule(Sigmoid(5, 0.25), Sigmoid(50, 0.75))
    credit = np.linspace(0, 1, 11)
    assert rule.of(credit, 0.6).max() < 0.001
    assert rule.of(credit, 0.75).max() == pytest.approx(0.5, abs=0.001)
    assert np.diff(rule.of(credit, 0.95)).min() > 0.01


# ---------------------------------------------------------------- both together


@given(rule=rules, credit=parts, expiry=parts, more=parts)
def test_factor_is_monotonic_in_credit_and_time(
    rule: CurveRule, credit: float, expiry: float, more: float
) -> None:
    factor = float(rule.of(credit, expiry))
    assert 0 <= factor <= 1
    assert rule.of(max(credit, more), expiry) >= factor - LAST_BITS
    assert rule.of(credit, max(expiry, more)) >= factor - LAST_BITS


@given(rule=rules, fraction=parts)
def test_factor_is_0_without_credit_and_1_at_maximum(rule: CurveRule, fraction: float) -> None:
    assert rule.of(0.0, fraction) == 0
    assert rule.of(fraction, 0.0) == 0
    assert rule.of(1.0, 1.0) == 1


@given(curve=curves, first=parts, second=parts)
def test_equal_curves_weigh_credit_and_time_equally(
    curve: Power | Sigmoid, first: float, second: float
) -> None:
    assert CurveRule(curve, curve).of(first, second) == CurveRule(curve, curve).of(second, first)


# ---------------------------------------------------------------- Slurm's integer


credits, days = st.integers(0, 9_999), st.integers(0, 999)


@given(
    deposited=credits.filter(bool),
    used=credits,
    longest=days.filter(bool),
    left=days,
    weight=st.integers(0, 10**6),
)
@example(deposited=100, used=5, longest=10, left=3, weight=1_000)  # 664.9999999999999 in doubles
def test_linear_rule_is_exact(
    deposited: int, used: int, longest: int, left: int, weight: int
) -> None:
    exact = (
        Fraction(max(deposited - used, 0), deposited)
        * Fraction(max(longest - left, 0), longest)
        * weight
    )
    assert scale_factors(
        LINEAR.of(credit_factor(deposited, used), expiry_factor(left, longest)), weight
    ) == int(exact)


@given(factor=parts, more=parts, weight=st.integers(0, NICE_MAX))
def test_value_is_from_0_to_weight_and_keeps_order(factor: float, more: float, weight: int) -> None:
    low, high = scale_factors([min(factor, more), max(factor, more)], weight).tolist()
    assert 0 <= low <= high <= weight
    assert scale_factors([0.0, 1.0], weight).tolist() == [0, weight]


def test_value_is_truncated() -> None:
    assert scale_factors([0.9999, 0.5, 0.00099], 1_000).tolist() == [999, 500, 0]
