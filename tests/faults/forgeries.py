"""Hands at work on the tables: every column altered, rows deleted and added, whole books forged,
each with the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.entry import link_of
from fairbank.store import schema
from fairbank.store.sql.rows import entry_of
from tests.faults.tables import Books, Row

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
"""The tables that the audit vouches for, and what tells their rows apart. Nonces are spent and
forgotten, and say nothing of the books.
"""

FAR = 10**9  # from every number that is used
_BOOK_OF = {"journal": "book", "allocation": "id", "run": "allocation", "user_sum": "allocation"}
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
    {"id", "book", "seq", "run", "allocation", "project", "parent", "uid", "owner", "gid", "job_id"}
)
_FORGED: dict[str, Any] = {
    "key": "forged",
    "comment": "forged",
    "details": "{}",
    "outcome": "FORGED",
    "digest": b"forged",
}


@dataclass(frozen=True)
class Forgery:
    """One manual change of a table: its description, the books in which the audit must find it (0:
    the registry, None: the whole store), and the statements that make it and undo it.
    """

    what: str
    books: frozenset[int | None]
    do: Callable[[Books], None]
    undo: Callable[[Books], None]


def alterations(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Each column of each row, set to something that it could as well be."""
    for row in rows:
        for column, value in row.items():
            for other in _others(table, column, value):
                yield _altered(table, row, column, other)


def nonsense(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Each column of each row, set to values that stand for nothing. SQLite takes them all, but for
    its rows' own numbers.
    """
    for row in rows:
        for column in row:
            for other in (b"\xff\x00", "nonsense", -1, 2**62, 1.5):
                if (
                    column != "id" or isinstance(other, int)
                ) and column != "shared":  # whatever is not 0 there is a yes
                    yield _altered(table, row, column, other)


def deletions(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    for row in rows:
        yield Forgery(
            f"{table} {_named(table, row)} deleted",
            _books(table, row),
            lambda books, row=row: _delete(books, table, row),  # type: ignore[misc]
            lambda books, row=row: insert(books, table, row),  # type: ignore[misc]
        )


def additions(table: str, rows: Iterable[Row]) -> Iterator[Forgery]:
    """Copies of rows under numbers and names of their own. The registry has but one row, whatever
    writes.
    """
    if table == "registry":
        return
    for row in rows:
        copy = row | {KEYS[table][-1]: row[KEYS[table][-1]] + FAR}
        copy |= {
            name: other
            for name in _UNIQUE.get(table, ())
            for other in _others(table, name, row[name])[:1]
            if row[name] is not None
        }
        if table == "journal":
            copy["seq"] += FAR
        if table == "run":
            copy["job_id"] += FAR
        if table == "allocation":
            copy |= {"start_at": row["end_at"], "end_at": row["end_at"] + 1}
        yield Forgery(
            f"{table} {_named(table, copy)} added",
            _books(table, copy),
            lambda books, copy=copy: insert(books, table, copy),  # type: ignore[misc]
            lambda books, copy=copy: _delete(books, table, copy),  # type: ignore[misc]
        )


def _others(table: str, column: str, value: Any) -> list[Any]:
    """Values that the column could as well have."""
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


def _altered(table: str, row: Row, column: str, other: Any) -> Forgery:
    new = row | {column: other}
    return Forgery(
        f"{table} {_named(table, row)}: {column} {row[column]!r} is now {other!r}",
        _books(table, row) | _books(table, new),
        lambda books: _set(books, table, row, column, other),
        lambda books: _set(books, table, new, column, row[column]),
    )


def _books(table: str, row: Row) -> frozenset[int]:
    return frozenset({row[_BOOK_OF[table]] if table in _BOOK_OF else 0})


def _named(table: str, row: Row) -> str:
    return "/".join(str(row[name]) for name in KEYS[table])


def _where(table: str, row: Row) -> tuple[str, Row]:
    """The row by its key."""
    return " AND ".join(f"{name} = :the_{name}" for name in KEYS[table]), {
        f"the_{name}": row[name] for name in KEYS[table]
    }


def _set(books: Books, table: str, row: Row, column: str, value: Any) -> None:
    where, values = _where(table, row)
    books.change(f"UPDATE {table} SET {column} = :new WHERE {where}", new=value, **values)


def _delete(books: Books, table: str, row: Row) -> None:
    where, values = _where(table, row)
    books.change(f"DELETE FROM {table} WHERE {where}", **values)


def insert(books: Books, table: str, row: Row) -> None:
    """Put a whole row in."""
    places = ", ".join(f":{name}" for name in row)
    books.change(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", **row)


# --- forgers who know the code ---


def rewrite(books: Books) -> Callable[[], None]:
    """Book 1 written again from its first entry, a thousand SU-minutes poorer, every link and row
    made to fit. The way back.
    """
    kept = _snapshot(books)
    before = NO_LINK
    for row in books.rows("SELECT * FROM journal WHERE book = 1 ORDER BY seq"):
        poorer = row | {"amount": row["amount"] - 1_000 if row["seq"] == 2 else row["amount"]}
        poorer["deposited"] -= 1_000 if row["seq"] >= 2 else 0
        before = _relinked(books, poorer, before)
    books.change(
        "UPDATE allocation SET deposited = deposited - 1000, link = :link WHERE id = 1", link=before
    )
    return lambda: _put_back(books, kept)


def cut_tail(books: Books) -> Callable[[], None]:
    """The last entry of book 2 is gone, and its rows are those of before. The way back."""
    kept = _snapshot(books)
    last, new = books.rows("SELECT * FROM journal WHERE book = 2 ORDER BY seq DESC LIMIT 2")
    assert last["kind"] == "refusal"  # the one kind that moves nothing else
    books.change("DELETE FROM journal WHERE id = :id", id=last["id"])
    books.change(
        "UPDATE allocation SET seq = :seq, link = :link WHERE id = 2",
        seq=new["seq"],
        link=new["link"],
    )
    return lambda: _put_back(books, kept)


def cut_registry(books: Books) -> Callable[[], None]:
    """The last entry of the registry is gone, and its head is that of before. The way back."""
    kept = _snapshot(books)
    last, new = books.rows("SELECT * FROM journal WHERE book = 0 ORDER BY seq DESC LIMIT 2")
    assert last["kind"] == "declined"
    books.change("DELETE FROM journal WHERE id = :id", id=last["id"])
    books.change("UPDATE registry SET seq = :seq, link = :link", seq=new["seq"], link=new["link"])
    return lambda: _put_back(books, kept)


def _relinked(books: Books, row: Row, before: bytes) -> bytes:
    entry = entry_of([row[column.name] for column in schema.journal.columns])
    link = link_of(entry, before)
    books.change("DELETE FROM journal WHERE id = :id", id=row["id"])
    insert(books, "journal", row | {"link": link})
    return link


def _snapshot(books: Books) -> dict[str, list[Row]]:
    return {table: books.rows(f"SELECT * FROM {table}") for table in KEYS}


def _put_back(books: Books, kept: dict[str, list[Row]]) -> None:
    for table, rows in kept.items():
        books.change(f"DELETE FROM {table}")
        for row in rows:
            insert(books, table, row)
