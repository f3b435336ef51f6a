"""Batch in an SQL database: locks, reads, writes, and their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from fairbank.bank.allocation import Allocation
from fairbank.bank.needs import Needs, told_by
from fairbank.bank.project import Project, with_all_above
from fairbank.bank.run import RunRecord, UserSums
from fairbank.bank.token import Token
from fairbank.bank.working_set import Office, WorkingSet
from fairbank.store import schema
from fairbank.store.contract import Contention
from fairbank.store.sql.project_use import (
    allocations_of,
    children_of,
    open_runs_of,
    projects_in_use,
)
from fairbank.store.sql.rows import (
    Row,
    allocation_row,
    entry_of,
    job_details_row,
    member_of,
    member_row,
    project_of,
    project_row,
    run_row,
    token_of,
    token_row,
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
        self._office: Office | None = None

    @abstractmethod
    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        """Return the rows that the named statement finds for the keys."""

    @abstractmethod
    def _load(self, needs: Needs) -> tuple[list[Allocation], list[RunRecord]]:
        """Lock and read the allocations by id, and read the runs as they are under the lock."""

    @abstractmethod
    def _fresh(
        self, needs: Needs
    ) -> tuple[Iterable[int], Iterable[int], Iterable[int], Iterable[int]]:
        """Return ids for new entries, allocations, projects and tokens."""

    @abstractmethod
    def _write_batch(self, work: WorkingSet) -> None:
        """Write sums, runs and entries: the changes of every hold and charge."""

    def load(self, needs: Needs) -> WorkingSet:
        """Lock the allocations, then the registry, then read. Raises Contention.

        Allocations are locked only the first time: one opened since may have a lower id than those
        locked.
        """
        if self._read_runs is None:
            self._read_runs = []
            closing = allocations_of(self._connection, needs.closing)
            wanted = (
                msgspec.structs.replace(needs, allocations=needs.allocations | closing)
                if closing
                else needs
            )
            if wanted.allocations or wanted.funds or wanted.runs:
                allocations, self._read_runs = self._load(wanted)
                self._loaded = {each.id: each for each in allocations}
        runs = self._read_runs
        if needs.office:
            self._office = Office(*self._find("office")[0])
        if (
            not allocations_of(self._connection, needs.closing) <= self._loaded.keys()
        ):  # nobody opens one while the office is locked
            raise Contention(
                "an allocation of a project that is to be removed was opened meanwhile"
            )
        entry_ids, allocation_ids, project_ids, token_ids = self._fresh(needs)
        return WorkingSet(
            allocations=self._loaded.values(),
            runs=runs,
            users=self._users(needs, runs),
            known=map(entry_of, self._find("known", columns(needs.keys, 2))) if needs.keys else (),
            told=(
                map(entry_of, self._find("told", [list(told)]))
                if (told := told_by(needs, runs))
                else ()
            ),
            undoing=(
                map(entry_of, self._find("undoing", [list(needs.undone)])) if needs.undone else ()
            ),
            words=(
                map(entry_of, self._find("words", columns(needs.reworded, 2)))
                if needs.reworded
                else ()
            ),
            projects=self._projects(needs),
            held_runs=open_runs_of(self._connection, needs.closing, len(needs.runs) + 1),
            used=projects_in_use(self._connection, needs.renaming),
            members=(
                map(member_of, self._find("members", columns(needs.members, 2)))
                if needs.members
                else ()
            ),
            tokens=self._tokens(needs),
            office=self._office,
            entry_ids=entry_ids,
            allocation_ids=allocation_ids,
            project_ids=project_ids,
            token_ids=token_ids,
        )

    def write(self, work: WorkingSet) -> None:
        """Write the changes, each row after those it refers to."""
        self._write_office(work)
        self._write_terms(work)
        self._write_batch(work)

    def _users(
        self, needs: Needs, runs: Iterable[RunRecord]
    ) -> Iterable[tuple[int, int, UserSums]]:
        pairs = set(needs.caps)
        for each in self._loaded.values():
            pairs.update(
                (each.id, owner) for owner in needs.owners.get((each.project, each.resource), ())
            )
        pairs.update((each.allocation, each.owner) for each in runs)
        if not pairs:
            return ()
        return (
            (allocation, uid, UserSums(*sums))
            for allocation, uid, *sums in self._find("users", columns(pairs, 2))
        )

    def _projects(self, needs: Needs) -> Iterable[Project]:
        """Return the projects wanted by id or for their allocations, those that a new one would
        collide with, and the children of one that closes.
        """
        numbers = needs.projects | {
            self._loaded[each].project for each in needs.enriched if each in self._loaded
        }
        if not numbers and not needs.creating:
            return ()
        creating = needs.creating
        names, gids, accounts = (
            [each.gname for each in creating],
            [each.gid for each in creating],
            [each.account for each in creating],
        )
        wanted = map(
            project_of, self._find("projects", [list(numbers)], [names], [gids], [accounts])
        )
        found = chain(wanted, children_of(self._connection, needs.closing))
        if not needs.lines:
            return found
        return with_all_above(
            found,
            lambda numbers: map(
                project_of, self._find("projects", [list(numbers)], [[]], [[]], [[]])
            ),
        )

    def _tokens(self, needs: Needs) -> Iterable[Token]:
        """Return the tokens wanted by id, and those with the same secret."""
        if not needs.tokens and not needs.digests:
            return ()
        t = schema.token.c
        found = select(schema.token).where(
            or_(t.id.in_(sorted(needs.tokens)), t.digest.in_(sorted(needs.digests)))
        )
        return map(token_of, self._connection.execute(found))

    def _write_office(self, work: WorkingSet) -> None:
        """Write projects, members, tokens and the head of the registry's book. Rare, so plain SQL
        suffices.
        """
        changes = work.changes
        if changes.changed_projects:  # first: a new one may have the names that were given up
            changed = [
                self._named(schema.project, project_row(work.projects[number]))
                for number in sorted(changes.changed_projects)
            ]
            self._connection.execute(
                update(schema.project).where(schema.project.c.id == bindparam("number")), changed
            )
        if changes.new_projects:
            self._insert(
                schema.project,
                [project_row(work.projects[number]) for number in sorted(changes.new_projects)],
            )
        if changes.changed_members:
            member = schema.member.c
            self._connection.execute(
                delete(schema.member).where(
                    member.project == bindparam("of"), member.uid == bindparam("who")
                ),
                [{"of": project, "who": uid} for project, uid in sorted(changes.changed_members)],
            )
            left = [
                member_row(work.members[pair])
                for pair in sorted(changes.changed_members)
                if pair in work.members
            ]
            if left:
                self._insert(schema.member, left)
        if changes.new_tokens:
            self._insert(
                schema.token,
                [token_row(work.tokens[number]) for number in sorted(changes.new_tokens)],
            )
        if changes.changed_tokens:
            revoked = [
                {"number": number, "at": work.tokens[number].revoked}
                for number in sorted(changes.changed_tokens)
            ]
            t = schema.token.c
            self._connection.execute(
                update(schema.token)
                .where(t.id == bindparam("number"))
                .values(revoked_at=bindparam("at")),
                revoked,
            )
        if work.office is not None and work.office != self._office:
            self._connection.execute(
                update(schema.office).values(seq=work.office.seq, link=work.office.link)
            )

    def _write_terms(self, work: WorkingSet) -> None:
        """Write each change of terms with the sums of its time, which the database compares with
        the credit limit; then new allocations.

        The order matters because the database checks for overlaps at each step: an allocation that
        was ended or moved makes room for another.
        """
        changes = work.changes
        amended = [
            self._named(schema.allocation, allocation_row(each))
            for each in changes.amended
            if each.id not in changes.opened
        ]
        if amended:
            self._connection.execute(
                update(schema.allocation).where(schema.allocation.c.id == bindparam("number")),
                amended,
            )
        if changes.opened:
            self._insert(
                schema.allocation,
                [allocation_row(work.allocations[number]) for number in sorted(changes.opened)],
            )

    @staticmethod
    def _named(table: Any, row: tuple[Any, ...]) -> dict[str, Any]:
        named = dict(zip(table.c.keys(), row, strict=True))
        return {**named, "number": named.pop("id")}

    def _insert(self, table: Any, rows: list[tuple[Any, ...]]) -> None:
        names = table.c.keys()
        self._connection.execute(
            insert(table), [dict(zip(names, row, strict=True)) for row in rows]
        )


def columns(rows: Collection[Sequence[Any]], width: int) -> Columns:
    """Transpose `rows` into `width` columns, also if there are no rows."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def changed_sums(work: WorkingSet) -> list[tuple[Any, ...]]:
    """Return the sums that entries changed, by allocation id."""
    return [
        _SUMS(work.allocations[number])
        for number in sorted(work.changes.touched - work.changes.opened)
    ]


def changed_users(work: WorkingSet) -> list[tuple[Any, ...]]:
    """Return user rows, some of them new, by key."""
    found = ((pair, work.users[pair]) for pair in sorted(work.changes.changed_users))
    return [(*pair, sums.charged, sums.held, sums.cap) for pair, sums in found]


def changed_runs(work: WorkingSet) -> list[tuple[Any, ...]]:
    """Return the changed columns of runs, by id."""
    found = sorted((work.runs[run] for run in work.changes.changed_runs), key=_ID)
    return [
        (
            *(
                r.id,
                r.state._value_,
                r.held,
                r.charged,
                r.written_off,
                r.refunded,
                r.until,
                r.ended,
                r.outcome,
                r.elapsed_seconds,
                r.set_by,
            ),
            *job_details_row(r.particulars),
        )
        for r in found
    ]


def new_runs(work: WorkingSet) -> list[tuple[Any, ...]]:
    """Return the rows of new runs."""
    return [
        run_row(record)
        for record in sorted((work.runs[run] for run in work.changes.new_runs), key=_ID)
    ]
