"""Numbers for the names of a log, because a trace has users, groups and partitions as numbers; and
detection of repeated numbers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from fairbank.core.errors import InvalidInput

NAMES_MAX = 1_000_000
"""Maximum number of names. No site has more users or accounts, and a file of nothing else would
fill the memory.
"""


class UserNumbers:
    """Names in the order of their first use, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def number(self, name: str) -> int:
        """Return the number of a name, which may be new; -1, unknown, for an empty name. Raises
        InvalidInput above NAMES_MAX.
        """
        if not name:
            return -1
        number = self._numbers.get(name)
        if number is None:
            if len(self._names) == NAMES_MAX:
                raise InvalidInput(
                    f"more than {NAMES_MAX} names, expected those of users or accounts",
                    remedy="look whether the columns are right",
                )
            self._names.append(name)
            number = self._numbers[name] = len(self._names)
        return number

    def name(self, number: int) -> str:
        """Return the name with a number; empty for -1."""
        return self._names[number - 1] if number > 0 else ""


class SeenNumbers:
    """Numbers that were used, mostly in ascending order. Memory holds only the gaps, and late
    numbers within them.
    """

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")
        self._late: set[int] = set()

    def is_repeated(self, number: int, due: int) -> bool:
        """Return True if a number was used before, and record it. `due`: the number after the
        largest one so far.
        """
        if number >= due:
            if number > due:
                self._begins.append(due)
                self._ends.append(number)
            return False
        place = bisect_right(self._begins, number) - 1
        if place < 0 or number >= self._ends[place] or number in self._late:
            return True
        self._late.add(number)
        return False
