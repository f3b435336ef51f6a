"""Columns of numbers with the types of Slurm's C code.

Usage is a `long double`, and two associations tie if two of them are equal. Neither doubles nor
exact fractions find the same ties (slurm-rules.md, "Fair Tree"). NumPy's `longdouble` is the
host's: 64 bits of significand on x86-64, where results are those of a slurmctld on x86-64;
elsewhere they are those of a slurmctld on such a host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Long = np.longdouble

Longs = NDArray[np.longdouble]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Wholes = NDArray[np.uint64]
Parents = NDArray[np.int32]
"""Rows of other rows; -1 for none."""


def quotient(
    above: NDArray[Any], below: NDArray[Any] | np.longdouble, kind: type[np.floating[Any]]
) -> NDArray[Any]:
    """Return `above / below`, and 0 where `below` is 0.

    Args:
        above: dividends.
        below: divisors, or one for all.
        kind: floating-point type in which both are divided, and that of the result.
    """
    above, below = np.asarray(above, kind), np.asarray(below, kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts: NDArray[Any] = above / below
    return np.where(below == 0, kind(0), parts)
