"""Errors that SQLite finds in its file: unreadable pages, indexes that lack rows, invalid values.

The bank trusts its indexes, for example for used keys. An index that lacks rows is therefore as bad
as a table that lacks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

_COMPLAINTS_MAX = 10_000
"""Maximum number of errors requested, to count them by index; a damaged page can give one per
row.
"""

_LACKS = re.compile(r"row \d+ missing from index (\S+)")
_COUNT = re.compile(r"wrong # of entries in index (\S+)")
_TWICE = re.compile(r"non-unique entry in index (\S+)")


def integrity_errors(connection: Any) -> list[str]:
    """Return the errors, one line per kind and index; empty if the file is sound. Reads the whole
    file. Raises the driver's errors.
    """
    found = [
        str(row[0])
        for row in connection.exec_driver_sql(f"PRAGMA integrity_check({_COMPLAINTS_MAX})")
    ]
    return list(summarise(line for each in found if each != "ok" for line in each.splitlines()))


def summarise(lines: Iterable[str]) -> Iterator[str]:
    """Yield SQLite's messages, with repeated messages about an index merged."""
    lacking: Counter[str] = Counter()
    miscounted: dict[str, None] = {}
    twice: Counter[str] = Counter()
    others: dict[str, None] = {}
    for line in lines:
        if match := _LACKS.search(line):
            lacking[match[1]] += 1
        elif match := _COUNT.search(line):
            miscounted[match[1]] = None
        elif match := _TWICE.search(line):
            twice[match[1]] += 1
        elif not line.startswith("***"):  # the heading that some versions write above each database
            others[line] = None
    for index, rows in lacking.items():
        yield (
            f"the index {index} lacks {rows} of the rows of its table, which nobody finds"
            " through it"
        )
    for index, rows in twice.items():
        yield f"the index {index} has more than once what there may be once, in {rows} of its rows"
    for index in miscounted:
        if index not in lacking:
            yield f"the index {index} has another number of rows than its table"
    yield from others
