"""Reader of an SQL database: one snapshot, one statement per query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Select, func, select

from fairbank.bank.allocation import NO_LINK, Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.project import Member, Project
from fairbank.bank.query import (
    ALL_JOURNALS,
    AllocationQuery,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    GroupPage,
    JournalRange,
    OpenHolds,
    Page,
    ProjectQuery,
    RefusalQuery,
    RepeatedKey,
    RunQuery,
    Usage,
    UsageQuery,
    UserRow,
    WrongUsage,
)
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import RegistryHead
from fairbank.cluster.job import Run
from fairbank.cluster.share import ShareQuery, ShareRecord, share_key
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.store import schema
from fairbank.store.sql import journal_statements, statements
from fairbank.store.sql.rows import (
    KINDS,
    Row,
    allocation_of,
    entry_of,
    member_of,
    project_of,
    run_of,
    share_record_of,
    token_of,
    user_of,
)
from fairbank.store.sql.usage_statement import usage
from fairbank.store.sql.usage_sums import wrong_sums
from fairbank.store.usage import page_of_groups, usage_of_row

T = TypeVar("T")

_ROWS_AT_ONCE = 2_000


class SqlReader:
    """Reader over one connection, inside the transaction of its snapshot."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._streams: list[CursorResult[Any]] = []

    def close(self) -> None:
        """Close streams that were not read to the end. The connection belongs to the caller."""
        for rows in self._streams:
            rows.close()

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]:
        return self._all(statements.projects(query, page), project_of)

    def members(self, project: int, page: Page) -> list[Member]:
        return self._all(statements.members(project, page), member_of)

    def memberships(self, uid: int) -> list[Member]:
        m, p = schema.member.c, schema.project.c
        present = select(p.id).where(p.removed.is_(False))
        return self._all(
            select(schema.member).where(m.uid == uid, m.project.in_(present)).order_by(m.project),
            member_of,
        )

    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        return self._all(statements.allocations(query, page), allocation_of)

    def users(self, allocations: frozenset[int], uid: int | None = None) -> list[UserRow]:
        return self._all(statements.users(allocations, uid), user_of)

    def allocation_users(self, allocation: int, page: Page) -> list[UserRow]:
        return self._all(statements.allocation_users(allocation, page), user_of)

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        return self._all(statements.debits(query, page), lambda row: Debit(*row))

    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]:
        return self._all(statements.runs(query, page), run_of)

    def entries(self, query: EntryQuery, page: Page) -> list[Entry]:
        return self._all(journal_statements.entries(query, page), entry_of)

    def refusals(self, query: RefusalQuery, page: Page) -> list[Entry]:
        return self._all(journal_statements.refusals(query, page), entry_of)

    def statement(
        self,
        allocation: int,
        since: Instant,
        until: Instant,
        page: Page,
        kinds: frozenset[Kind] | None = None,
    ) -> list[Entry]:
        period = {"allocation": allocation, "since": since, "until": until}
        return self._all(journal_statements.statement(page, kinds), entry_of, **period)

    def term_entries(self, allocations: frozenset[int]) -> list[Entry]:
        return self._all(journal_statements.term_entries(allocations), entry_of)

    def undoing_entries(
        self, allocations: frozenset[int], runs: frozenset[int], after: int
    ) -> list[Entry]:
        return self._all(journal_statements.undoing_entries(allocations, runs, after), entry_of)

    def entry_before(self, allocation: int, at: Instant) -> Entry | None:
        return self._one(journal_statements.BEFORE, entry_of, allocation=allocation, at=at)

    def usage(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        return page_of_groups(self._all(usage(query, by, page), usage_of_row), by, page)

    def open_holds(self, allocations: frozenset[int]) -> dict[tuple[int, int], OpenHolds]:
        rows = self.connection.execute(statements.open_holds(allocations))
        return {
            (allocation, owner): OpenHolds(int(held), runs, deadline, set_by)
            for allocation, owner, held, runs, deadline, set_by in rows
        }

    def overdue_runs(self, now: Instant, limit: int) -> list[Run]:
        return self._all(statements.overdue(now, limit), lambda row: Run(*row))

    def expired_allocations(self, now: Instant, limit: int) -> list[int]:
        return self._all(statements.expired(now, limit), lambda row: int(row[0]))

    def registry(self) -> RegistryHead:
        o = schema.registry.c
        return self._one(
            select(o.seq, o.link).where(o.id == 0), lambda row: RegistryHead(*row)
        ) or RegistryHead(0, NO_LINK)

    def tokens(self, uid: int | None, page: Page) -> list[Token]:
        return self._all(statements.tokens(uid, page), token_of)

    def token(self, digest: bytes) -> Token | None:
        return self._one(select(schema.token).where(schema.token.c.digest == digest), token_of)

    def token_by_id(self, number: int) -> Token | None:
        return self._one(select(schema.token).where(schema.token.c.id == number), token_of)

    def scan(self, kind: type[T], journals: JournalRange = ALL_JOURNALS) -> Iterator[T]:
        """Fetch only a few rows at once, however long the table is."""
        self._remove_time_limit()
        table, value_of, _, order, is_by_journal = KINDS[kind]
        columns = [table.c[name] for name in order]
        statement = select(table).order_by(*columns)
        if is_by_journal:
            statement = statement.where(*journal_statements.of_journals(columns[0], journals))
        with self.connection.execute(
            statement, execution_options={"yield_per": _ROWS_AT_ONCE}
        ) as rows:
            self._streams.append(rows)
            for some in rows.partitions():
                yield from map(value_of, some)
            self._streams.remove(rows)

    def share_records(self, query: ShareQuery) -> list[ShareRecord]:
        records = self._all(statements.share_records(query), share_record_of)
        # Databases sort texts each in its own way. A page keeps the order of the database.
        return records if query.limit else sorted(records, key=share_key)

    def count_entries(self) -> int:
        self._remove_time_limit()
        return int(
            self.connection.execute(select(func.count()).select_from(schema.journal)).scalar_one()
        )

    def repeated_keys(self, limit: int) -> list[RepeatedKey]:
        self._remove_time_limit()
        return self._all(journal_statements.repeated_keys(limit), lambda row: RepeatedKey(*row))

    def wrong_usage(self, limit: int) -> list[WrongUsage]:
        self._remove_time_limit()
        return self._all(
            wrong_sums(limit), lambda row: WrongUsage(row[0], int(row[1]), int(row[2]))
        )

    def _remove_time_limit(self) -> None:
        """Remove the time limit of this snapshot's statements: whole tables take long."""
        if self.connection.dialect.name == "postgresql":
            self.connection.exec_driver_sql("SET LOCAL statement_timeout = 0")

    def _all(self, statement: Select[Any], value_of: Callable[[Row], T], **values: int) -> list[T]:
        return [value_of(row) for row in self.connection.execute(statement, values)]

    def _one(self, statement: Select[Any], value_of: Callable[[Row], T], **values: int) -> T | None:
        row = self.connection.execute(statement, values).first()
        return None if row is None else value_of(row)
