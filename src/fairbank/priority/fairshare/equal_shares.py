"""Fair Tree for users of one account with one share each: the rank is the number of users that used
at least as much.

Levels are the same share over each usage. They are in the order of usage, and tie if usage is
equal: as long doubles, two different doubles have different levels. So no tree and no long doubles
are needed, and the result is the same on every host; on x86-64 it is that of `fair_tree`
(tests/priority).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class Even:
    """Users of one account. Usage is a finite double of 0 or more."""

    def __init__(self, used: Iterable[float]) -> None:
        self._used = sorted(used)

    def factor(self, used: float) -> float:
        """Return the fair-share factor of a user with this usage. The user who used least has 1."""
        return (len(self._used) - bisect_left(self._used, used)) / len(self._used)
