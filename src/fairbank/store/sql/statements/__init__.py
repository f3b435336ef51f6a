"""Queries as SQLAlchemy statements: one each, for every database, with visibility as a
condition.
"""

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
