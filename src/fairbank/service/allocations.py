"""Allocations: credit granted, moved and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationEvent
from fairbank.bank.changes import changes
from fairbank.bank.entry import OF_TERMS, Entry
from fairbank.bank.ledger import Outcome
from fairbank.bank.query import (
    AllocationQuery,
    Debit,
    DebitPage,
    DebitQuery,
    EntryQuery,
    Page,
    UserRow,
)
from fairbank.bank.wish import Amend, Deposit, Open, Request, SetCap, Transfer, Withdraw
from fairbank.core.errors import Forbidden, Unknown
from fairbank.core.time import Clock, Instant
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import Asker
from fairbank.service.access.permissions import Action, check_allowed
from fairbank.service.dry_run import RequestHandler, apply_request, last_terms
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Reader, Store


class Statement(msgspec.Struct, frozen=True):
    """A page of one allocation's journal: the last entry before the page (None at the book's beginning), then the page, and what its
    entries changed of the terms, by their numbers."""

    allocation: Allocation
    opening: Entry | None
    entries: list[Entry]
    changes: Mapping[int, dict[str, Any]]


class TermChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is to change of an allocation; None leaves a term as it is."""

    start: Instant | None = None
    end: Instant | None = None
    shared: bool | None = None
    credit_limit: SuMinutes | None = None
    event: AllocationEvent | None = None


class Allocations:
    """The use cases around allocations. A foreign allocation is Unknown; what one may see but not do is Forbidden."""

    def __init__(
        self, store: Store, judge: RequestHandler, directory: ProjectCache, clock: Clock
    ) -> None:
        self._store, self._judge, self._directory, self._clock = store, judge, directory, clock

    def find(self, query: AllocationQuery, page: Page) -> list[Allocation]:
        """Allocations, as far as `query.sight` sees them."""
        with self._store.reading() as reader:
            return reader.allocations(query, page)

    def parents_of(self, asker: Asker, projects: frozenset[int] | None) -> frozenset[int]:
        """The parents whose shared credit `projects` draw on; without any, those that the asker's own projects draw on.

        Whoever may draw on an allocation sees what is left on it, but not who else drew: its statement, users and runs are not theirs.
        """
        drawing = asker.sight.projects if projects is None else projects
        lines = (self._directory.project_chain(self._directory.by_id(each)) for each in drawing)
        return frozenset(number for _, *parents in lines for number in parents)

    def get_drawable(self, asker: Asker, number: int) -> Allocation:
        """An allocation of the asker's projects, or one that they draw on. Raises Unknown."""
        found = self.find(
            AllocationQuery(
                sight=asker.sight, ids=frozenset({number}), lenders=self.parents_of(asker, None)
            ),
            Page(1),
        )
        if not found:
            raise Unknown(
                f"there is no allocation {number}",
                field="allocation",
                remedy="list yours with: fairbank alloc list",
            )
        return found[0]

    def get(self, asker: Asker, number: int) -> Allocation:
        """An allocation of the asker's projects. Raises Unknown, and Forbidden for one that they only draw on."""
        found = self.find(AllocationQuery(sight=asker.sight, ids=frozenset({number})), Page(1))
        if not found:
            raise self._not_visible(asker, number)
        return found[0]

    def _not_visible(self, asker: Asker, number: int) -> Forbidden:
        """Raises Unknown where they do not draw on it either."""
        self.get_drawable(asker, number)
        return Forbidden(
            f"allocation {number} is your parent project's: you may draw on it, but the rest is for its own people",
            field="allocation",
            remedy=f"see what yours used of it: fairbank usage --alloc {number}",
        )

    def users(self, asker: Asker, number: int, page: Page) -> list[UserRow]:
        """What each user drew, and the caps, by uid; `page.after` is one. Raises Unknown, Forbidden."""
        allocation = self.get(asker, number)
        with self._store.reading() as reader:
            return reader.allocation_users(allocation.id, page)

    def debits(self, query: DebitQuery, page: DebitPage) -> list[Debit]:
        """What each owner was charged in each allocation, by (allocation, owner)."""
        with self._store.reading() as reader:
            return reader.debits(query, page)

    def statement(
        self, asker: Asker, number: int, since: Instant, until: Instant, page: Page
    ) -> Statement:
        """One page of the allocation's journal in its own order; `page.after` is a seq. Raises Unknown, Forbidden."""
        with self._store.reading() as reader:
            found = reader.allocations(
                AllocationQuery(sight=asker.sight, ids=frozenset({number})), Page(1)
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
                    found[0], opening, entries, changes(_terms_before(reader, entries), entries)
                )
        raise self._not_visible(asker, number)

    def activity(self, query: EntryQuery, page: Page) -> list[Entry]:
        """Journal entries across allocations, as far as `query.sight` sees them."""
        with self._store.reading() as reader:
            return reader.entries(query, page)

    # --- changing ---

    def open(self, asker: Asker, wish: Open) -> Outcome:
        """Make an allocation. Raises Forbidden, Unknown."""
        check_allowed(asker, Action.OPEN_ALLOCATION)
        self._directory.by_id(wish.project)
        return self._ask(asker, wish)

    def amend(
        self, asker: Asker, number: int, terms: TermChanges, comment: str, key: str | None
    ) -> Outcome:
        """Change terms. Raises Forbidden, Unknown."""
        allocation = self.get(asker, number)
        check_allowed(asker, Action.AMEND_ALLOCATION)
        changes = msgspec.structs.asdict(terms)
        wish = Amend(
            allocation=number,
            project=allocation.project,
            resource=allocation.resource,
            comment=comment,
            key=key,
            **changes,
        )
        return self._ask(asker, wish)

    def set_cap(self, asker: Asker, wish: SetCap) -> Outcome:
        """Whom the asker may cap is judged with the wish, by the roles as they are then. Raises Forbidden, Unknown."""
        project = self.get(asker, wish.allocation).project
        check_allowed(asker, Action.SET_CAP, project)
        return self._ask(
            asker,
            msgspec.structs.replace(
                wish, project=project, by=None if asker.superuser else asker.uid
            ),
        )

    def deposit(self, asker: Asker, wish: Deposit) -> Outcome:
        """Put credit in. Raises Forbidden, Unknown."""
        self.get(asker, wish.allocation)
        check_allowed(asker, Action.DEPOSIT)
        return self._ask(asker, wish)

    def withdraw(self, asker: Asker, wish: Withdraw) -> Outcome:
        """Take credit out, as far as nothing else needs it. Raises Forbidden, Unknown."""
        self.get(asker, wish.allocation)
        check_allowed(asker, Action.WITHDRAW)
        return self._ask(asker, wish)

    def transfer(self, asker: Asker, wish: Transfer) -> Outcome:
        """A PI moves credit between allocations of the projects that are the PI's own. Raises Forbidden, Unknown."""
        check_allowed(asker, Action.TRANSFER, self.get(asker, wish.source).project)
        check_allowed(asker, Action.TRANSFER, self._transfer_target(asker, wish.target).project)
        return self._ask(asker, wish)

    def _transfer_target(self, asker: Asker, number: int) -> Allocation:
        """The allocation that credit is to go to. Raises Unknown."""
        try:
            return self.get(asker, number)
        except Unknown as missing:
            missing.field = "to"
            raise

    def _ask(self, asker: Asker, wish: Request) -> Outcome:
        return apply_request(self._judge, asker, wish, self._clock.now())


def _terms_before(reader: Reader, entries: Sequence[Entry]) -> Entry | None:
    """The entry that said what the terms were before the first of these that says so; None where none of them does, or none did."""
    first = next((each for each in entries if each.kind in OF_TERMS), None)
    return (
        None if first is None or first.seq == 1 else last_terms(reader, first.book, before=first.id)
    )
