"""Errors that SQLite finds in its file: unreadable pages, indexes that lack rows, invalid values.

The bank trusts its indexes, for example for used keys. An index that lacks rows is therefore as bad
as a table that lacks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from fairbank.store.contract import IntegrityFault

_COMPLAINTS_MAX = 10_000
"""Maximum number of errors requested, to count them by index; a damaged page can give one per
row.
"""

_LACKS = re.compile(r"row \d+ missing from index (\S+)")
_COUNT = re.compile(r"wrong # of entries in index (\S+)")
_TWICE = re.compile(r"non-unique entry in index (\S+)")


def integrity_errors(connection: Any) -> list[IntegrityFault]:
    """Return the errors, one line per kind and index; empty if the file is sound. Reads the whole
    file. Raises the driver's errors.
    """
    messages = [
        str(row[0])
        for row in connection.exec_driver_sql(f"PRAGMA integrity_check({_COMPLAINTS_MAX})")
    ]
    return list(
        summarise(line for message in messages if message != "ok" for line in message.splitlines())
    )


def summarise(lines: Iterable[str]) -> Iterator[IntegrityFault]:
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
        yield IntegrityFault(
            f"the index {index} lacks {rows} of the rows of its table, which no query finds"
            " through it",
            in_index=True,
        )
    for index, rows in twice.items():
        yield IntegrityFault(
            f"the index {index} has more than once what there may be once, in {rows} of its rows",
            in_index=True,
        )
    for index in miscounted:
        if index not in lacking:
            text = f"the index {index} has another number of rows than its table"
            yield IntegrityFault(text, in_index=True)
    yield from (IntegrityFault(line, in_index=False) for line in others)


# --- comparison of indexes with their tables by sums over both (decision 0033) ---

_EVERY = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index'"
_NO_TEXT = (
    "SELECT count(*) FROM sqlite_master WHERE typeof(name) <> 'text' OR typeof(tbl_name) <> 'text'"
    " OR typeof(sql) NOT IN ('text', 'null')"
)
_COLUMNS = (
    "SELECT part.name, upper(whole.type) FROM pragma_table_info(?) AS whole JOIN"
    " pragma_index_info(?) AS part ON part.name = whole.name ORDER BY part.seqno"
)
_WHERE = re.compile(r"\sWHERE\s(.*)", re.IGNORECASE | re.DOTALL)
_ALL = "TRUE"
_WIDE, _NARROW = 2**31 - 1, 2**16 - 1
"""Bit masks of the summed numbers: sums stay within 64 bits for a thousand million rows."""


class SqliteIndex(NamedTuple):
    """Index as its file describes it. Integer columns are summed, texts by their length."""

    name: str
    table: str
    numbers: tuple[str, ...]
    where: str
    """Condition of a partial index."""

    @property
    def rows(self) -> str:
        """SQL for the rows of the index, not of the table."""
        return f"{_quoted(self.table)} INDEXED BY {_quoted(self.name)} WHERE {self.where}"

    @property
    def sums(self) -> str:
        """SQL for the number of rows and the sums of row ids, alone and combined with the
        columns.
        """
        stands = " + ".join(self.numbers) or "0"
        folds = (
            "count(*)",
            f"sum(rowid & {_WIDE})",
            f"sum((rowid & {_NARROW}) * (({stands}) & {_NARROW}))",
        )
        return ", ".join(
            fold if self.where == _ALL else f"{fold} FILTER (WHERE {self.where})" for fold in folds
        )


def index_faults(connection: Any) -> list[IntegrityFault]:
    """Return the errors of the full check, but only if the sums over an index differ from its
    table.

    Each index is read once, whereas the full check looks up each row in each index. It misses
    complete indexes in the wrong order, and faults that cancel out. Raises the driver's errors.
    """
    if damaged := connection.exec_driver_sql(_NO_TEXT).scalar():
        text = f"{damaged} tables or indexes have a name or a definition that is not text"
        return [IntegrityFault(text, in_index=False)]
    for table, having in indexes(connection).items():
        whole = _one(
            connection, ", ".join(index.sums for index in having), f"{_quoted(table)} NOT INDEXED"
        )
        if whole != [
            *chain.from_iterable(_one(connection, index.sums, index.rows) for index in having)
        ]:
            text = f"an index of the table {table} does not say what the table says"
            return integrity_errors(connection) or [IntegrityFault(text, in_index=True)]
    return []


def indexes(connection: Any) -> dict[str, list[SqliteIndex]]:
    """Return the indexes of each table. A table without row ids is its own index and has no
    other.
    """
    by_table: dict[str, list[SqliteIndex]] = {}
    for name, table, sql in connection.exec_driver_sql(_EVERY).all():
        columns = connection.exec_driver_sql(_COLUMNS, (table, name)).all()
        where = _WHERE.search(sql or "")
        by_table.setdefault(table, []).append(
            SqliteIndex(
                name,
                table,
                tuple(_number(column, of) for column, of in columns),
                where[1] if where else _ALL,
            )
        )
    return by_table


def _number(column: str, of: str) -> str:
    return f"length({_quoted(column)})" if "CHAR" in of or of == "TEXT" else _quoted(column)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _one(connection: Any, what: str, rows: str) -> list[Any]:
    statement = f"SELECT {what} FROM {rows}"  # noqa: S608 (names of the file)
    return [*connection.exec_driver_sql(statement).one()]
