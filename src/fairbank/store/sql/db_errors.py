"""Database errors as Fairbank's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import exc

from fairbank.core.errors import Busy, Corrupt, Unavailable
from fairbank.store.contract import Contention
from fairbank.store.sqlite.driver import driver as sqlite

# SQLSTATEs (PostgreSQL manual, appendix A) of conflicts with other writers: a retry may succeed.
_IN_THE_WAY = {
    "40001": "serialisation failure",
    "40P01": "deadlock",
    "55P03": "lock timeout",
    "23505": "unique key taken meanwhile",
    "23P01": "overlapping allocation entered meanwhile",
}
# The rows would break the ledger's own rules; 23001 is what our triggers raise.
_BROKEN = frozenset({"23514", "23503", "23502", "23001"})
# Classes and codes of temporary failures: no connection, no resources, shutdown, cancelled,
# read-only, not admitted.
_NOT_NOW = ("08", "53", "57", "58", "25006", "25P03", "28", "3D000")

# Tables and columns are checked when a store is opened: what it lacks later was removed.
_GONE = frozenset({"42P01", "42703"})  # undefined table, undefined column

_SQLITE_GONE = ("no such column", "no such table", "has no column named")
_SQLITE_DAMAGED = ("malformed", "not a database", "Could not decode")
DISK_FULL = "disk is full"
"""Part of SQLite's message for a full disk."""
_LOG_MIB = 20
"""Space for SQLite's write-ahead log at the length at which it is emptied, and for a batch."""

_SQLITE_BROKEN = re.compile(
    r"(CHECK|NOT NULL|FOREIGN KEY) constraint failed(?:: (.*))?|(.* never (?:changed|deleted).*)"
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate database errors inside the block into Contention, Unavailable, Busy or Corrupt."""
    try:
        yield
    except exc.TimeoutError as error:
        raise Busy("all connections to the database are in use") from error
    except exc.DBAPIError as error:
        _raise(error.orig, error)
    except (psycopg.Error, sqlite.Error) as error:
        _raise(error, error)
    except UnicodeDecodeError as error:  # what SQLite says of a damaged schema repeats the damage
        raise _damaged(error) from error


def _raise(complaint: BaseException | None, error: Exception) -> None:
    cause = (
        _of_postgres(complaint) if isinstance(complaint, psycopg.Error) else _of_sqlite(complaint)
    )
    if cause is None:
        raise error
    raise cause from error


def _of_postgres(complaint: psycopg.Error) -> Exception | None:
    state = complaint.sqlstate
    if state is None:
        return _unreachable(complaint) if isinstance(complaint, psycopg.OperationalError) else None
    if state in _IN_THE_WAY:
        return Contention(f"{_IN_THE_WAY[state]}: {first_line(complaint)}")
    if state in _BROKEN:
        return _corrupt(complaint.diag.constraint_name, complaint)
    if state in _GONE:
        return _incomplete(complaint)
    if state.startswith(_NOT_NOW):
        return _unreachable(complaint)
    return None


def _of_sqlite(complaint: BaseException | None) -> Exception | None:
    """Translate an error of SQLite by its message; not every driver passes the extended codes
    on.
    """
    text = str(complaint)
    if any(words in text for words in _SQLITE_DAMAGED):  # first: it may quote any rule of ours
        return _damaged(complaint)
    if any(words in text for words in _SQLITE_GONE):
        return _incomplete(complaint)
    if "locked" in text or "UNIQUE constraint failed" in text or "allocations overlap" in text:
        return Contention(text)
    if broken := _SQLITE_BROKEN.fullmatch(text):
        return _corrupt(broken[2] or broken[1] or broken[3], complaint)
    if isinstance(complaint, sqlite.OperationalError):
        return _unreachable(complaint)
    return None


def _unreachable(complaint: BaseException | None) -> Unavailable:
    is_full = DISK_FULL in str(complaint)
    remedy = (
        f"free space on its disk, at least {_LOG_MIB} MiB, then try again"
        if is_full
        else "try again; if it stays so: fairbank doctor"
    )
    error = Unavailable(f"the database does not answer: {first_line(complaint)}", remedy=remedy)
    error.is_disk_full = is_full
    return error


def _incomplete(complaint: BaseException | None) -> Corrupt:
    return Corrupt(
        f"the ledger is incomplete: {first_line(complaint)}",
        remedy=(
            "fairbank doctor tells what else is missing; fill a new database from a backup:"
            " fairbank init, fairbank restore FILE"
        ),
    )


def _damaged(complaint: BaseException | None) -> Corrupt:
    return Corrupt(
        f"the database file is damaged: {first_line(complaint)}",
        remedy=(
            "move the file away, make a new one with: fairbank init, and fill it from a backup:"
            " fairbank restore FILE"
        ),
    )


def _corrupt(constraint: str | None, complaint: BaseException | None) -> Corrupt:
    return Corrupt(
        "the database refused what the ledger wrote, by its rule"
        f" {constraint or 'of append-only tables'}: {first_line(complaint)}",
        remedy="nothing was written; please report this, and run: fairbank audit verify",
    )


def first_line(complaint: BaseException | None) -> str:
    """Return the first line of a database error; the rest are hints and positions."""
    return str(complaint).strip().partition("\n")[0]
