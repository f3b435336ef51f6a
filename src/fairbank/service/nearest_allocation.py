"""Which allocations refused jobs missed: read from the books at once, for as many jobs as there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.refusal import nearest
from fairbank.store.contract import Store


class UncoveredJob(NamedTuple):
    """A job that no allocation covers: the line of its project, what it is billed in, and when it started."""

    project_chain: tuple[int, ...]
    resource: str
    start: int


def nearest_allocations(store: Store, jobs: Collection[UncoveredJob]) -> Mapping[UncoveredJob, Allocation]:
    """The allocation that each job missed by least; nothing for a job whose line has none. All in one snapshot, none for no jobs."""
    if not jobs:
        return {}
    found: defaultdict[int, list[Allocation]] = defaultdict(list)
    for each in _allocations_of(store, jobs):
        found[each.project].append(each)
    near = {
        job: nearest(
            job.project_chain, job.resource, chain.from_iterable(found[each] for each in job.project_chain), job.start
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
