"""Batch in an SQL database: locks, reads, writes, and their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, exists, insert, or_, select, update

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import EFFECTS, Kind
from fairbank.bank.lock_set import LockSet, entries_of_runs
from fairbank.bank.project import Member, Project, with_all_above
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import (
    LoadedEntries,
    NewIds,
    RegistryHead,
    RegistryRows,
    TransactionData,
)
from fairbank.cluster.job import Run
from fairbank.store import schema
from fairbank.store.contract import Contention
from fairbank.store.sql.rows import (
    KINDS,
    Row,
    end_row,
    entry_of,
    job_details_row,
    member_of,
    project_of,
    run_row,
    token_of,
)

_ID = attrgetter("id")
_SUMS = attrgetter("id", "deposited", "charged", "held", "overrun", "seq", "link")

Columns = list[Sequence[Any]]
"""Rows, column by column."""


class SqlTransaction(ABC):
    """Transaction over one connection.

    What it reads after its locks cannot change before it commits; a key or run that another writer
    adds meanwhile makes its write fail with Contention. The statements of holds and charges bypass
    SQLAlchemy, whose description of their results would cost more than the statements.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.driver_connection
        self._loaded: dict[int, Allocation] = {}
        self._read_runs: list[RunRecord] | None = None  # none until the locks are taken
        self._registry: RegistryHead | None = None

    @abstractmethod
    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        """Return the rows that the named statement finds for the keys."""

    @abstractmethod
    def _load(self, locks: LockSet) -> tuple[list[Allocation], list[RunRecord]]:
        """Lock and read the allocations by id, and read the runs as they are under the lock."""

    @abstractmethod
    def _new_ids(self, locks: LockSet) -> NewIds:
        """Return ids for new entries, allocations, projects and tokens."""

    @abstractmethod
    def _write_batch(self, data: TransactionData) -> None:
        """Write sums, runs and entries: the changes of every hold and charge."""

    def load(self, locks: LockSet) -> TransactionData:
        """Lock the allocations by ascending id, then the registry, then read. Raises Contention.

        Every batch locks in this order, so that two batches never wait for each other in a circle
        (a deadlock). Allocations are locked only the first time: one opened since may have a lower
        id than those locked.
        """
        if self._read_runs is None:
            self._read_runs = []
            closing = _allocations_of(self._connection, locks.closing)
            wanted = (
                msgspec.structs.replace(locks, allocations=locks.allocations | closing)
                if closing
                else locks
            )
            if wanted.allocations or wanted.allocation_filters or wanted.runs:
                allocations, self._read_runs = self._load(wanted)
                self._loaded = {allocation.id: allocation for allocation in allocations}
        runs = self._read_runs
        if locks.registry:
            self._registry = RegistryHead(*self._find("registry")[0])
        # From here on none can be opened, because the registry is locked.
        if not _allocations_of(self._connection, locks.closing) <= self._loaded.keys():
            raise Contention(
                "an allocation of a project that is to be removed was opened meanwhile"
            )
        return TransactionData(
            allocations=self._loaded.values(),
            runs=runs,
            users=self._users(locks, runs),
            loaded=self._entries(locks, runs),
            registry=RegistryRows(
                head=self._registry,
                projects=self._projects(locks),
                members=(
                    map(member_of, self._find("members", columns(locks.members, 2)))
                    if locks.members
                    else ()
                ),
                tokens=self._tokens(locks),
                held_runs=_open_runs_of(self._connection, locks.closing, len(locks.runs) + 1),
                used=_projects_in_use(self._connection, locks.renaming),
            ),
            ids=self._new_ids(locks),
        )

    def _entries(self, locks: LockSet, runs: Iterable[RunRecord]) -> LoadedEntries:
        # No statement for an empty set of keys: most batches hold and charge, and undo nothing.
        of_runs = entries_of_runs(locks, runs)
        return LoadedEntries(
            by_key=map(
                entry_of, self._find("entries_by_key", columns(locks.keys, 2)) if locks.keys else ()
            ),
            of_runs=map(entry_of, self._find("entries_by_id", [list(of_runs)]) if of_runs else ()),
            undoing=map(
                entry_of,
                self._find("undoing_entries", [list(locks.undone)]) if locks.undone else (),
            ),
            of_terms=map(
                entry_of,
                self._find("entries_of_terms", columns(locks.subjects, 2))
                if locks.subjects
                else (),
            ),
            moving=_kinds_moved(self._connection, locks.relabelling),
        )

    def write(self, data: TransactionData) -> None:
        """Write the changes, each row after those it refers to."""
        self._write_registry(data)
        self._write_terms(data)
        self._write_batch(data)

    def _users(
        self, locks: LockSet, runs: Iterable[RunRecord]
    ) -> Iterable[tuple[int, int, UserSums]]:
        pairs = set(locks.caps)
        for loaded in self._loaded.values():
            place = loaded.terms.project, loaded.terms.resource
            pairs.update((loaded.id, owner) for owner in locks.owners.get(place, ()))
        pairs.update((run.allocation, run.owner) for run in runs)
        if not pairs:
            return ()
        return (
            (allocation, uid, UserSums(*sums))
            for allocation, uid, *sums in self._find("users", columns(pairs, 2))
        )

    def _projects(self, locks: LockSet) -> Iterable[Project]:
        """Return the projects wanted by id or for their allocations, those that a new one would
        collide with, and the children of one that closes.
        """
        numbers = locks.projects | {
            self._loaded[number].terms.project
            for number in locks.credited
            if number in self._loaded
        }
        if not numbers and not locks.creating:
            return ()
        creating = locks.creating
        names, gids, accounts = (
            [request.gname for request in creating],
            [request.gid for request in creating],
            [request.account for request in creating],
        )
        wanted = map(
            project_of, self._find("projects", [list(numbers)], [names], [gids], [accounts])
        )
        projects = chain(wanted, _children_of(self._connection, locks.closing))
        if not locks.with_parents:
            return projects
        return with_all_above(
            projects,
            lambda numbers: map(
                project_of, self._find("projects", [list(numbers)], [[]], [[]], [[]])
            ),
        )

    def _tokens(self, locks: LockSet) -> Iterable[Token]:
        """Return the tokens wanted by id, and those with the same secret."""
        if not locks.tokens and not locks.digests:
            return ()
        t = schema.token.c
        statement = select(schema.token).where(
            or_(t.id.in_(sorted(locks.tokens)), t.digest.in_(sorted(locks.digests)))
        )
        return map(token_of, self._connection.execute(statement))

    def _write_registry(self, data: TransactionData) -> None:
        """Write projects, members, tokens and the head of the registry. Rare, so plain SQL
        suffices.
        """
        changes = data.changes
        # Changed projects first: a new one may have the names that were given up.
        for kind, rows, changed, new in (
            (Project, data.projects, changes.changed_projects, changes.new_projects),
            (Token, data.tokens, changes.changed_tokens, changes.new_tokens),
        ):
            self._update(kind, [rows[number] for number in sorted(changed)])
            self._insert(kind, [rows[number] for number in sorted(new)])
        if changes.changed_members:
            pairs = sorted(changes.changed_members)
            member = schema.member.c
            self._connection.execute(
                delete(schema.member).where(
                    member.project == bindparam("of"), member.uid == bindparam("who")
                ),
                [{"of": project, "who": uid} for project, uid in pairs],
            )
            self._insert(Member, [data.members[pair] for pair in pairs if pair in data.members])
        if data.registry is not None and data.registry != self._registry:
            self._connection.execute(
                update(schema.registry).values(seq=data.registry.seq, link=data.registry.link)
            )

    def _write_terms(self, data: TransactionData) -> None:
        """Write each change of terms with the sums of its time, which the database compares with
        the credit limit; then new allocations.

        The order matters because the database checks for overlaps at each step: an allocation that
        was ended or moved allows another.
        """
        changes = data.changes
        amended = [
            allocation for allocation in changes.amended if allocation.id not in changes.opened
        ]
        self._update(Allocation, amended)
        self._insert(Allocation, [data.allocations[number] for number in sorted(changes.opened)])

    def _update(self, kind: type, rows: Sequence[Any]) -> None:
        """Write whole rows by their id."""
        if rows:
            table = KINDS[kind].table
            # An update may not use a column's own name as a parameter of its condition.
            numbered = [{**row, "number": row.pop("id")} for row in self._named(kind, rows)]
            self._connection.execute(
                update(table).where(table.c.id == bindparam("number")), numbered
            )

    def _insert(self, kind: type, rows: Sequence[Any]) -> None:
        if rows:
            self._connection.execute(insert(KINDS[kind].table), self._named(kind, rows))

    @staticmethod
    def _named(kind: type, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the cells of each row by column."""
        names = KINDS[kind].table.c.keys()
        return [dict(zip(names, KINDS[kind].row_of(row), strict=True)) for row in rows]


def columns(rows: Collection[Sequence[Any]], width: int) -> Columns:
    """Transpose `rows` into `width` columns, also if there are no rows."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def changed_sums(data: TransactionData) -> list[tuple[Any, ...]]:
    """Return the sums that entries changed, by allocation id."""
    return [
        _SUMS(data.allocations[number])
        for number in sorted(data.changes.touched - data.changes.opened)
    ]


def changed_users(data: TransactionData) -> list[tuple[Any, ...]]:
    """Return user rows, some of them new, by key."""
    changed = ((pair, data.users[pair]) for pair in sorted(data.changes.changed_users))
    return [(*pair, sums.charged, sums.held, sums.cap) for pair, sums in changed]


def changed_runs(data: TransactionData) -> list[tuple[Any, ...]]:
    """Return the changed columns of runs, by id."""
    runs = sorted((data.runs[run] for run in data.changes.changed_runs), key=_ID)
    return [
        (
            r.id,
            r.state._value_,
            r.held,
            r.charged,
            r.written_off,
            r.refunded,
            r.reported.until,
            *end_row(r.end),
            r.set_by,
            *job_details_row(r.reported.job_details),
        )
        for r in runs
    ]


def new_runs(data: TransactionData) -> list[tuple[Any, ...]]:
    """Return the rows of new runs."""
    return [
        run_row(record)
        for record in sorted((data.runs[run] for run in data.changes.new_runs), key=_ID)
    ]


# --- current and past use of a project, read when staff change it ---
#
# Without projects no statement is built: building one in SQLAlchemy takes longer than a whole hold.

_ALLOCATION, _PROJECT, _RUN = schema.allocation.c, schema.project.c, schema.run.c


def _allocations_of(connection: Connection, projects: Collection[int]) -> set[int]:
    """Return the ids of all allocations of these projects."""
    if not projects:
        return set()
    return set(
        connection.execute(
            select(_ALLOCATION.id).where(_ALLOCATION.project.in_(sorted(projects)))
        ).scalars()
    )


def _children_of(connection: Connection, projects: Collection[int]) -> Iterator[Project]:
    """Yield the direct children of these projects, without removed ones."""
    if not projects:
        return iter(())
    statement = select(schema.project).where(
        _PROJECT.parent.in_(sorted(projects)), _PROJECT.removed.is_(False)
    )
    return map(project_of, connection.execute(statement))


def _open_runs_of(
    connection: Connection, projects: Collection[int], most: int
) -> Iterator[tuple[int, Run]]:
    """Yield runs of these projects with an open hold: at most `most` per project."""
    for project in sorted(projects):
        held = (_RUN.project == project, _RUN.state == RunState.HELD.value)
        statement = (
            select(_RUN.cluster, _RUN.job_id, _RUN.submitted, _RUN.restart).where(*held).limit(most)
        )
        yield from ((project, Run(*row)) for row in connection.execute(statement))


def _kinds_moved(
    connection: Connection, allocations: Collection[int]
) -> Iterator[tuple[int, Kind]]:
    """Yield the kinds of entries that moved credit in these allocations."""
    if not allocations:
        return iter(())
    journal = schema.journal.c
    kinds = [kind.value for kind in EFFECTS]
    statement = (
        select(journal.allocation, journal.kind)
        .where(journal.allocation.in_(sorted(allocations)), journal.kind.in_(kinds))
        .distinct()
    )
    return ((number, Kind(kind)) for number, kind in connection.execute(statement))


def _projects_in_use(connection: Connection, projects: Collection[int]) -> list[int]:
    """Return those of the projects that have, or had, an allocation or a run."""
    if not projects:
        return []
    project = schema.project.c.id
    used = or_(
        exists().where(_ALLOCATION.project == project), exists().where(_RUN.project == project)
    )
    return list(
        connection.execute(select(project).where(project.in_(sorted(projects)), used)).scalars()
    )
