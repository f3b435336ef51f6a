"""Tokens made before the journal knew them get their entries in the office's book, so that the audit vouches for every one.

The rows are taken as they are found. The entries are chained by the product's own code: its audit is what has to follow them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import sqlalchemy as sa
from alembic import op

from fairbank.bank.book import Book, Office
from fairbank.bank.ledger.tokens import ADOPTED, adopt
from fairbank.store.rows import entry_row, token_of
from fairbank.values.time import Instant

revision = "0004"
down_revision = "0003"

_BLOCK = 1_000  # the increment of the sequence entry_block


def _columns(kind: Any, *names: str) -> list[sa.ColumnClause[Any]]:
    return [sa.column(name, kind) for name in names]


_TOKEN = sa.table(
    "token",
    *_columns(sa.BigInteger, "id"),
    *_columns(sa.LargeBinary, "digest"),
    *_columns(sa.BigInteger, "uid"),
    *_columns(sa.Text, "label", "scopes"),
    *_columns(sa.BigInteger, "created_at", "expires_at", "revoked_at"),
)
_OFFICE = sa.table("office", *_columns(sa.BigInteger, "seq"), *_columns(sa.LargeBinary, "link"))
_JOURNAL = sa.table(
    "journal",
    *_columns(sa.BigInteger, "id", "book", "seq", "at"),
    *_columns(sa.Text, "kind"),
    *_columns(sa.BigInteger, "amount", "run", "owner", "actor", "acting_as"),
    *_columns(sa.Text, "key"),
    *_columns(sa.LargeBinary, "digest"),
    *_columns(sa.BigInteger, "deposited", "charged", "held", "credit_limit", "overrun"),
    *_columns(sa.Text, "comment", "details"),
    *_columns(sa.LargeBinary, "link"),
)


def upgrade() -> None:
    connection = op.get_bind()
    tokens = [token_of(row) for row in connection.execute(sa.select(_TOKEN).order_by(_TOKEN.c.id))]
    if not tokens:
        return
    head = Office(*connection.execute(sa.select(_OFFICE)).one())
    book = Book(office=head, entry_ids=_fresh_numbers(connection))
    adopt(book, tokens, Instant(int(time.time())), ADOPTED)
    names = _JOURNAL.c.keys()
    connection.execute(sa.insert(_JOURNAL), [dict(zip(names, entry_row(entry), strict=True)) for entry in book.entries])
    after = book.office or head
    connection.execute(sa.update(_OFFICE).values(seq=after.seq, link=after.link))


def _fresh_numbers(connection: sa.Connection) -> Iterator[int]:
    """Numbers for new entries, as the stores draw them."""
    if connection.dialect.name != "postgresql":
        return count((connection.execute(sa.text("SELECT max(id) FROM journal")).scalar() or 0) + 1)
    return _drawn(connection)


def _drawn(connection: sa.Connection) -> Iterator[int]:
    while True:
        first = int(connection.execute(sa.text("SELECT nextval('entry_block')")).scalar_one())
        yield from range(first, first + _BLOCK)
