"""Site factor from remaining credit and time to its end, by the rule of the settings (HADM)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

RuleName = Literal["linear", "power", "sigmoid"]


class Bend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Curve of one of the two fractions before they are multiplied. `exponent`: for the rule
    "power". `steepness` and `midpoint`: for the rule "sigmoid"; steepness 0 is a straight line.
    """

    exponent: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 1.0
    steepness: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] = 1.0
    midpoint: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5


_COUNTS: dict[RuleName, tuple[str, ...]] = {
    "linear": (),
    "power": ("exponent",),
    "sigmoid": ("steepness", "midpoint"),
}


def idle_keys(rule: RuleName, bend: Bend) -> Iterator[tuple[str, RuleName]]:
    """Yield changed keys without effect under this rule, with the rule that uses them."""
    default = Bend()
    for other, names in _COUNTS.items():
        yield from (
            (name, other)
            for name in names
            if other != rule and getattr(bend, name) != getattr(default, name)
        )


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FLAT = 1e-18  # a sigmoid less steep than this is a straight line in every bit of a double
_SLACK = 1 + 2.0**-44  # more than the roundings that lead to a value can take away from it


class Power(msgspec.Struct, frozen=True):
    """x to the power N. 1 is a straight line; more favours high fractions, less lifts low ones. One
    exponent for both factors is the same for each: (c t)^N = c^N t^N.
    """

    exponent: float = 1.0

    def of(self, fraction: ArrayLike) -> Floats:
        """Return the curve at fractions from 0 to 1."""
        x = np.asarray(fraction, np.float64)
        if self.exponent == 1:
            return x
        with np.errstate(under="ignore"):
            return np.asarray(x * x if self.exponent == 2 else np.power(x, self.exponent))


class Sigmoid(msgspec.Struct, frozen=True):
    """Logistic curve through (0, 0) and (1, 1), where l is `steepness` and x0 `midpoint` (HADM):

        S(x) = (e^(l x) - 1) (e^l + e^(l x0)) / ((e^l - 1) (e^(l x) + e^(l x0)))

    It is written so that no power of e is larger than 1: no steepness overflows, and S(0) = 0 and
    S(1) = 1 exactly. For l to 0 the curve goes to x, which is the result for l = 0. (HADM's line
    without slope would not lead from 0 to 1; its formula is 0 / 0 there.) -l gives the same curve
    as l.
    """

    steepness: float
    midpoint: float = 0.5

    def of(self, fraction: ArrayLike) -> Floats:
        """Return the curve at fractions from 0 to 1."""
        # The symbols of the formula above.
        x, x0 = np.asarray(fraction, np.float64), self.midpoint
        l = abs(self.steepness)  # noqa: E741
        if l < _FLAT:
            return x
        with np.errstate(under="ignore", over="ignore"):  # what is beyond counting goes to 0 below
            start = np.expm1(-l * x) / np.expm1(-l)
            bend = np.log1p(np.exp(-l * np.abs(1.0 - x0))) - np.log1p(np.exp(-l * np.abs(x - x0)))
            curve = np.exp(l * np.minimum(0.0, x - min(x0, 1.0)) + bend) * start
        return np.asarray(np.clip(curve, 0.0, 1.0))


class CurveRule(msgspec.Struct, frozen=True):
    """Curves of both fractions."""

    credit: Power | Sigmoid = Power()
    expiry: Power | Sigmoid = Power()

    def of(self, credit: ArrayLike, expiry: ArrayLike) -> Floats:
        """Return the site factors, from 0 to 1: the product of both curves."""
        return np.asarray(self.credit.of(credit) * self.expiry.of(expiry))


LINEAR = CurveRule()


def rule_of(name: RuleName, credit: Bend, expiry: Bend) -> CurveRule:
    """Return the rule with a name.

    Args:
        name: form of both curves; "linear" needs no further numbers.
        credit: curve of the fraction of credit.
        expiry: curve of the fraction of the term.
    """
    match name:
        case "linear":
            return LINEAR
        case "power":
            return CurveRule(Power(credit.exponent), Power(expiry.exponent))
        case "sigmoid":
            return CurveRule(
                Sigmoid(credit.steepness, credit.midpoint),
                Sigmoid(expiry.steepness, expiry.midpoint),
            )


class RemainingCredit(NamedTuple):
    """State of an allocation at some time: SU-minutes deposited, SU-minutes used or held, and
    seconds until its end. `longest`: seconds until the latest end of all active allocations of the
    same resource.
    """

    deposited: int
    used: int
    seconds: int
    longest: int


def site_factors(remaining: Sequence[RemainingCredit], rule: CurveRule, weight: int) -> Integers:
    """Return the site factors of allocations, from 0 to `weight`."""
    credit = credit_factor(
        [allocation.deposited for allocation in remaining],
        [allocation.used for allocation in remaining],
    )
    expiry = expiry_factor(
        [allocation.seconds for allocation in remaining],
        [allocation.longest for allocation in remaining],
    )
    return scale_factors(rule.of(credit, expiry), weight)


def credit_factor(deposited: ArrayLike, used: ArrayLike) -> Floats:
    """Return 1 - used / deposited, from 0 to 1: the part of its credit that each allocation has
    left. 0 if nothing was deposited.

    Held credit counts as used. Source: f_credit (HADM).
    """
    whole = np.asarray(deposited, np.float64)
    return _share(whole - np.asarray(used, np.float64), whole)


def expiry_factor(seconds_left: ArrayLike, longest: ArrayLike) -> Floats:
    """Return 1 - left / longest, from 0 to 1: the closeness of each end. 0 if no allocation has
    time left. Source: f_temporal (HADM).

    Args:
        seconds_left: seconds to the end of each allocation.
        longest: seconds to the latest end of all active allocations of the same resource.
    """
    whole = np.asarray(longest, np.float64)
    return _share(whole - np.asarray(seconds_left, np.float64), whole)


def _share(part: Floats, whole: Floats) -> Floats:
    shares = np.divide(
        part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0
    )
    return np.clip(shares, 0.0, 1.0)


def scale_factors(factor: ArrayLike, weight: int) -> Integers:
    """Return site factors from 0 to 1 as integers from 0 to `weight`, rounded down.

    A value less than a part in 2^44 below an integer becomes that integer, because double
    arithmetic may have lost it.
    """
    whole = np.floor(np.asarray(factor, np.float64) * weight * _SLACK)
    return np.clip(whole, 0, weight).astype(np.int64)
