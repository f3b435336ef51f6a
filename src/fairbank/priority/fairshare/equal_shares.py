"""Fair Tree where all users stand on one account with one share each: a rank is how many used at least as much.

Levels are the same share over what each used. So they come in the order of usage, and tie where usage is equal: in long doubles two
different doubles keep different levels. That needs no tree and no long doubles, and is the same on every host; on x86-64 it is what
`fairtree` finds (tests/priority/test_equal_shares.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class Even:
    """The users of one account; what each used is a finite double of 0 or more."""

    def __init__(self, used: Iterable[float]) -> None:
        self._used = sorted(used)

    def factor(self, used: float) -> float:
        """The fair-share factor of one of them, who used so much: from 1 for who used least."""
        return (len(self._used) - bisect_left(self._used, used)) / len(self._used)
