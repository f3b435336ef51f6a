"""Runs: who asks sees their jobs and refusals; staff gives back what a run was charged."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.bank.entry import Entry
from fairbank.bank.ledger import Outcome
from fairbank.bank.query import GroupPage, Page, RefusalQuery, RunQuery, Usage, UsageBy, UsageQuery
from fairbank.bank.quote import usable
from fairbank.bank.refusal import NOTHING_KNOWN, Alternative, Help, Reason, Refusal, refusal_of
from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Refund
from fairbank.core.errors import Unknown
from fairbank.core.time import Clock
from fairbank.core.units import SuMinutes
from fairbank.service.access.identity import Asker
from fairbank.service.access.memberships import Memberships
from fairbank.service.access.permissions import Action, check_allowed
from fairbank.service.available_credit import (
    Offers,
    UncoveredJob,
    available_credit,
    nearest_allocations,
)
from fairbank.service.dry_run import RequestHandler, apply_request
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store

_CREDIT_REASONS = (
    Reason.OVERDRAWN,
    Reason.CAPPED,
    Reason.NO_ALLOCATION,
    Reason.FROZEN,
    Reason.UNKNOWN_PROJECT,
    Reason.PROJECT_REMOVED,
)


class Runs:
    """The use cases around runs that the bank knows."""

    def __init__(
        self,
        store: Store,
        judge: RequestHandler,
        directory: ProjectCache,
        memberships: Memberships,
        clock: Clock,
    ) -> None:
        self._store, self._judge, self._directory, self._memberships, self._clock = (
            store,
            judge,
            directory,
            memberships,
            clock,
        )

    # --- reading ---

    def find(self, query: RunQuery, page: Page) -> list[RunRecord]:
        """Runs, as far as `query.sight` sees them."""
        with self._store.reading() as reader:
            return reader.runs(query, page)

    def get(self, asker: Asker, number: int) -> RunRecord:
        """Raises Unknown, for a run that is not there as for one of others."""
        found = self.find(RunQuery(sight=asker.sight, ids=frozenset({number})), Page(1))
        if not found:
            raise Unknown(
                f"there is no job record {number}",
                field="id",
                remedy="list them with: fairbank jobs",
            )
        return found[0]

    def refusals(self, query: RefusalQuery, page: Page) -> list[tuple[Entry, Refusal]]:
        """Refused jobs, as far as `query.sight` sees them."""
        with self._store.reading() as reader:
            entries = reader.refusals(query, page)
        return [(entry, refusal_of(entry)) for entry in entries]

    def refusal(self, asker: Asker, number: int) -> tuple[Entry, Refusal]:
        """Raises Unknown, for a refusal that is not there as for one of others."""
        found = self.refusals(RefusalQuery(sight=asker.sight, ids=frozenset({number})), Page(1))
        if not found:
            raise Unknown(
                f"there is no refusal {number}",
                field="id",
                remedy="list them with: fairbank jobs --refused",
            )
        return found[0]

    def remedies_for(self, no: Refusal) -> Help:
        """What the books have that may help against the refusal of a run; LDAP may be asked, as for `alternatives`."""
        account = self._account(no.project) if no.project else None
        return Help(
            alternatives=self.alternatives(no),
            account=account,
            nearest=self.nearest_allocations([no])[0].nearest,
        )

    def nearest_allocations(self, refused: Sequence[Refusal]) -> list[Help]:
        """For each refusal of a run that no allocation covers, its account and the allocation that it missed by least; for others nothing.

        The books are looked at once for all of them, and not at all where there are none.
        """
        jobs = [self._uncovered(no) for no in refused]
        near = nearest_allocations(self._store, {each for each in jobs if each is not None})
        return [
            NOTHING_KNOWN
            if job is None
            else Help(account=self._account(job.project_chain[0]), nearest=near.get(job))
            for job in jobs
        ]

    def _account(self, project: int) -> str:
        return self._directory.by_id(project).account

    def _uncovered(self, no: Refusal) -> UncoveredJob | None:
        if (
            no.reason is not Reason.NO_ALLOCATION
            or not no.project
            or no.resource is None
            or no.start is None
        ):
            return None
        return UncoveredJob(
            self._directory.project_chain(self._directory.by_id(no.project)), no.resource, no.start
        )

    def alternatives(self, no: Refusal) -> tuple[Alternative, ...]:
        """Other projects of the refused job's owner that could pay what was asked, the richest first, at most two.

        Those of the owner's Unix groups are among them where these count, so LDAP may be asked: call it from a worker thread.
        """
        if (
            no.reason not in _CREDIT_REASONS
            or no.owner is None
            or no.resource is None
            or not no.asked
        ):
            return ()
        others = [
            self._directory.by_id(number)
            for number in sorted(self._memberships.roles(no.owner))
            if number != no.project
        ]
        lines = [self._directory.project_chain(project) for project in others]
        offers = zip(
            others,
            available_credit(self._store, lines, no.resource, no.owner, self._clock.now()),
            strict=True,
        )
        rich = [
            Alternative(project.account, left)
            for project, found in offers
            if (left := _first_sufficient(found, no.asked)) is not None
        ]
        return tuple(sorted(rich, key=lambda each: -each.available)[:2])

    # --- changing ---

    def refund(
        self, asker: Asker, number: int, amount: SuMinutes | None, comment: str, key: str | None
    ) -> Outcome:
        """Give back part or all of what a run was charged. Raises Unknown, Forbidden."""
        record = self.get(asker, number)
        check_allowed(asker, Action.REFUND)
        wish = Refund(run=record.run, amount=amount, comment=comment, key=key)
        return apply_request(self._judge, asker, wish, self._clock.now())


def _first_sufficient(offers: Offers, asked: int) -> int | None:
    """What the allocation that would pay for `asked` has left for its user; None when none would."""
    return next((left for left in (usable(*offer) for offer in offers) if left >= asked), None)


class UsageReports:
    """Sums over resolved runs, as far as the query's sight sees them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def totals(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        """One row for each user, day, month, partition, allocation, job or QOS."""
        with self._store.reading() as reader:
            return reader.usage(query, by, page)
