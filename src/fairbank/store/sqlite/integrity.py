"""What SQLite finds wrong with its own file: pages that cannot be read, rows that an index lacks, values that a rule forbids.

An index is taken at its word wherever the bank looks something up, a key that was used before among it. So one that lacks rows is as
bad as a table that lacks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

_COMPLAINTS_MAX = 10_000
"""So many are asked for, to count them by index; a damaged page may make one for each row."""

_LACKS = re.compile(r"row \d+ missing from index (\S+)")
_COUNT = re.compile(r"wrong # of entries in index (\S+)")
_TWICE = re.compile(r"non-unique entry in index (\S+)")


def integrity_errors(connection: Any) -> list[str]:
    """In words, each kind for an index once; nothing where the file is sound. Reads the whole file. Raises what the driver raises."""
    found = [
        str(row[0])
        for row in connection.exec_driver_sql(f"PRAGMA integrity_check({_COMPLAINTS_MAX})")
    ]
    return list(summarise(line for each in found if each != "ok" for line in each.splitlines()))


def summarise(lines: Iterable[str]) -> Iterator[str]:
    """What SQLite says, with what it says of many rows of an index told once."""
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
        yield f"the index {index} lacks {rows} of the rows of its table, which nobody finds through it"
    for index, rows in twice.items():
        yield f"the index {index} has more than once what there may be once, in {rows} of its rows"
    for index in miscounted:
        if index not in lacking:
            yield f"the index {index} has another number of rows than its table"
    yield from others
