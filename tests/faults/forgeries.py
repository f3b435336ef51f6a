"""Manual edits of the tables, with the statements that revert them: columns altered, rows deleted
and added, whole allocations rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.entry import link_of
from fairbank.store import schema
from fairbank.store.sql.rows import entry_of
from tests.faults.ledger_tables import LedgerTables, Row

KEYS = {
    "journal": ("id",),
    "allocation": ("id",),
    "run": ("id",),
    "user_sum": ("allocation", "uid"),
    "project": ("id",),
    "member": ("project", "uid"),
    "registry": ("id",),
    "token": ("id",),
}
"""Tables that the audit checks, with their keys. Nonces are not part of the ledger."""

FAR = 10**9  # beyond every number in use
_JOURNAL_OF = {
    "journal": "allocation",
    "allocation": "id",
    "run": "allocation",
    "user_sum": "allocation",
}
_UNIQUE = {"journal": ("key",), "project": ("gname", "gid", "account"), "token": ("digest",)}
_WORDS = {
    ("journal", "kind"): {"deposit": "withdraw"},
    ("allocation", "state"): {"active": "frozen"},
    ("run", "state"): {
        "charged": "released",
        "released": "charged",
        "held": "lapsed",
        "lapsed": "held",
    },
    ("token", "scopes"): {"read": "read write", "agent:local write": "agent:other write"},
    ("member", "role"): {"pi": "member", "member": "pi"},
}
_NUMBERS = frozenset(
    {"id", "allocation", "seq", "run", "project", "parent", "uid", "owner", "gid", "job_id"}
)
_FORGED: dict[str, Any] = {
    "key": "forged",
    "comment": "forged",
    "details": "{}",
    "outcome": "FORGED",
    "digest": b"forged",
    "partition": "forged",
    "reservation": "forged",
}


@dataclass(frozen=True)
class Forgery:
    """Manual edit of a table: its description, the journals in which the audit must find it (0: the
    registry, None: the whole store), and the statements that make and revert it.
    """

    description: str
    journals: frozenset[int | None]
    do: Callable[[LedgerTables], None]
    undo: Callable[[LedgerTables], None]


def alterations(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Yield an edit of each column of each row, to another plausible value."""
    for row in rows:
        for column, value in row.items():
            for changed in _alternatives(table, column, value):
                yield _altered(table, row, column, changed)


def nonsense(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Yield edits of each column of each row to invalid values. SQLite accepts them all, except for
    row numbers.
    """
    for row in rows:
        for column in row:
            for changed in (b"\xff\x00", "nonsense", -1, 2**62, 1.5):
                if (
                    column != "id" or isinstance(changed, int)
                ) and column != "shared":  # every value except 0 means true there
                    yield _altered(table, row, column, changed)


def deletions(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    for row in rows:
        yield Forgery(
            f"{table} {_name_of(table, row)} deleted",
            _journals(table, row),
            lambda tables, row=row: _delete(tables, table, row),  # type: ignore[misc]
            lambda tables, row=row: insert(tables, table, row),  # type: ignore[misc]
        )


def additions(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Yield copies of the rows with new keys. The registry always has one row, so none is added."""
    if table == "registry":
        return
    for row in rows:
        copy = row | {KEYS[table][-1]: row[KEYS[table][-1]] + FAR}
        copy |= {
            name: changed
            for name in _UNIQUE.get(table, ())
            for changed in _alternatives(table, name, row[name])[:1]
            if row[name] is not None
        }
        if table == "journal":
            copy["seq"] += FAR
        if table == "run":
            copy["job_id"] += FAR
        if table == "allocation":
            copy |= {"start_at": row["end_at"], "end_at": row["end_at"] + 1}
        yield Forgery(
            f"{table} {_name_of(table, copy)} added",
            _journals(table, copy),
            lambda tables, copy=copy: insert(tables, table, copy),  # type: ignore[misc]
            lambda tables, copy=copy: _delete(tables, table, copy),  # type: ignore[misc]
        )


def _alternatives(table: str, column: str, value: Any) -> list[Any]:
    """Return other plausible values of the column."""
    if (table, column) in _WORDS:
        return [_WORDS[table, column].get(value, "deposit")]
    match value:
        case None:
            return [_FORGED.get(column, 1)]
        case bool():
            return [not value]
        case int():
            return (
                [1 - value] if column == "shared" else [value + (FAR if column in _NUMBERS else 1)]
            )
        case str():
            return [f"{value}x"]
        case _:
            return [bytes([value[0] ^ 1]) + value[1:]]


def _altered(table: str, row: Row, column: str, changed: Any) -> Forgery:
    new = row | {column: changed}
    return Forgery(
        f"{table} {_name_of(table, row)}: {column} {row[column]!r} is now {changed!r}",
        _journals(table, row) | _journals(table, new),
        lambda tables: _set(tables, table, row, column, changed),
        lambda tables: _set(tables, table, new, column, row[column]),
    )


def _journals(table: str, row: Row) -> frozenset[int]:
    return frozenset({row[_JOURNAL_OF[table]] if table in _JOURNAL_OF else 0})


def _name_of(table: str, row: Row) -> str:
    return "/".join(str(row[name]) for name in KEYS[table])


def _where(table: str, row: Row) -> tuple[str, Row]:
    """Return the condition that selects the row by its key, with its values."""
    return " AND ".join(f"{name} = :the_{name}" for name in KEYS[table]), {
        f"the_{name}": row[name] for name in KEYS[table]
    }


def _set(tables: LedgerTables, table: str, row: Row, column: str, value: Any) -> None:
    where, values = _where(table, row)
    tables.change(f"UPDATE {table} SET {column} = :new WHERE {where}", new=value, **values)


def _delete(tables: LedgerTables, table: str, row: Row) -> None:
    where, values = _where(table, row)
    tables.change(f"DELETE FROM {table} WHERE {where}", **values)


def insert(tables: LedgerTables, table: str, row: Row) -> None:
    """Insert a complete row."""
    places = ", ".join(f":{name}" for name in row)
    tables.change(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", **row)


# --- consistent edits ---


def rewrite(tables: LedgerTables) -> Callable[[], None]:
    """Rewrite journal 1 from its first entry with 1,000 SU-minutes less and consistent links.

    Return the function that reverts it.
    """
    return _rewrite(tables, 2, amount=-1_000, deposited=-1_000)


def rewrite_transfer(tables: LedgerTables) -> Callable[[], None]:
    """Rewrite journal 1 so that it gives 100 SU-minutes less than journal 2 has received, with
    consistent sums and links; return the function that reverts it.
    """
    (given,) = tables.rows("SELECT seq FROM journal WHERE kind = 'transfer-out'")
    return _rewrite(tables, given["seq"], amount=-100, deposited=100)


def _rewrite(tables: LedgerTables, seq: int, *, amount: int, deposited: int) -> Callable[[], None]:
    snapshot = _snapshot(tables)
    link_before = NO_LINK
    for row in tables.rows("SELECT * FROM journal WHERE allocation = 1 ORDER BY seq"):
        changed = row | {"amount": row["amount"] + (amount if row["seq"] == seq else 0)}
        changed["deposited"] += deposited if row["seq"] >= seq else 0
        link_before = _relinked(tables, changed, link_before)
    tables.change(
        "UPDATE allocation SET deposited = deposited + :more, link = :link WHERE id = 1",
        more=deposited,
        link=link_before,
    )
    return lambda: _restore_rows(tables, snapshot)


def cut_tail(tables: LedgerTables) -> Callable[[], None]:
    """Delete the last entry of journal 2 and restore the rows before it; return the function that
    reverts it.
    """
    snapshot = _snapshot(tables)
    last, new = tables.rows("SELECT * FROM journal WHERE allocation = 2 ORDER BY seq DESC LIMIT 2")
    assert last["kind"] == "refusal"  # the only kind that changes no other row
    tables.change("DELETE FROM journal WHERE id = :id", id=last["id"])
    tables.change(
        "UPDATE allocation SET seq = :seq, link = :link WHERE id = 2",
        seq=new["seq"],
        link=new["link"],
    )
    return lambda: _restore_rows(tables, snapshot)


def cut_registry(tables: LedgerTables) -> Callable[[], None]:
    """Delete the last entry of the registry and restore the head before it; return the function
    that reverts it.
    """
    snapshot = _snapshot(tables)
    last, new = tables.rows("SELECT * FROM journal WHERE allocation = 0 ORDER BY seq DESC LIMIT 2")
    assert last["kind"] == "declined"
    tables.change("DELETE FROM journal WHERE id = :id", id=last["id"])
    tables.change("UPDATE registry SET seq = :seq, link = :link", seq=new["seq"], link=new["link"])
    return lambda: _restore_rows(tables, snapshot)


def _relinked(tables: LedgerTables, row: Row, link_before: bytes) -> bytes:
    entry = entry_of([row[column.name] for column in schema.journal.columns])
    link = link_of(entry, link_before)
    tables.change("DELETE FROM journal WHERE id = :id", id=row["id"])
    insert(tables, "journal", row | {"link": link})
    return link


def _snapshot(tables: LedgerTables) -> dict[str, list[Row]]:
    return {table: tables.rows(f"SELECT * FROM {table}") for table in KEYS}


def _restore_rows(tables: LedgerTables, snapshot: dict[str, list[Row]]) -> None:
    for table, rows in snapshot.items():
        tables.change(f"DELETE FROM {table}")
        for row in rows:
            insert(tables, table, row)
