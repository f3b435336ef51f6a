"""Numbers for the names of a log: a trace knows users, groups and partitions by numbers only."""

from __future__ import annotations

from fairbank.values.trouble import Malformed

NAMES_MAX = 1_000_000
"""More users or accounts has no centre. A file of nothing else would fill the memory."""


class Names:
    """Names in the order in which they were seen, numbered from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def number(self, name: str) -> int:
        """The number of a name, a new one where it is new; -1, unknown, for no name at all. Raises Malformed beyond NAMES_MAX."""
        if not name:
            return -1
        found = self._numbers.get(name)
        if found is None:
            if len(self._names) == NAMES_MAX:
                raise Malformed(
                    f"more than {NAMES_MAX} names, expected those of users or accounts", remedy="look whether the columns are right"
                )
            self._names.append(name)
            found = self._numbers[name] = len(self._names)
        return found

    def name(self, number: int) -> str:
        """The name with a number; empty for -1."""
        return self._names[number - 1] if number > 0 else ""
