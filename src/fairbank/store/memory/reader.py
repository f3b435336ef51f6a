"""Reader of the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from fairbank.bank.allocation import Allocation, AllocationState, AllocationTerms
from fairbank.bank.entry import OF_TERMS, Entry, Kind, undone_entry
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
from fairbank.bank.refusals import CREDIT_REASONS, refusal_of
from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import RegistryHead
from fairbank.cluster.job import COMPLETED, Run
from fairbank.cluster.share import ShareQuery, ShareRecord, share_key
from fairbank.core.time import Instant
from fairbank.core.usage_groups import UsageBy
from fairbank.store.memory.conditions import (
    all_equal,
    has_fields,
    is_between,
    is_matching_allocation,
    is_matching_refusal,
    is_one_of,
    page_of,
)
from fairbank.store.memory.tables import MemoryTables
from fairbank.store.memory.usage_groups import runs_by_group
from fairbank.store.memory.visibility import can_see, can_see_run, is_own, project_of, ran_for
from fairbank.store.time_index import count_before
from fairbank.store.usage import page_of_groups, usage_of_runs

T = TypeVar("T")

_ID, _UID = attrgetter("id"), attrgetter("uid")
_HELD, _UNTIL = attrgetter("held"), attrgetter("reported.until")
_ALLOCATION = attrgetter("allocation")
# Rows of each kind, the key of their order, and the journal that a row belongs to.
_KINDS: dict[
    type,
    tuple[Callable[[MemoryTables], Iterable[Any]], Callable[[Any], Any], Callable[..., int] | None],
] = {
    Project: (lambda tables: tables.projects.values(), _ID, None),
    Member: (lambda tables: tables.members.values(), attrgetter("project", "uid"), None),
    Allocation: (lambda tables: tables.allocations.values(), _ID, _ID),
    UserRow: (MemoryTables.user_rows, attrgetter("allocation", "uid"), _ALLOCATION),
    RunRecord: (lambda tables: tables.runs.values(), attrgetter("allocation", "id"), _ALLOCATION),
    Entry: (lambda tables: tables.entries.values(), attrgetter("allocation", "seq"), _ALLOCATION),
    Token: (lambda tables: tables.tokens.values(), _ID, None),
    ShareRecord: (lambda tables: tables.shares.values(), share_key, None),
}


class MemoryReader:
    """Reader over tables that do not change meanwhile."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def projects(self, query: ProjectQuery, page: Page) -> list[Project]:
        wanted = (
            project
            for project in self._tables.projects.values()
            if (query.visibility.everything or project.id in query.visibility.projects)
            and is_one_of(project.id, query.ids)
            and has_fields(project, query, "gname", "gid", "account", "removed")
        )
        return page_of(wanted, _ID, page)

    def members(self, project: int, page: Page) -> list[Member]:
        return page_of(
            (member for member in self.scan(Member) if member.project == project), _UID, page
        )

    def memberships(self, uid: int) -> list[Member]:
        return [
            member
            for member in self.scan(Member)
            if member.uid == uid and not self._tables.projects[member.project].removed
        ]

    def allocations(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        wanted = (
            allocation
            for allocation in self._tables.allocations.values()
            if _is_drawable(allocation.terms, query)
            and is_one_of(allocation.id, query.ids)
            and not (query.is_without_removed and allocation.state is AllocationState.REMOVED)
            and (
                query.shown_state is None
                or allocation.shown_state(query.shown_state[1]) is query.shown_state[0]
            )
            and (query.open_at is None or self._is_open(allocation, query.open_at, query.or_latest))
            and (allocation.is_short_term or not query.is_short_term)
            and is_matching_allocation(allocation, query.resource, query.category, query.active_at)
        )
        return page_of(wanted, _ID, page)

    def _is_open(self, allocation: Allocation, at: Instant, or_latest: bool) -> bool:
        """Return whether an allocation has not ended at a time, or with `or_latest` is the latest
        of its project and resource.
        """
        terms = allocation.terms
        return allocation.state_at(at) is not AllocationState.ENDED or (
            or_latest
            and not any(
                other.terms.end > terms.end
                for other in self._tables.allocations.values()
                if (other.terms.project, other.terms.resource) == (terms.project, terms.resource)
                and other.state is not AllocationState.REMOVED
            )
        )

    def users(self, allocations: frozenset[int], uid: int | None = None) -> list[UserRow]:
        return [
            row
            for row in self.scan(UserRow)
            if row.allocation in allocations and all_equal((row.uid, uid))
        ]

    def allocation_users(self, allocation: int, page: Page) -> list[UserRow]:
        return page_of(
            (row for row in self.scan(UserRow) if row.allocation == allocation), _UID, page
        )

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        visibility = query.visibility
        charged = [
            row
            for row in self.scan(UserRow)
            if row.sums.charged
            and is_one_of(project_of(self._tables, row.allocation), query.projects)
            and (
                can_see(self._tables, visibility, row.allocation, None)
                or (
                    project_of(self._tables, row.allocation) in visibility.own_jobs_of
                    and row.uid == visibility.uid
                )
            )
            and all_equal((row.allocation, query.allocation), (row.uid, query.owner))
            and (page.after is None or (row.allocation, row.uid) > page.after)
        ][: page.size]
        latest = {
            (run.allocation, run.owner): run.id
            for run in sorted(self._tables.runs.values(), key=_ID)
            if run.state is RunState.CHARGED
        }
        return [
            Debit(row.allocation, row.uid, row.sums.charged, latest.get((row.allocation, row.uid)))
            for row in charged
        ]

    def runs(self, query: RunQuery, page: Page) -> list[RunRecord]:
        wanted = (
            run
            for run in self._tables.runs.values()
            if can_see_run(self._tables, query.visibility, run)
            and is_one_of(run.id, query.ids)
            and is_one_of(run.reported.project, query.projects)
            and is_matching_allocation(
                self._tables.allocations[run.allocation],
                query.resource,
                query.category,
                query.active_at,
            )
            and has_fields(run, query, "allocation", "owner", "state")
            and has_fields(run.reported, query, "partition")
            and has_fields(run.reported.run, query, "cluster", "job_id")
            and is_one_of(run.reported.run.job_id, query.job_ids)
            and (query.closed is None or (run.state is not RunState.HELD) is query.closed)
            and (
                query.failed is None
                or (
                    run.end is not None
                    and (run.end.is_failure if query.failed else run.end.outcome == COMPLETED)
                )
            )
            and (query.measured is None or run.is_measured is query.measured)
            and is_between(run.reported.start, query.since, query.until)
        )
        return page_of(wanted, _ID, page)

    def entries(self, query: EntryQuery, page: Page) -> list[Entry]:
        visible_runs = ran_for(self._tables, query.visibility.projects)
        theirs = ran_for(self._tables, query.projects or frozenset())
        wanted = (
            entry
            for entry in self._tables.entries.values()
            if (
                entry.run in visible_runs
                or can_see(
                    self._tables,
                    query.visibility,
                    entry.allocation,
                    entry.owner if entry.kind is Kind.REFUSAL else None,
                )
                or is_own(self._tables, query.visibility, entry)
            )
            and is_one_of(entry.id, query.ids)
            and (
                entry.run in theirs
                or is_one_of(
                    None if entry.run else project_of(self._tables, entry.allocation),
                    query.projects,
                )
            )
            and is_one_of(entry.kind, query.kinds)
            and has_fields(entry, query, "allocation", "owner")
            and is_between(entry.at, query.since, query.until)
        )
        return page_of(wanted, _ID, page)

    def refusals(self, query: RefusalQuery, page: Page) -> list[Entry]:
        with_refusal = (
            (entry, refusal_of(entry))
            for entry in self._tables.entries.values()
            if entry.kind is Kind.REFUSAL
        )
        wanted = (
            entry
            for entry, refusal in with_refusal
            if (
                refusal.project in query.visibility.projects
                or can_see(self._tables, query.visibility, entry.allocation, entry.owner)
            )
            and is_one_of(entry.id, query.ids)
            and all_equal((entry.allocation, query.allocation), (entry.owner, query.owner))
            and is_matching_allocation(
                self._tables.allocations.get(entry.allocation),
                None,
                query.category,
                query.active_at,
            )
            and is_between(entry.at, query.since, query.until)
            and is_matching_refusal(refusal, query)
            and (query.sender in (None, entry.actor) or refusal.reason in CREDIT_REASONS)
        )
        return page_of(wanted, _ID, page)

    def statement(
        self,
        allocation: int,
        since: Instant,
        until: Instant,
        page: Page,
        kinds: frozenset[Kind] | None = None,
    ) -> list[Entry]:
        entries = self._tables.journals.get(allocation, [])[
            self._cut(allocation, since) : self._cut(allocation, until)
        ]
        wanted = (entry for entry in entries if is_one_of(entry.kind, kinds))
        return page_of(wanted, attrgetter("seq"), page)

    def term_entries(self, allocations: frozenset[int]) -> list[Entry]:
        return [
            entry
            for allocation in sorted(allocations)
            for entry in self._tables.journals.get(allocation, [])
            if entry.kind in OF_TERMS
        ]

    def undoing_entries(
        self, allocations: frozenset[int], runs: frozenset[int], after: int
    ) -> list[Entry]:
        entries = (
            entry
            for allocation in allocations
            for entry in self._tables.journals.get(allocation, [])
            if entry.id > after
            and (
                undone_entry(entry) is not None
                or (entry.kind in (Kind.REFUND, Kind.RECHARGE) and entry.run in runs)
            )
        )
        return sorted(entries, key=attrgetter("id"))

    def entry_before(self, allocation: int, at: Instant) -> Entry | None:
        place = self._cut(allocation, at)
        return self._tables.journals[allocation][place - 1] if place else None

    def _cut(self, allocation: int, at: Instant) -> int:
        entries = self._tables.journals.get(allocation, [])
        return count_before(lambda seq: entries[seq - 1].at if seq <= len(entries) else None, at)

    def usage(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        groups = runs_by_group(self._tables, query, by)
        return page_of_groups((usage_of_runs(*item) for item in groups.items()), by, page)

    def open_holds(self, allocations: frozenset[int]) -> dict[tuple[int, int], OpenHolds]:
        held: dict[tuple[int, int], list[RunRecord]] = {}
        for run in self._tables.runs.values():
            if run.state is RunState.HELD and run.held and run.allocation in allocations:
                held.setdefault((run.allocation, run.owner), []).append(run)
        return {
            place: OpenHolds(
                sum(map(_HELD, runs)),
                len(runs),
                max(map(_UNTIL, runs)),
                max(run.set_by for run in runs),
            )
            for place, runs in held.items()
        }

    def overdue_runs(self, now: Instant, limit: int) -> list[Run]:
        late = [
            run
            for run in self._tables.runs.values()
            if run.state is RunState.HELD and run.reported.until <= now
        ]
        return [
            run.reported.run for run in sorted(late, key=attrgetter("reported.until", "id"))[:limit]
        ]

    def expired_allocations(self, now: Instant, limit: int) -> list[int]:
        over = [
            allocation
            for allocation in self._tables.allocations.values()
            if allocation.terms.end <= now and allocation.state is AllocationState.ACTIVE
        ]
        over.sort(key=attrgetter("terms.end", "id"))
        return [allocation.id for allocation in over[:limit]]

    def registry(self) -> RegistryHead:
        return self._tables.registry

    def tokens(self, uid: int | None, page: Page) -> list[Token]:
        return page_of(
            (token for token in self.scan(Token) if all_equal((token.uid, uid))), _ID, page
        )

    def token(self, digest: bytes) -> Token | None:
        return next((token for token in self.scan(Token) if token.digest == digest), None)

    def token_by_id(self, number: int) -> Token | None:
        return self._tables.tokens.get(number)

    def scan(self, kind: type[T], journals: JournalRange = ALL_JOURNALS) -> Iterator[T]:
        rows_of, order, journal_of = _KINDS[kind]
        rows = rows_of(self._tables)
        if journal_of is not None:
            rows = (row for row in rows if journal_of(row) in journals)
        return iter(sorted(rows, key=order))

    def share_records(self, query: ShareQuery) -> list[ShareRecord]:
        records = [record for record in self.scan(ShareRecord) if query.is_match(record)]
        return records[: query.limit]

    def count_entries(self) -> int:
        return len(self._tables.entries)

    def repeated_keys(self, limit: int) -> list[RepeatedKey]:
        under: dict[tuple[int, str], list[int]] = {}
        for entry in self._tables.entries.values():
            if entry.key is not None:
                under.setdefault((entry.actor, entry.key), []).append(entry.id)
        repeated = sorted((place, ids) for place, ids in under.items() if len(ids) > 1)
        return [
            RepeatedKey(actor, key, min(ids), max(ids)) for (actor, key), ids in repeated[:limit]
        ]

    def wrong_usage(self, limit: int) -> list[WrongUsage]:
        return []  # usage is counted from the runs


def _is_drawable(terms: AllocationTerms, query: AllocationQuery) -> bool:
    """Return whether an allocation belongs to a project of the query, or is lent to one."""
    visibility = query.visibility
    is_visible = visibility.everything or terms.project in visibility.projects
    return (is_visible and is_one_of(terms.project, query.projects)) or (
        terms.shared and terms.project in query.lenders
    )
