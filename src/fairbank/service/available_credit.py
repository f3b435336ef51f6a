"""What a user could draw on: read from the books as the ledger would see it, without a lock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.refusal import nearest
from fairbank.bank.run import UserSums
from fairbank.bank.working_set import WorkingSet
from fairbank.core.time import Instant
from fairbank.store.contract import Store

Offers = list[tuple[Allocation, UserSums]]


def available_credit(
    store: Store, lines: Sequence[tuple[int, ...]], resource: str, uid: int, at: Instant
) -> list[Offers]:
    """For each line of projects the allocations that may carry a job of user `uid` starting at `at`, in the ledger's order, with
    what that user drew from each. All in one snapshot."""
    projects = frozenset(project for line in lines for project in line)
    with store.reading() as reader:
        found = reader.allocations(
            AllocationQuery(projects=projects, resource=resource, active_at=at), Page(PAGE_MAX)
        )
        rows = reader.users(frozenset(each.id for each in found), uid) if found else []
    work = WorkingSet(allocations=found, users=((row.allocation, uid, row.sums) for row in rows))
    return [
        [(each, work.sums_of(each.id, uid)) for each in work.candidates(line, resource, at)]
        for line in lines
    ]


class UncoveredJob(NamedTuple):
    """A job that no allocation covers: the line of its project, what it is billed in, and when it started."""

    project_chain: tuple[int, ...]
    resource: str
    start: int


def nearest_allocations(
    store: Store, jobs: Collection[UncoveredJob]
) -> Mapping[UncoveredJob, Allocation]:
    """The allocation that each job missed by least; nothing for a job whose line has none. All in one snapshot, none for no jobs."""
    if not jobs:
        return {}
    found: defaultdict[int, list[Allocation]] = defaultdict(list)
    for each in _allocations_of(store, jobs):
        found[each.project].append(each)
    near = {
        job: nearest(
            job.project_chain,
            job.resource,
            chain.from_iterable(found[each] for each in job.project_chain),
            job.start,
        )
        for job in jobs
    }
    return {job: each for job, each in near.items() if each is not None}


def _allocations_of(store: Store, jobs: Collection[UncoveredJob]) -> Iterator[Allocation]:
    """All allocations of the projects concerned, by pages; of their one resource where it is one."""
    projects = frozenset(chain.from_iterable(each.project_chain for each in jobs))
    resource, *others = {each.resource for each in jobs}
    query = AllocationQuery(projects=projects, resource=None if others else resource)
    with store.reading() as reader:
        page = reader.allocations(query, Page(PAGE_MAX))
        while page:
            yield from page
            page = (
                reader.allocations(query, Page(PAGE_MAX, after=page[-1].id))
                if len(page) == PAGE_MAX
                else []
            )
