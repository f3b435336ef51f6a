"""One batch in an SQL database: what is locked and read, in which order, and what is written. How is for each database to say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from fairbank.bank.allocation import Allocation
from fairbank.bank.book import Book, Office
from fairbank.bank.needs import Needs, told_by
from fairbank.bank.project import Project
from fairbank.bank.run import RunRecord, UserSums
from fairbank.bank.token import Token
from fairbank.store import schema
from fairbank.store.rows import Row, allocation_row, entry_of, member_of, member_row, project_of, project_row, run_row, token_of, token_row

_ID = attrgetter("id")
_SUMS = attrgetter("id", "deposited", "charged", "held", "overrun", "seq", "link")
_TERMS = attrgetter("start", "end", "state", "shared", "credit_limit")

Columns = list[Sequence[Any]]
"""Rows, column by column."""


class SqlTransaction(ABC):
    """A Transaction over one connection. What it reads after its locks cannot change before it commits.

    The statements of every hold and charge go straight to the driver: describing their results anew each time would cost
    more than the statements themselves.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.driver_connection
        self._loaded: dict[int, Allocation] = {}
        self._office: Office | None = None

    @abstractmethod
    def _find(self, name: str, *wanted: Columns) -> Sequence[Row]:
        """The rows that the named statement finds for the wanted keys."""

    @abstractmethod
    def _load(self, needs: Needs) -> tuple[list[Allocation], list[RunRecord]]:
        """Lock and read the allocations concerned, in the order of their numbers, and read the runs: as they are under the lock."""

    @abstractmethod
    def _fresh(self, needs: Needs) -> tuple[Iterable[int], Iterable[int], Iterable[int], Iterable[int]]:
        """Numbers for new entries, allocations, projects and tokens."""

    @abstractmethod
    def _write_batch(self, book: Book) -> None:
        """Write sums, runs and entries: what every hold and charge changes."""

    def book(self, needs: Needs) -> Book:
        """Lock the allocations, then the office, then read. Raises Contention."""
        runs: list[RunRecord] = []
        if needs.allocations or needs.funds or needs.runs:
            allocations, runs = self._load(needs)
            self._loaded = {each.id: each for each in allocations}
        if needs.office:
            self._office = Office(*self._find("office")[0])
        entry_ids, allocation_ids, project_ids, token_ids = self._fresh(needs)
        return Book(
            allocations=self._loaded.values(),
            runs=runs,
            users=self._users(needs, runs),
            known=map(entry_of, self._find("known", columns(needs.keys, 2))) if needs.keys else (),
            told=map(entry_of, self._find("told", [list(told)])) if (told := told_by(needs, runs)) else (),
            undoing=map(entry_of, self._find("undoing", [list(needs.undone)])) if needs.undone else (),
            projects=self._projects(needs),
            members=map(member_of, self._find("members", columns(needs.members, 2))) if needs.members else (),
            tokens=self._tokens(needs),
            office=self._office,
            entry_ids=entry_ids,
            allocation_ids=allocation_ids,
            project_ids=project_ids,
            token_ids=token_ids,
        )

    def write(self, book: Book) -> None:
        """Write what changed, each row after those it points to."""
        self._write_office(book)
        self._write_terms(book)
        self._write_batch(book)

    def _users(self, needs: Needs, runs: Iterable[RunRecord]) -> Iterable[tuple[int, int, UserSums]]:
        pairs = set(needs.caps)
        for each in self._loaded.values():
            pairs.update((each.id, owner) for owner in needs.owners.get((each.project, each.resource), ()))
        pairs.update((each.allocation, each.owner) for each in runs)
        if not pairs:
            return ()
        return ((allocation, uid, UserSums(*sums)) for allocation, uid, *sums in self._find("users", columns(pairs, 2)))

    def _projects(self, needs: Needs) -> Iterable[Project]:
        """Those wanted by number, and those that a founding would collide with."""
        if not needs.projects and not needs.founding:
            return ()
        founding = needs.founding
        names, gids, accounts = [each.gname for each in founding], [each.gid for each in founding], [each.account for each in founding]
        return map(project_of, self._find("projects", [list(needs.projects)], [names], [gids], [accounts]))

    def _tokens(self, needs: Needs) -> Iterable[Token]:
        """Those wanted by number, and those whose secret is the same."""
        if not needs.tokens and not needs.digests:
            return ()
        t = schema.token.c
        found = select(schema.token).where(or_(t.id.in_(sorted(needs.tokens)), t.digest.in_(sorted(needs.digests))))
        return map(token_of, self._connection.execute(found))

    def _write_office(self, book: Book) -> None:
        """Projects, members, tokens and the head of the office's book: rare, so any SQL will do."""
        if book.new_projects:
            self._insert(schema.project, [project_row(book.projects[number]) for number in sorted(book.new_projects)])
        if book.changed_members:
            member = schema.member.c
            self._connection.execute(
                delete(schema.member).where(member.project == bindparam("of"), member.uid == bindparam("who")),
                [{"of": project, "who": uid} for project, uid in sorted(book.changed_members)],
            )
            left = [member_row(book.members[pair]) for pair in sorted(book.changed_members) if pair in book.members]
            if left:
                self._insert(schema.member, left)
        if book.new_tokens:
            self._insert(schema.token, [token_row(book.tokens[number]) for number in sorted(book.new_tokens)])
        if book.changed_tokens:
            revoked = [{"number": number, "at": book.tokens[number].revoked} for number in sorted(book.changed_tokens)]
            t = schema.token.c
            self._connection.execute(update(schema.token).where(t.id == bindparam("number")).values(revoked_at=bindparam("at")), revoked)
        if book.office is not None and book.office != self._office:
            self._connection.execute(update(schema.office).values(seq=book.office.seq, link=book.office.link))

    def _write_terms(self, book: Book) -> None:
        """Those whose terms changed, with their sums, since the database compares them with the credit limit; then new ones.

        In this order: one that was ended makes room for its successor.
        """
        amended = [self._named(number, book) for number in sorted(book.touched - book.opened) if self._is_amended(number, book)]
        if amended:
            self._connection.execute(update(schema.allocation).where(schema.allocation.c.id == bindparam("number")), amended)
        if book.opened:
            self._insert(schema.allocation, [allocation_row(book.allocations[number]) for number in sorted(book.opened)])

    def _is_amended(self, number: int, book: Book) -> bool:
        return bool(_TERMS(self._loaded[number]) != _TERMS(book.allocations[number]))

    @staticmethod
    def _named(number: int, book: Book) -> dict[str, Any]:
        row = dict(zip(schema.allocation.c.keys(), allocation_row(book.allocations[number]), strict=True))
        return {**row, "number": row.pop("id")}

    def _insert(self, table: Any, rows: list[tuple[Any, ...]]) -> None:
        names = table.c.keys()
        self._connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def columns(rows: Collection[Sequence[Any]], width: int) -> Columns:
    """`rows` turned into `width` columns, also when there are none."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def funds_wanted(needs: Needs) -> Columns:
    """Project, resource, and what of their allocations: first and last instant, and whether also those that are not shared."""
    return columns([(*fund, reach.first, reach.last, reach.own) for fund, reach in needs.funds.items()], 5)


def changed_sums(book: Book) -> list[tuple[Any, ...]]:
    """What every entry of an allocation changes, after its number; like all that follows, in the order of the key."""
    return [_SUMS(book.allocations[number]) for number in sorted(book.touched - book.opened)]


def changed_users(book: Book) -> list[tuple[Any, ...]]:
    """Whole rows, some of them new."""
    found = ((pair, book.users[pair]) for pair in sorted(book.changed_users))
    return [(*pair, sums.charged, sums.held, sums.cap) for pair, sums in found]


def changed_runs(book: Book) -> list[tuple[Any, ...]]:
    """What may change of a run, after its number."""
    found = sorted((book.runs[run] for run in book.changed_runs), key=_ID)
    return [
        (r.id, r.state._value_, r.held, r.charged, r.written_off, r.refunded, r.until, r.ended, r.outcome, r.elapsed_seconds, r.set_by)
        for r in found
    ]


def new_runs(book: Book) -> list[tuple[Any, ...]]:
    """Whole rows."""
    return [run_row(record) for record in sorted((book.runs[run] for run in book.new_runs), key=_ID)]
