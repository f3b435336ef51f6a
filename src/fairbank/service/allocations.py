"""Use cases of allocations: list, show, change, deposit, withdraw and transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationEvent
from fairbank.bank.entry import OF_TERMS, Entry, term_changes
from fairbank.bank.query import (
    AllocationQuery,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    Page,
    UserRow,
)
from fairbank.bank.requests import Amend, Deposit, Open, SetCap, Transfer, Withdraw
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Forbidden, NotFound
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import Action, Identity, check_allowed
from fairbank.service.dry_run import last_terms
from fairbank.service.use_cases import UseCases, only
from fairbank.store.contract import Reader


class Statement(msgspec.Struct, frozen=True):
    """Page of one allocation's journal.

    `opening` is the last entry before the page; None at the beginning of the journal. `changes` are
    the terms that entries of the page changed, by entry number.
    """

    allocation: Allocation
    opening: Entry | None
    entries: list[Entry]
    changes: Mapping[int, dict[str, Any]]


class TermChanges(msgspec.Struct, frozen=True, kw_only=True):
    """New terms of an allocation; None leaves a term as it is."""

    start: Instant | None = None
    end: Instant | None = None
    shared: bool | None = None
    credit_limit: SuMinutes | None = None
    event: AllocationEvent | None = None


class Allocations(UseCases):
    """Use cases of allocations.

    They raise NotFound for what a user may not see, and Forbidden for what they may not do.
    """

    def find(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        """Return the allocations that `query.visibility` includes."""
        with self._store.reading() as reader:
            return reader.allocations(query, page)

    def parents_of(self, identity: Identity, projects: frozenset[int] | None) -> frozenset[int]:
        """Return the parents whose shared credit the projects may use.

        `projects` is None for the user's own. A user who may use a parent's allocation sees what is
        left of it, but not its statement, users and runs.
        """
        own_projects = identity.visibility.projects if projects is None else projects
        chains = (
            self._project_cache.project_chain(self._project_cache.by_id(each))
            for each in own_projects
        )
        return frozenset(number for _, *parents in chains for number in parents)

    def get_drawable(self, identity: Identity, number: int) -> Allocation:
        """Return an allocation of the user's projects, or one of a parent that they may use. Raises
        NotFound.
        """
        found = self.find(
            AllocationQuery(
                visibility=identity.visibility,
                ids=frozenset({number}),
                lenders=self.parents_of(identity, None),
            ),
            Page(1),
        )
        remedy = "list yours with: fairbank alloc list"
        return only(found, f"allocation {number}", "allocation", remedy)

    def get(self, identity: Identity, number: int) -> Allocation:
        """Return an allocation of the user's projects.

        Raises NotFound, and Forbidden for a parent's allocation that they may only use.
        """
        found = self.find(
            AllocationQuery(visibility=identity.visibility, ids=frozenset({number})), Page(1)
        )
        if not found:
            raise self._not_visible(identity, number)
        return found[0]

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
        """Return the sums and caps of an allocation's users, by uid; `page.after` is a uid. Raises
        as `get`.
        """
        allocation = self.get(identity, number)
        with self._store.reading() as reader:
            return reader.allocation_users(allocation.id, page)

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        """Return what each owner was charged in each allocation, by (allocation, owner)."""
        with self._store.reading() as reader:
            return reader.debits(query, page)

    def statement(
        self, identity: Identity, number: int, since: Instant, until: Instant, page: Page
    ) -> Statement:
        """Return one page of an allocation's journal, oldest first; `page.after` is a seq. Raises
        as `get`.
        """
        with self._store.reading() as reader:
            found = reader.allocations(
                AllocationQuery(visibility=identity.visibility, ids=frozenset({number})), Page(1)
            )
            if found:
                entries = reader.statement(number, since, until, page)
                opening = None
                if entries and entries[0].seq > 1:
                    opening = next(
                        iter(
                            reader.statement(
                                number, Instant(0), until, Page(1, after=entries[0].seq - 2)
                            )
                        ),
                        None,
                    )
                elif not entries:
                    opening = reader.entry_before(number, until)
                return Statement(
                    found[0],
                    opening,
                    entries,
                    term_changes(_terms_before(reader, entries), entries),
                )
        raise self._not_visible(identity, number)

    def activity(self, query: EntryQuery, page: Page) -> list[Entry]:
        """Return journal entries of all allocations that `query.visibility` includes."""
        with self._store.reading() as reader:
            return reader.entries(query, page)

    # --- changing ---

    def open(self, identity: Identity, request: Open) -> Outcome:
        """Create an allocation. Raises Forbidden, NotFound."""
        # This includes the first deposit: the credit is part of the decision to make an allocation.
        check_allowed(identity, Action.OPEN_ALLOCATION)
        self._project_cache.by_id(request.project)
        return self._apply(identity, request)

    def amend(
        self, identity: Identity, number: int, terms: TermChanges, comment: str, key: str | None
    ) -> Outcome:
        """Change the terms of an allocation. Raises Forbidden, NotFound."""
        allocation = self.get(identity, number)
        check_allowed(identity, Action.AMEND_ALLOCATION)
        request = Amend(
            allocation=number,
            project=allocation.project,
            resource=allocation.resource,
            comment=comment,
            key=key,
            **msgspec.structs.asdict(terms),
        )
        return self._apply(identity, request)

    def set_cap(self, identity: Identity, request: SetCap) -> Outcome:
        """Cap a user's share of an allocation. Raises Forbidden, NotFound.

        The ledger checks, with the roles of that moment, if the user may cap this one.
        """
        project = self.get(identity, request.allocation).project
        check_allowed(identity, Action.SET_CAP, project)
        return self._apply(
            identity,
            msgspec.structs.replace(
                request, project=project, by=None if identity.superuser else identity.uid
            ),
        )

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
        check_allowed(identity, Action.TRANSFER, self.get(identity, request.source).project)
        check_allowed(
            identity, Action.TRANSFER, self._transfer_target(identity, request.target).project
        )
        return self._apply(identity, request)

    def _transfer_target(self, identity: Identity, number: int) -> Allocation:
        """Return the allocation that receives the credit. Raises NotFound."""
        try:
            return self.get(identity, number)
        except NotFound as missing:
            missing.field = "to"
            raise


def _terms_before(reader: Reader, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry with the terms before the first of these entries that changes them, if
    any.
    """
    first = next((each for each in entries if each.kind in OF_TERMS), None)
    return (
        None
        if first is None or first.seq == 1
        else last_terms(reader, first.allocation, before=first.id)
    )
