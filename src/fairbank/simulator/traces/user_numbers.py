"""Numbers for the names of a log: a trace knows users, groups and partitions by numbers only; and which numbers came before."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from fairbank.core.errors import InvalidInput

NAMES_MAX = 1_000_000
"""More users or accounts has no centre. A file of nothing else would fill the memory."""


class UserNumbers:
    """Names in the order in which they were seen, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def number(self, name: str) -> int:
        """The number of a name, a new one where it is new; -1, unknown, for no name at all. Raises InvalidInput beyond NAMES_MAX."""
        if not name:
            return -1
        found = self._numbers.get(name)
        if found is None:
            if len(self._names) == NAMES_MAX:
                raise InvalidInput(
                    f"more than {NAMES_MAX} names, expected those of users or accounts",
                    remedy="look whether the columns are right",
                )
            self._names.append(name)
            found = self._numbers[name] = len(self._names)
        return found

    def name(self, number: int) -> str:
        """The name with a number; empty for -1."""
        return self._names[number - 1] if number > 0 else ""


class SeenNumbers:
    """Numbers that came, mostly one after the other: it holds no more than the gaps between them, and who came late into one."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")
        self._late: set[int] = set()

    def again(self, number: int, due: int) -> bool:
        """Whether this one came before; it came now. `due`: the one after the largest that came."""
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
