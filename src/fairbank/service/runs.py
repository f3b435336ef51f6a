"""Use cases of runs: jobs, refusals, refunds and usage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState, ShownState
from fairbank.bank.entry import Entry
from fairbank.bank.query import (
    PAGE_MAX,
    AllocationQuery,
    GroupPage,
    OpenHolds,
    Page,
    RefusalQuery,
    RunQuery,
    Usage,
    UsageQuery,
)
from fairbank.bank.refusals import (
    CREDIT_REASONS,
    NOTHING_KNOWN,
    Alternative,
    Detail,
    Facts,
    Reason,
    Refusal,
    RemedyFacts,
    refusal_of,
)
from fairbank.bank.requests import Refund
from fairbank.bank.rules import Outcome
from fairbank.bank.rules.context import obstacle
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.cluster.job import Run
from fairbank.cluster.partition import price_groups
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.core.usage_groups import UsageBy
from fairbank.service.access.identity import Action, Identity, VisibleJobs, check_allowed
from fairbank.service.allocations import states_since
from fairbank.service.quotes import Offers, UncoveredJob, nearest_allocations, possible_payers
from fairbank.service.use_cases import UseCases, only
from fairbank.store.contract import Reader

_EXHAUSTED = (Reason.INSUFFICIENT_CREDIT, Reason.CAPPED)
_OF_PAYER = (*_EXHAUSTED, Reason.FROZEN)
"""Reasons whose remedies follow from the allocation as it is now."""


class Runs(UseCases):
    """Use cases of runs that the bank knows."""

    # --- reading ---

    def find(self, query: RunQuery, page: Page) -> list[RunRecord]:
        """Return the runs that `query.visibility` includes."""
        with self._store.reading() as reader:
            return reader.runs(query, page)

    def get(self, identity: Identity, number: int) -> RunRecord:
        """Return a run. Raises NotFound for a missing run as for a run of others."""
        records = self.find(
            RunQuery(visibility=identity.job_visibility, ids=frozenset({number})), Page(1)
        )
        return only(records, f"job record {number}", "id", "list them with: fairbank jobs -a")

    def resources(self, runs: Iterable[RunRecord]) -> dict[int, str]:
        """Return the resources of the allocations that pay for runs, read together."""
        numbers = frozenset(run.allocation for run in runs)
        if not numbers:
            return {}
        query, page = AllocationQuery(ids=numbers), Page(len(numbers))
        with self._store.reading() as reader:
            return {payer.id: payer.terms.resource for payer in reader.allocations(query, page)}

    def usage(self, query: UsageQuery, by: UsageBy, page: GroupPage) -> list[Usage]:
        """Return the usage of finished runs by group and unit, with the prices of the settings.

        Args:
            query: filters of the runs, with what the user may see. Its `price_groups` are replaced.
            by: how the runs are grouped.
            page: the groups of the page; `page.after` is a `Usage.key`.
        """
        priced = msgspec.structs.replace(query, price_groups=price_groups(self._context.clusters))
        with self._store.reading() as reader:
            return reader.usage(priced, by, page)

    def refusals(self, query: RefusalQuery, page: Page) -> list[tuple[Entry, Refusal]]:
        """Return the refused jobs that `query.visibility` includes."""
        with self._store.reading() as reader:
            entries = reader.refusals(query, page)
        return [(entry, refusal_of(entry)) for entry in entries]

    def later_states(self, refusals: Sequence[Refusal]) -> list[RunState | None]:
        """Return for each refused job the state of its first run that was accepted after the
        refusal, such as after a deposit; None if there is none. If a change of a running job was
        refused, it is the state of that run if its hold was changed or closed since.

        A cluster begins again with the first job id after the last one. So a later run is of the
        same owner, whom the refusal names already.
        """
        jobs = [_refused_job(refusal) for refusal in refusals]
        numbers = frozenset(job[1] for job in jobs if job is not None)
        if not numbers:
            return [None] * len(jobs)
        accepted = defaultdict[tuple[str, int, int | None], list[RunRecord]](list)
        query, after = RunQuery(job_ids=numbers), 0
        with self._store.reading() as reader:
            while page := reader.runs(query, Page(PAGE_MAX, after=after)):
                for record in page:
                    run, after = record.reported.run, record.id
                    accepted[run.cluster, run.job_id, record.owner].append(record)
                if len(page) < PAGE_MAX:
                    break
        return [
            next((run.state for run in accepted[job] if _is_later(run, refusal)), None)
            if job
            else None
            for refusal, job in zip(refusals, jobs, strict=True)
        ]

    def refusal(self, identity: Identity, number: int) -> tuple[Entry, Refusal]:
        """Return a refusal. Raises NotFound for a missing refusal as for a refusal of others."""
        query = RefusalQuery(
            visibility=identity.job_visibility,
            ids=frozenset({number}),
            sender=identity.sender_of_faults,
        )
        refusals = self.refusals(query, Page(1))
        remedy = "list them with: fairbank jobs --refused -a"
        return only(refusals, f"refusal {number}", "id", remedy)

    def remedies_for(self, identity: Identity, refusal: Refusal) -> RemedyFacts:
        """Return what may help a user against the refusal of a run. It may query LDAP, as
        `alternatives`.
        """
        (facts,) = self.facts_about(identity, [refusal])
        return msgspec.structs.replace(
            facts,
            alternatives=self.alternatives(refusal),
            account=self._account(refusal.project) if refusal.project else None,
        )

    def facts_about(self, identity: Identity, refused: Sequence[Refusal]) -> list[RemedyFacts]:
        """Return facts about the allocation of each refused run: the nearest one if none covers the
        run, why that one or a frozen one is not active, and what is held of exhausted credit, as
        far as the user may see the jobs.

        One read of each kind serves all refusals.
        """
        jobs = [self._uncovered(refusal) for refusal in refused]
        near = nearest_allocations(self._store, {job for job in jobs if job is not None})
        frozen, exhausted = (
            frozenset(
                refusal.allocation
                for refusal in refused
                if refusal.reason in reasons and refusal.allocation is not None
            )
            for reasons in ((Reason.FROZEN,), _EXHAUSTED)
        )
        if not near and not frozen and not exhausted:
            return [NOTHING_KNOWN] * len(refused)
        with self._store.reading() as reader:
            numbers, now = frozen | exhausted, self._clock.now()
            payers = {payer.id: payer for payer in _allocations(reader, numbers)}
            stopped = [*near.values(), *(payers[number] for number in frozen)]
            since = states_since(reader, stopped, now)
            holds = reader.open_holds(exhausted) if exhausted else {}
            users = reader.users(numbers) if numbers else []
        grace = self._context.policy.hold_grace_seconds
        projects = {number: payer.terms.project for number, payer in payers.items()}
        sums = {(user.allocation, user.uid): user.sums for user in users}
        return [
            RemedyFacts(
                account=(
                    self._account(refusal.project)
                    if refusal.project and (job is not None or refusal.reason in _OF_PAYER)
                    else None
                ),
                nearest=(nearest := None if job is None else near.get(job)),
                inactive_since=since.get(refusal.allocation if nearest is None else nearest.id),
                present=_present_refusal(refusal, payers, sums, now),
                holds=(
                    own := _holds_of(
                        refusal, holds, of_all=_sees_holds_of_all(identity, refusal, projects)
                    )
                ),
                jobs_end=None if own is None else Instant(own.deadline - grace),
            )
            for refusal, job in zip(refused, jobs, strict=True)
        ]

    def _account(self, project: int) -> str:
        return self._project_cache.by_id(project).account

    def _uncovered(self, refusal: Refusal) -> UncoveredJob | None:
        if (
            refusal.reason is not Reason.NO_ALLOCATION
            or not refusal.project
            or refusal.resource is None
            or refusal.start is None
        ):
            return None
        return UncoveredJob(
            self._project_cache.project_chain(self._project_cache.by_id(refusal.project)),
            refusal.resource,
            refusal.start,
        )

    def alternatives(self, refusal: Refusal) -> tuple[Alternative, ...]:
        """Return at most two other projects of the job's owner that could pay, the richest first.

        Projects of the owner's Unix groups are included if groups count, so it may query LDAP: call
        it from a worker thread.
        """
        if (
            refusal.reason not in CREDIT_REASONS
            or refusal.detail is Detail.LIMIT_CHANGED  # its allocation pays for the job to the end
            or refusal.owner is None
            or refusal.resource is None
            or not refusal.requested
        ):
            return ()
        others = [
            self._project_cache.by_id(number)
            for number in sorted(self._context.memberships.roles(refusal.owner))
            if number != refusal.project
        ]
        chains = [self._project_cache.project_chain(project) for project in others]
        offers = zip(
            others,
            possible_payers(
                self._store, chains, refusal.resource, refusal.owner, self._clock.now()
            ),
            strict=True,
        )
        sufficient = (
            (project.account, _first_sufficient(choices, refusal.requested))
            for project, choices in offers
        )
        rich = [Alternative(account, left) for account, left in sufficient if left is not None]
        return tuple(sorted(rich, key=lambda alternative: -alternative.available)[:2])

    # --- changing ---

    def refund(
        self,
        identity: Identity,
        number: int,
        amount: SuMinutes | None,
        comment: str,
        key: str | None,
    ) -> Outcome:
        """Refund part of a run's charge. Raises NotFound, Forbidden.

        Args:
            identity: the user who asks.
            number: the run.
            amount: SU-minutes; None for all that is not refunded yet.
            comment: reason, stored in the journal.
            key: idempotency key; None: a repeated request is a new one.
        """
        record = self.get(identity, number)
        check_allowed(identity, Action.REFUND)
        request = Refund(run=record.reported.run, amount=amount, comment=comment, key=key)
        return self._apply(identity, request)


def _allocations(reader: Reader, ids: frozenset[int]) -> Sequence[Allocation]:
    """Return the allocations of these numbers. Nothing is read for none."""
    return reader.allocations(AllocationQuery(ids=ids), Page(PAGE_MAX)) if ids else ()


def _refused_job(refusal: Refusal) -> tuple[str, int, int | None] | None:
    """Return cluster, job id and owner of a job that got no credit; None for another refusal."""
    if refusal.run is None or refusal.reason not in CREDIT_REASONS:
        return None
    return *Run.parse(refusal.run)[:2], refusal.owner


def _is_later(record: RunRecord, refusal: Refusal) -> bool:
    """Return whether a run of the refused job, or the change of a running one, came after it."""
    refused = refusal.entry or 0
    if refusal.detail is Detail.LIMIT_CHANGED and refusal.run == str(record.reported.run):
        return record.set_by > refused
    return record.id > refused


def _present_refusal(
    refusal: Refusal,
    payers: Mapping[int, Allocation],
    sums: Mapping[tuple[int, int], UserSums],
    now: int,
) -> Refusal | None:
    """Return the refusal with what its owner has now of the allocation that did not pay; None if
    that is not why it was refused.

    Args:
        refusal: the refusal, whose owner may have a cap.
        payers: the allocations that did not pay, by number.
        sums: charges, holds and cap by allocation and user.
        now: time in seconds.
    """
    number, owner = refusal.allocation, refusal.owner
    if number is None or owner is None or refusal.reason not in _OF_PAYER:
        return None
    payer, user = payers[number], sums.get((number, owner), UserSums())
    if refusal.observed:
        # The job ran all the same, and used credit since. Only a freeze may be over.
        is_frozen = payer.state_at(now) is AllocationState.FROZEN
        is_over = refusal.reason is Reason.FROZEN and not is_frozen
        return msgspec.structs.replace(refusal, detail=Detail.PAID_NOW) if is_over else None
    state = payer.shown_state(now)
    # A job that runs is paid by the allocation of its hold, even after the end of the period.
    is_start = refusal.detail is not Detail.LIMIT_CHANGED
    if is_start and state not in (ShownState.ACTIVE, ShownState.FROZEN):
        facts, detail = Facts(state=state.value), Detail.NOT_ACTIVE
        return msgspec.structs.replace(refusal, detail=detail, available=0, facts=facts)
    # Above a cap or without credit not even a free job is accepted.
    requested = max(refusal.requested, 1)
    reason = obstacle(payer, user, requested)
    if reason is None:
        available = payer.available_credit(user)
        return msgspec.structs.replace(refusal, detail=Detail.PAID_NOW, available=available)
    short, of_cap = requested - payer.remaining, 0 if user.left is None else requested - user.left
    detail = Detail.CREDIT_AND_CAP if short > 0 and of_cap > 0 else Detail.NONE
    return msgspec.structs.replace(
        refusal,
        reason=reason,
        detail=Detail.NONE if reason is Reason.FROZEN else detail,
        available=payer.available_credit(user),
        facts=Facts(
            remaining=payer.remaining, missing_credit=short, needed_cap=(user.cap or 0) + of_cap
        ),
    )


def _holds_of(
    refusal: Refusal, holds: Mapping[tuple[int, int], OpenHolds], *, of_all: bool
) -> OpenHolds | None:
    """Return the holds on the allocation of a refusal, unless `of_all` those of its owner; also if
    the owner's cap refused.
    """
    some = [
        open_holds
        for (allocation, owner), open_holds in holds.items()
        if allocation == refusal.allocation
        and (owner == refusal.owner or (refusal.reason is not Reason.CAPPED and of_all))
    ]
    if not some:
        return None
    return OpenHolds(
        sum(open_holds.held for open_holds in some),
        sum(open_holds.runs for open_holds in some),
        max(open_holds.deadline for open_holds in some),
        max(open_holds.set_by for open_holds in some),
    )


def _sees_holds_of_all(identity: Identity, refusal: Refusal, projects: Mapping[int, int]) -> bool:
    """Return True if the answer may name jobs of others than the owner of the refused run.

    The owner reads the answer to an agent, whatever the agent itself may see. Of the owner it is
    only known that they are a member of the project of the run, which may be a child of the payer.

    Args:
        identity: the user who asks.
        projects: the projects of allocations. Jobs of others hold credit of the refusing one.
    """
    payer = projects.get(refusal.allocation or 0)
    if identity.clusters and identity.visible_jobs is not VisibleJobs.ALL:
        return identity.visible_jobs is VisibleJobs.PROJECT and payer == refusal.project
    return identity.job_visibility.can_see(payer or 0)


def _first_sufficient(offers: Offers, amount: int) -> int | None:
    """Return what the user has left of the first allocation that could pay `amount`; None if none
    could.
    """
    return next(
        (
            left
            for left in (allocation.available_credit(sums) for allocation, sums in offers)
            if left >= amount
        ),
        None,
    )
