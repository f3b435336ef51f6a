"""Reading from the books in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import TypeVar

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.book import Office
from fairbank.bank.entry import OFFICE, Entry, Kind
from fairbank.bank.project import Member, Project
from fairbank.bank.query import AllocationQuery, EntryQuery, Page, ProjectQuery, RunQuery, Sight, Usage, UsageBy, UsageQuery, UserRow
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.token import Token
from fairbank.cluster.job import COMPLETED, Run
from fairbank.store.memory_tables import Tables
from fairbank.store.usage import named
from fairbank.values.time import DAY, Instant

T = TypeVar("T")

_ID = attrgetter("id")
_GROUP: dict[UsageBy, Callable[[RunRecord], str | int]] = {
    UsageBy.USER: attrgetter("owner"),
    UsageBy.PARTITION: attrgetter("partition"),
    UsageBy.ALLOCATION: attrgetter("allocation"),
    UsageBy.DAY: lambda run: (run.ended or 0) // DAY,
    UsageBy.MONTH: lambda run: (run.ended or 0) // DAY,
}


class MemoryReader:
    """A Reader over tables that nobody changes while it looks."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]:
        q = query
        wanted = (
            each
            for each in self._tables.projects.values()
            if (q.sight.everything or each.id in q.sight.projects)
            and _among(each.id, q.ids)
            and _equal((each.gname, q.gname), (each.gid, q.gid), (each.account, q.account))
        )
        return _paged(wanted, _ID, page)

    def members(self, project: int) -> list[Member]:
        return [each for each in self.scan_members() if each.project == project]

    def memberships(self, uid: int) -> list[Member]:
        return [each for each in self.scan_members() if each.uid == uid]

    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        q = query
        wanted = (
            each
            for each in self._tables.allocations.values()
            if (q.sight.everything or each.project in q.sight.projects)
            and _among(each.id, q.ids)
            and _among(each.project, q.projects)
            and _equal((each.resource, q.resource), (each.category, q.category), (each.state, q.state))
            and (q.active_at is None or each.covers(q.active_at))
        )
        return _paged(wanted, _ID, page)

    def users(self, allocations: frozenset[int]) -> list[UserRow]:
        return [each for each in self.scan_users() if each.allocation in allocations]

    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]:
        q = query
        wanted = (
            each
            for each in self._tables.runs.values()
            if self._sees(q.sight, each.allocation, each.owner)
            and _among(each.id, q.ids)
            and _among(self._project_of(each.allocation), q.projects)
            and _equal((each.allocation, q.allocation), (each.owner, q.owner), (each.state, q.state))
            and _equal((each.run.cluster, q.cluster), (each.run.job_id, q.job_id), (each.partition, q.partition))
            and _during(each.start, q.since, q.until)
        )
        return _paged(wanted, _ID, page)

    def run(self, run: Run) -> RunRecord | None:
        return self._tables.runs.get(run)

    def entries(self, query: EntryQuery, page: Page) -> list[Entry]:
        q = query
        wanted = (
            each
            for each in self._tables.entries.values()
            if self._sees(q.sight, each.book, each.owner if each.kind is Kind.REFUSAL else None)
            and _among(each.id, q.ids)
            and _among(self._project_of(each.book), q.projects)
            and _among(each.kind, q.kinds)
            and _equal((each.book, q.book), (each.owner, q.owner))
            and _during(each.at, q.since, q.until)
        )
        return _paged(wanted, _ID, page)

    def statement(self, book: int, since: Instant, until: Instant, page: Page) -> list[Entry]:
        opening, closing = self.before(book, since), self.before(book, until)
        entries = self._tables.books.get(book, [])[opening.seq if opening else 0 : closing.seq if closing else 0]
        return _paged(entries, attrgetter("seq"), page)

    def before(self, book: int, at: Instant) -> Entry | None:
        entries = self._tables.books.get(book, [])
        if not entries or entries[0].at >= at:
            return None
        return next(each for each in reversed(entries) if each.at < at)

    def usage(self, query: UsageQuery, by: UsageBy) -> list[Usage]:
        groups: dict[str | int, list[RunRecord]] = {}
        for run in self._used(query):
            groups.setdefault(_GROUP[by](run), []).append(run)
        return named((_usage(group, runs) for group, runs in sorted(groups.items(), key=itemgetter(0))), by)

    def overdue(self, now: Instant, limit: int) -> list[Run]:
        late = [each for each in self._tables.runs.values() if each.state is RunState.HELD and each.until <= now]
        return [each.run for each in sorted(late, key=attrgetter("until", "id"))[:limit]]

    def expired(self, now: Instant, limit: int) -> list[int]:
        over = [each for each in self._tables.allocations.values() if each.end <= now and each.state is not AllocationState.ENDED]
        return [each.id for each in sorted(over, key=attrgetter("end", "id"))[:limit]]

    def office(self) -> Office:
        return self._tables.office

    def tokens(self, uid: int | None) -> list[Token]:
        return [each for each in sorted(self._tables.tokens.values(), key=_ID) if uid is None or each.uid == uid]

    def token(self, digest: bytes) -> Token | None:
        return next((each for each in self._tables.tokens.values() if each.digest == digest), None)

    def scan_entries(self) -> Iterator[Entry]:
        for _, entries in sorted(self._tables.books.items()):
            yield from entries

    def scan_allocations(self) -> Iterator[Allocation]:
        return iter(sorted(self._tables.allocations.values(), key=_ID))

    def scan_runs(self) -> Iterator[RunRecord]:
        return iter(sorted(self._tables.runs.values(), key=attrgetter("allocation", "id")))

    def scan_users(self) -> Iterator[UserRow]:
        return (UserRow(*pair, sums) for pair, sums in sorted(self._tables.users.items(), key=lambda item: item[0]))

    def scan_projects(self) -> Iterator[Project]:
        return iter(sorted(self._tables.projects.values(), key=_ID))

    def scan_members(self) -> Iterator[Member]:
        return iter(sorted(self._tables.members.values(), key=attrgetter("project", "uid")))

    def count_entries(self) -> int:
        return len(self._tables.entries)

    def _used(self, query: UsageQuery) -> Iterator[RunRecord]:
        q = query
        for each in self._tables.runs.values():
            if (
                each.state is RunState.CHARGED
                and self._sees(q.sight, each.allocation, each.owner)
                and _among(self._project_of(each.allocation), q.projects)
                and _equal((each.allocation, q.allocation), (each.owner, q.owner))
                and _equal((self._tables.allocations[each.allocation].resource, q.resource))
                and _during(each.ended or 0, q.since, q.until)
            ):
                yield each

    def _project_of(self, book: int) -> int | None:
        return None if book == OFFICE else self._tables.allocations[book].project

    def _sees(self, sight: Sight, book: int, owner: int | None) -> bool:
        if sight.everything or self._project_of(book) in sight.projects:
            return True
        return owner is not None and owner == sight.uid


def _among(value: object, wanted: frozenset[T] | None) -> bool:
    return wanted is None or value in wanted


def _equal(*pairs: tuple[object, object]) -> bool:
    return all(wanted is None or value == wanted for value, wanted in pairs)


def _during(at: int, since: Instant | None, until: Instant | None) -> bool:
    return (since is None or at >= since) and (until is None or at < until)


def _paged(rows: Iterable[T], number: Callable[[T], int], page: Page) -> list[T]:
    after = page.after
    if after is not None:
        rows = (row for row in rows if (number(row) < after if page.newest_first else number(row) > after))
    return sorted(rows, key=number, reverse=page.newest_first)[: page.size]


def _usage(group: str | int, runs: list[RunRecord]) -> Usage:
    return Usage(
        group,
        runs=len(runs),
        failed=sum(run.outcome != COMPLETED for run in runs),
        charged=sum(run.charged - run.refunded for run in runs),
        elapsed_seconds=sum(run.elapsed_seconds or 0 for run in runs),
    )
