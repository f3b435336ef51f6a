"""Prices of described jobs, and the allocations that may pay for a job, read without a lock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.pricing import bill, remarks
from fairbank.bank.project import Project
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.quote import (
    CheaperRequest,
    Quote,
    cheaper_partition,
    cheapest_first,
    deciding,
    less_memory,
    quote,
    smaller_requests,
)
from fairbank.bank.refusals import Reason, Refusal, nearest
from fairbank.bank.rules.context import obstacle
from fairbank.bank.rules.run_refusals import credit_facts
from fairbank.bank.rules.short_term import JobPlace, RequestedPlace, place_job, short_terms
from fairbank.bank.run import UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.allocated_tres import reason_unfit
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, find_cluster
from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.time import Instant
from fairbank.service.access.identity import Identity
from fairbank.service.use_cases import UseCases
from fairbank.store.contract import Store

Offers = list[tuple[Allocation, UserSums]]
"""Allocations in the order in which the ledger tries them, with what the user drew from each."""


class QuotedJob(NamedTuple):
    """Quotes of a job in each of its partitions, cheapest first, the one that decides, its
    reservation, and the refusal that the job would get if it started now; None if it could be paid.

    A bank that only observes has a refusal for a job that fits. `cheaper` are changes of the
    request: the partition that costs less, and what would make a refused job fit. `notes` say what
    is not in the prices, and which partitions do not fit the job.
    """

    partitions: Sequence[Quote]
    quote: Quote
    reservation: str | None
    refusal: Refusal | None
    cheaper: Sequence[CheaperRequest]
    notes: Sequence[str]


class _Offer(NamedTuple):
    quote: Quote
    refusal: Refusal | None


class Quotes(UseCases):
    """Use case: the price of a job, without a change of the ledger."""

    def quote(
        self,
        identity: Identity,
        account: str,
        request: JobRequest,
        place: RequestedPlace,
        tasks: int = 1,
        owner: int | None = None,
    ) -> QuotedJob:
        """Return the prices of a job with their lines, and the allocation that would carry it now.

        Args:
            identity: user who asks; must see the project.
            request: the job; its partition is not used.
            place: where it is to run.
            tasks: number of tasks of an array, which must all be paid.
            owner: user of the job; None: the user who asks. The cap of another owner counts where
                the user who asks may read the whole journal of the paying allocation.

        Raises:
            NotFound: no such project, cluster or partition.
            Forbidden: a short-term allocation of another project has the partition or reservation.
            InvalidInput: the settings lack a size of nodes, or a default partition; or no partition
                has nodes that can run the job, whose request for nodes is known.
        """
        cluster = find_cluster(self._context.clusters, request.cluster)
        project = self._visible_project(identity, account)
        there = self._place(project, cluster, place)
        cluster = there.cluster
        fitting, unfit = _fitting_requests(request, cluster, there.partitions)
        offers = [
            self._offer(project, candidate, cluster, tasks, identity, owner)
            for candidate in fitting
        ]
        quotes = [offer.quote for offer in offers]
        decided = deciding(quotes)
        refusal = next(offer.refusal for offer in offers if offer.quote is decided)
        rule = cluster.partition(decided.bill.partition).billing_rule
        change = cheaper_partition(quotes) if len(quotes) > 1 else less_memory(decided, rule)
        cheaper = [] if change is None else [change]
        if refusal is not None and refusal.reason in (Reason.INSUFFICIENT_CREDIT, Reason.CAPPED):
            nodes = max(int(request.counts.get("node", 1)), 1)
            cheaper = [*smaller_requests(quotes, nodes, request.qos, cluster), *cheaper]
        of_quotes = chain.from_iterable(quote.notes for quote in quotes)
        notes = list(dict.fromkeys((*there.notes, *of_quotes, *unfit)))
        quoted = cheapest_first(quotes)
        return QuotedJob(quoted, decided, there.reservation, refusal, cheaper, notes)

    def _visible_project(self, identity: Identity, account: str) -> Project:
        """Return the project of an account. Raises NotFound."""
        project = self._project_cache.by_account(account)
        if project is None or project.removed or not identity.visibility.can_see(project.id):
            raise NotFound(
                f"there is no project with the account {account!r} that you may see",
                field="account",
                remedy="list yours with: fairbank project list",
            )
        return project

    def _place(self, project: Project, cluster: Cluster, place: RequestedPlace) -> JobPlace:
        """Return where the job goes: a new one as the submission policy sends it."""
        now = self._clock.now()
        if place.is_waiting:
            return place_job((), project, cluster, place, now)
        query = AllocationQuery(is_short_term=True, active_at=now)
        with self._store.reading() as reader:
            allocations = reader.allocations(query, Page(PAGE_MAX))
        projects = {
            number: self._project_cache.by_id(number)
            for number in {allocation.terms.project for allocation in allocations}
        }
        accounts = {number: one.account for number, one in projects.items() if not one.removed}
        terms = list(short_terms(accounts, allocations, cluster.partitions, now))
        return place_job(terms, project, cluster, place, now)

    def _offer(
        self,
        project: Project,
        request: JobRequest,
        cluster: Cluster,
        tasks: int,
        identity: Identity,
        owner: int | None,
    ) -> _Offer:
        """Return the quote in one partition, and the refusal of its deciding allocation."""
        priced = bill(request, cluster)
        project_chain, now = self._project_cache.project_chain(project), self._clock.now()
        uid = identity.uid if owner is None else owner
        (offers,) = possible_payers(self._store, [project_chain], priced.resource, uid, now)
        # Without this a member could read a colleague's cap and running jobs from a quote.
        offers = [
            (allocation, sums if _shows_owner(identity, uid, allocation) else UserSums())
            for allocation, sums in offers
        ]
        offer = quote(priced, offers, self._context.policy, tasks)
        notes = (*offer.notes, *remarks(request, cluster))
        payer = next(
            (candidate for candidate in offers if candidate[0].id == offer.allocation), None
        )
        reason = Reason.NO_ALLOCATION if payer is None else obstacle(*payer, offer.total)
        refusal = reason and Refusal(
            reason,
            requested=offer.total,
            available=0 if payer is None else payer[0].available_credit(payer[1]),
            facts=None if payer is None else credit_facts(*payer, reason),
            allocation=offer.allocation,
            project=project.id,
            resource=priced.resource,
            owner=uid if payer is None or _shows_owner(identity, uid, payer[0]) else None,
            start=now if reason is Reason.NO_ALLOCATION else None,
            billing=str(priced.billing * priced.factor * tasks),
            limit_seconds=priced.seconds,
        )
        return _Offer(msgspec.structs.replace(offer, notes=notes), refusal)


def _shows_owner(identity: Identity, owner: int, payer: Allocation) -> bool:
    """Return True if a user may learn the cap and the holds of an owner in the allocation."""
    return owner == identity.uid or identity.journal_visibility.can_see(payer.terms.project)


def _fitting_requests(
    request: JobRequest, cluster: Cluster, names: Iterable[str]
) -> tuple[Sequence[JobRequest], Sequence[str]]:
    """Return the request for each partition whose nodes can run the job, and why others cannot.

    Slurm passes over partitions whose nodes cannot run the job. TRES alone may be those that it has
    allocated, and then the settings are out of date: without a partition that fits all are priced.

    Raises:
        InvalidInput: no partition fits, and the job's request for nodes is known.
    """
    requests = [msgspec.structs.replace(request, partition=name) for name in names]
    unfit = [
        reason_unfit(candidate, cluster.partition(candidate.partition)) for candidate in requests
    ]
    reasons = list(dict.fromkeys(reason for reason in unfit if reason))
    fitting = [
        candidate for candidate, reason in zip(requests, unfit, strict=True) if reason is None
    ]
    has_request = request.node_requests or request.memory or request.max_nodes is not None
    if not fitting and has_request:
        raise InvalidInput(
            f"Slurm cannot run this job: {'; '.join(reasons)}",
            field="partition",
            remedy="Slurm says: Requested node configuration is not available. Request what a"
            " node has, or name a partition with larger nodes",
        )
    return fitting or requests, reasons


def possible_payers(
    store: Store, chains: Sequence[tuple[int, ...]], resource: str, uid: int, at: Instant
) -> list[Offers]:
    """Return the allocations that may carry a job, for each project chain, from one snapshot.

    Args:
        chains: for each project its number, then those of its parents.
        resource: what the job is billed in.
        uid: the job's user.
        at: the start of the job.
    """
    projects = frozenset(project for project_chain in chains for project in project_chain)
    with store.reading() as reader:
        allocations = reader.allocations(
            AllocationQuery(projects=projects, resource=resource, active_at=at), Page(PAGE_MAX)
        )
        ids = frozenset(allocation.id for allocation in allocations)
        rows = reader.users(ids, uid) if ids else []
    work = TransactionData(
        allocations=allocations, users=((row.allocation, uid, row.sums) for row in rows)
    )
    return [
        [
            (allocation, work.sums_of(allocation.id, uid))
            for allocation in work.candidates(project_chain, resource, at)
        ]
        for project_chain in chains
    ]


class UncoveredJob(NamedTuple):
    """Job that no allocation covers: its project chain, billed resource and start."""

    project_chain: tuple[int, ...]
    resource: str
    start: int


def nearest_allocations(
    store: Store, jobs: Collection[UncoveredJob]
) -> Mapping[UncoveredJob, Allocation]:
    """Return the allocation that each job missed by least, from one snapshot.

    A job whose projects have no allocation is left out.
    """
    if not jobs:
        return {}
    by_project: defaultdict[int, list[Allocation]] = defaultdict(list)
    for allocation in _allocations_of(store, jobs):
        by_project[allocation.terms.project].append(allocation)
    result = {}
    for job in jobs:
        candidates = chain.from_iterable(by_project[project] for project in job.project_chain)
        missed = nearest(job.project_chain, job.resource, candidates, job.start)
        if missed is not None:
            result[job] = missed
    return result


def _allocations_of(store: Store, jobs: Collection[UncoveredJob]) -> Iterator[Allocation]:
    """Yield all allocations of the projects, only of one resource if all jobs share it."""
    projects = frozenset(chain.from_iterable(job.project_chain for job in jobs))
    resource, *others = {job.resource for job in jobs}
    query = AllocationQuery(projects=projects, resource=None if others else resource)
    after = None
    with store.reading() as reader:
        while page := reader.allocations(query, Page(PAGE_MAX, after=after)):
            yield from page
            if len(page) < PAGE_MAX:
                return
            after = page[-1].id
