"""Which allocations refused jobs missed: read from the books at once, for as many jobs as there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import PAGE_MAX, AllocationQuery, Page
from fairbank.bank.refusals import nearest
from fairbank.store.contract import Store


class Uncovered(NamedTuple):
    """A job that no allocation covers: the line of its project, what it is billed in, and when it started."""

    line: tuple[int, ...]
    resource: str
    start: int


def missed(store: Store, jobs: Collection[Uncovered]) -> Mapping[Uncovered, Allocation]:
    """The allocation that each job missed by least; nothing for a job whose line has none. All in one snapshot, none for no jobs."""
    if not jobs:
        return {}
    found: defaultdict[int, list[Allocation]] = defaultdict(list)
    for each in _of_lines(store, jobs):
        found[each.project].append(each)
    near = {
        job: nearest(
            job.line, job.resource, chain.from_iterable(found[each] for each in job.line), job.start
        )
        for job in jobs
    }
    return {job: each for job, each in near.items() if each is not None}


def _of_lines(store: Store, jobs: Collection[Uncovered]) -> Iterator[Allocation]:
    """All allocations of the projects concerned, by pages; of their one resource where it is one."""
    projects = frozenset(chain.from_iterable(each.line for each in jobs))
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
