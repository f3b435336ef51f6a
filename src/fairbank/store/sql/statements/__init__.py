"""Queries as SQL: one statement each, the same for every database, with what the asker may see decided inside it."""

from fairbank.store.sql.statements.credit import allocations, debits, drawn, expired, users
from fairbank.store.sql.statements.journal import (
    BEFORE,
    entries,
    of_books,
    refusals,
    repeated_keys,
    statement,
)
from fairbank.store.sql.statements.registry import members, projects, tokens
from fairbank.store.sql.statements.runs import overdue, runs
from fairbank.store.sql.statements.usage import usage

__all__ = [
    "BEFORE",
    "allocations",
    "debits",
    "drawn",
    "entries",
    "expired",
    "members",
    "of_books",
    "overdue",
    "projects",
    "refusals",
    "repeated_keys",
    "runs",
    "statement",
    "tokens",
    "usage",
    "users",
]
