"""Restore of an SQL database from a backup, in one transaction.

The triggers of the journal forbid changes and deletions, also during a restore with `replace`: it
drops them and creates them again inside its transaction, so no other session sees the journal
without them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, select, update

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.project import Member, Project
from fairbank.bank.query import UserRow
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import RegistryHead
from fairbank.cluster.share_record import ShareRecord
from fairbank.core.errors import Conflict
from fairbank.core.time import Instant
from fairbank.store import schema
from fairbank.store.sql.rows import (
    allocation_row,
    entry_row,
    member_row,
    project_row,
    run_row,
    token_row,
    user_row,
)
from fairbank.store.sql.share_records import record_row

# Tables are filled in this order and emptied in reverse. Nonces are not in a backup; they stay.
TABLES = (
    schema.project,
    schema.member,
    schema.allocation,
    schema.user_sum,
    schema.run,
    schema.journal,
    schema.token,
    schema.share_figure,
)


class SqlRestore(ABC):
    """Restore over one connection, inside the transaction that its store began."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._revoked: dict[bytes, Instant] = {}

    @abstractmethod
    def _empty(self) -> None:
        """Delete the rows of TABLES, past their triggers."""

    @abstractmethod
    def _insert(self, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert whole rows."""

    def begin(self, *, replace: bool) -> None:
        """Raise Conflict if the store is not empty and must not be replaced."""
        if replace:
            t = schema.token.c
            found = self._connection.execute(
                select(t.digest, t.revoked_at).where(t.revoked_at.is_not(None))
            )
            self._revoked = {
                digest: Instant(at) for digest, at in found if isinstance(at, int)
            }  # SQLite keeps anything in any column
            self._empty()
            self.registry(RegistryHead(0, NO_LINK))
        for table in TABLES:
            if self._connection.execute(select(table).limit(1)).first() is not None:
                raise Conflict(
                    f"the books are not empty: there is a {table.name}",
                    remedy="restore into a new database, or say --replace",
                )

    @abstractmethod
    def end(self) -> None:
        """Set the next ids after everything is inserted."""

    def revoked_tokens(self) -> Mapping[bytes, Instant]:
        return self._revoked

    def projects(self, rows: Sequence[Project]) -> None:
        self._insert(schema.project, map(project_row, rows))

    def members(self, rows: Sequence[Member]) -> None:
        self._insert(schema.member, map(member_row, rows))

    def allocations(self, rows: Sequence[Allocation]) -> None:
        self._insert(schema.allocation, map(allocation_row, rows))

    def users(self, rows: Sequence[UserRow]) -> None:
        self._insert(schema.user_sum, map(user_row, rows))

    def runs(self, rows: Sequence[RunRecord]) -> None:
        self._insert(schema.run, map(run_row, rows))

    def entries(self, rows: Sequence[Entry]) -> None:
        self._insert(schema.journal, map(entry_row, rows))

    def registry(self, head: RegistryHead) -> None:
        self._connection.execute(update(schema.registry).values(seq=head.seq, link=head.link))

    def tokens(self, rows: Sequence[Token]) -> None:
        self._insert(schema.token, map(token_row, rows))

    def share_records(self, rows: Sequence[ShareRecord]) -> None:
        self._insert(schema.share_figure, map(record_row, rows))
