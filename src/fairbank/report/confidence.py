"""Confidence intervals of a mean, by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""97.5 % quantiles for 1 to 30 degrees of freedom, from a table of Student's t."""
_NORMAL = 1.959964


class Interval(NamedTuple):
    """Mean, and half the width of its 95 % confidence interval."""

    mean: float
    half: float


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % confidence interval of the mean, or None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    mean = fsum(values) / count
    variance = fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Interval(mean, quantile(count - 1) * sqrt(variance / count))


def quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t.

    Beyond the table by an expansion in 1 / freedom, correct to four digits (R. A. Fisher and E. A.
    Cornish, 1960).
    """
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
