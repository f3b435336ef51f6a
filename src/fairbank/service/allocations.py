"""Use cases of allocations: list, show, change, deposit, withdraw and transfer."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairbank.bank.allocation import Allocation, ShownState
from fairbank.bank.entry import Entry, StateSince, state_since
from fairbank.bank.query import (
    AllocationQuery,
    Balance,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    Page,
    UserRow,
)
from fairbank.bank.requests import Amend, Deposit, Open, SetCap, Transfer, Withdraw
from fairbank.bank.rules import Outcome
from fairbank.bank.run import UserSums
from fairbank.core.errors import Forbidden, NotFound
from fairbank.core.ids import user_uid
from fairbank.core.time import Instant
from fairbank.service.access.identity import Action, Identity, check_allowed
from fairbank.service.statement import Statement, VisibleJournal, entry_before
from fairbank.service.use_cases import UseCases, only
from fairbank.store.contract import Reader


class Allocations(UseCases):
    """Use cases of allocations.

    They raise NotFound for what a user may not see, and Forbidden for what they may not do.
    """

    def balances(self, identity: Identity, query: AllocationQuery, page: Page) -> list[Balance]:
        """Return the allocations that `query.visibility` includes, with the user's own use and cap,
        and with the reasons that staff gave for those that cannot be used now.

        Args:
            identity: the user whose use and cap are returned.
            query: filters of the allocations. Its visibility is the caller's choice, not that of
                `identity`.
            page: the rows of the page; `page.after` is the number of an allocation.
        """
        with self._store.reading() as reader:
            return self._balances(reader, identity, reader.allocations(query, page))

    def _balances(
        self, reader: Reader, identity: Identity, allocations: Sequence[Allocation]
    ) -> list[Balance]:
        ids = frozenset(allocation.id for allocation in allocations)
        users = reader.users(ids, identity.uid) if ids else []
        sums = {row.allocation: row.sums for row in users}
        since = states_since(reader, allocations, self._clock.now())
        return [
            Balance(allocation, sums.get(allocation.id, UserSums()), since.get(allocation.id))
            for allocation in allocations
        ]

    def parents_of(self, identity: Identity, projects: frozenset[int] | None) -> frozenset[int]:
        """Return the parents whose shared credit the projects may use.

        `projects` is None for the user's own. A user who may use a parent's allocation sees what is
        left of it, but not its statement, users and runs.
        """
        own_projects = identity.visibility.projects if projects is None else projects
        chains = (
            self._project_cache.project_chain(self._project_cache.by_id(number))
            for number in own_projects
        )
        return frozenset(number for _, *parents in chains for number in parents)

    def get_drawable(self, identity: Identity, number: int) -> Balance:
        """Return an allocation of the user's projects, or one of a parent that they may use. Raises
        NotFound.
        """
        balances = self.balances(
            identity,
            AllocationQuery(
                visibility=identity.visibility,
                ids=frozenset({number}),
                lenders=self.parents_of(identity, None),
            ),
            Page(1),
        )
        remedy = "list yours with: fairbank alloc list"
        return only(balances, f"allocation {number}", "allocation", remedy)

    def get(self, identity: Identity, number: int) -> Allocation:
        """Return an allocation of the user's projects.

        Raises NotFound, and Forbidden for a parent's allocation that they may only use.
        """
        query = AllocationQuery(visibility=identity.visibility, ids=frozenset({number}))
        with self._store.reading() as reader:
            allocations = reader.allocations(query, Page(1))
        if not allocations:
            raise self._not_visible(identity, number)
        return allocations[0]

    def _not_visible(self, identity: Identity, number: int) -> Forbidden:
        """Return the error for a parent's allocation; raise NotFound if they may not use it."""
        self.get_drawable(identity, number)
        return Forbidden(
            f"allocation {number} is your parent project's: you may use its credit, but only its"
            " members may see more",
            field="allocation",
            remedy=f"see what yours used of it: fairbank usage --alloc {number}",
        )

    def users(self, identity: Identity, number: int, page: Page) -> list[UserRow]:
        """Return the sums and caps of an allocation's users, by uid. Raises as `get`.

        Args:
            identity: the user who asks. Without the right to read the whole journal they get only
                their own row.
            number: the allocation.
            page: the rows of the page; `page.after` is a uid.
        """
        allocation = self.get(identity, number)
        with self._store.reading() as reader:
            if identity.journal_visibility.can_see(allocation.terms.project):
                return reader.allocation_users(allocation.id, page)
            own = reader.users(frozenset({number}), identity.uid)
            return [row for row in own if page.after is None or row.uid > page.after]

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        """Return what each owner was charged in each allocation, by (allocation, owner)."""
        with self._store.reading() as reader:
            return reader.debits(query, page)

    def statement(
        self,
        identity: Identity,
        number: int,
        period: tuple[Instant, Instant],
        page: Page,
        *,
        every: bool = False,
    ) -> Statement:
        """Return one page of an allocation's journal; `page.after` is a seq. Raises as `get`.

        Args:
            identity: the user who asks.
            number: the allocation.
            period: the period of the entries: its start, and its end, which is excluded.
            page: the newest entries of the period, or the oldest.
            every: also the entries that move no credit. Declined requests of staff, and reports of
                jobs that were wrong in themselves, are only shown to staff, and to who sent them.
        """
        with self._store.reading() as reader:
            allocations = reader.allocations(
                AllocationQuery(visibility=identity.visibility, ids=frozenset({number})), Page(1)
            )
            if not allocations:
                raise self._not_visible(identity, number)
            _check_journal(identity, allocations[0])
            journal = VisibleJournal(reader, number, period, identity, every)
            shown, changes = journal.read(page)
            rows = shown[: page.limit]
            next_ = rows[-1].seq if len(shown) > page.limit else None
            rows = rows[::-1] if page.newest_first else rows
            opening = (
                entry_before(reader, rows[0]) if rows else reader.entry_before(number, period[1])
            )
            (balance,) = self._balances(reader, identity, allocations)
        return Statement(balance, opening, rows[-1] if rows else opening, rows, changes, next_)

    def series(
        self, identity: Identity, number: int, points: int
    ) -> list[tuple[Instant, Entry | None]]:
        """Return times at equal distances in an allocation's term up to now, each with the last
        entry before it. There are none before the term begins.

        Args:
            identity: the user who asks. Raises as `statement`.
            number: the allocation.
            points: number of times.
        """
        allocation = self.get(identity, number)
        _check_journal(identity, allocation)
        start, end = allocation.terms.start, min(allocation.terms.end, self._clock.now())
        parts = points + 1
        times = [Instant(start + (end - start) * part // parts) for part in range(1, parts)]
        with self._store.reading() as reader:
            return [(at, reader.entry_before(number, at)) for at in times if start < end]

    def activity(self, query: EntryQuery, page: Page) -> list[Entry]:
        """Return journal entries of all allocations that `query.visibility` includes."""
        with self._store.reading() as reader:
            return reader.entries(query, page)

    # --- changing ---

    def open(self, identity: Identity, request: Open) -> Outcome:
        """Create an allocation. Raises Forbidden, NotFound."""
        # This includes the first deposit: the credit is part of the decision to make an allocation.
        check_allowed(identity, Action.OPEN_ALLOCATION)
        self._project_cache.by_id(request.terms.project)
        return self._apply(identity, request)

    def amend(self, identity: Identity, request: Amend) -> Outcome:
        """Change the terms of an allocation, or remove it. Raises Forbidden."""
        check_allowed(identity, Action.AMEND_ALLOCATION)
        return self._apply(identity, request)

    def set_cap(self, identity: Identity, request: SetCap) -> Outcome:
        """Cap a user's share of an allocation. Raises Forbidden, NotFound, InvalidInput.

        The ledger checks, with the roles of that moment, if the user may cap this one.
        """
        project = self.get(identity, request.allocation).terms.project
        check_allowed(identity, Action.SET_CAP, project)
        if request.cap is not None:
            user_uid(request.uid)
        return self._apply(
            identity,
            msgspec.structs.replace(
                request, project=project, by=None if identity.superuser else identity.uid
            ),
        )

    def cap_warnings(self, request: SetCap) -> list[str]:
        """Return a warning if the capped user is no member of a project that may use the
        allocation: the number may be a typing error.
        """
        if request.cap is None:
            return []
        with self._store.reading() as reader:
            query = AllocationQuery(ids=frozenset({request.allocation}))
            (allocation,) = reader.allocations(query, Page(1))
        owner = self._project_cache.by_id(allocation.terms.project)
        members_of = [
            self._project_cache.by_id(number)
            for number in self._context.memberships.roles(request.uid)
        ]
        for project in members_of:
            chain = self._project_cache.project_chain(project)
            if owner.id in (chain if allocation.terms.shared else (project.id,)):
                return []
        return [
            f"user {request.uid} is not a member of {owner.account}; if the user is right, add"
            f" them: fairbank project add-user {shlex.quote(owner.account)} {request.uid}"
        ]

    def deposit(self, identity: Identity, request: Deposit) -> Outcome:
        """Deposit credit. Raises Forbidden, NotFound."""
        self.get(identity, request.allocation)
        check_allowed(identity, Action.DEPOSIT)
        return self._apply(identity, request)

    def withdraw(self, identity: Identity, request: Withdraw) -> Outcome:
        """Withdraw unused credit. Raises Forbidden, NotFound."""
        self.get(identity, request.allocation)
        check_allowed(identity, Action.WITHDRAW)
        return self._apply(identity, request)

    def transfer(self, identity: Identity, request: Transfer) -> Outcome:
        """Move credit between allocations of projects that the user leads. Raises Forbidden,
        NotFound.
        """
        check_allowed(identity, Action.TRANSFER, self.get(identity, request.source).terms.project)
        check_allowed(
            identity, Action.TRANSFER, self._transfer_target(identity, request.target).terms.project
        )
        return self._apply(identity, request)

    def _transfer_target(self, identity: Identity, number: int) -> Allocation:
        """Return the allocation that receives the credit. Raises NotFound."""
        try:
            return self.get(identity, number)
        except NotFound as missing:
            missing.field = "to"
            raise


def _check_journal(identity: Identity, allocation: Allocation) -> None:
    """Raise Forbidden for the journal of an allocation if the user sees only their own jobs there:
    without the other entries it would not add up.
    """
    if not identity.journal_visibility.can_see(allocation.terms.project):
        raise Forbidden(
            "this bank shows members only their own jobs and usage, so no whole statement",
            field="allocation",
            remedy="see your own with: fairbank jobs, or fairbank usage --by job",
        )


def states_since(
    reader: Reader, allocations: Iterable[Allocation], now: Instant
) -> Mapping[int | None, StateSince]:
    """Return since when the allocations that are not active have been so, by their ids.

    Args:
        reader: reads the entries that set their terms.
        allocations: the allocations; active ones are left out.
        now: the time at which they have the state.
    """
    stopped = {
        allocation.id: allocation
        for allocation in allocations
        if allocation.shown_state(now) is not ShownState.ACTIVE
    }
    terms: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in reader.term_entries(frozenset(stopped)) if stopped else ():
        terms[entry.allocation].append(entry)
    since = {
        number: state_since(allocation, terms[number], now)
        for number, allocation in stopped.items()
    }
    return {number: state for number, state in since.items() if state is not None}
