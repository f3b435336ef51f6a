"""Groups of runs whose usage the store in memory adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairbank.bank.allocation import Allocation
from fairbank.bank.query import NO_QOS, UsageQuery
from fairbank.bank.run import RESOLVED, RunRecord
from fairbank.cluster.job import NO_DETAILS
from fairbank.core.time_zone import local_day
from fairbank.core.usage_groups import UsageBy
from fairbank.store.memory.conditions import is_between, is_one_of
from fairbank.store.memory.tables import MemoryTables
from fairbank.store.memory.visibility import can_see_run

_GROUP: dict[UsageBy, Callable[[RunRecord, Allocation], str | int]] = {
    UsageBy.USER: lambda run, allocation: run.owner,
    UsageBy.PROJECT: lambda run, allocation: run.reported.project,
    UsageBy.RESOURCE: lambda run, allocation: allocation.terms.resource,
    UsageBy.CLUSTER: lambda run, allocation: run.reported.run.cluster,
    UsageBy.CATEGORY: lambda run, allocation: allocation.terms.category,
    UsageBy.PARTITION: lambda run, allocation: run.reported.partition,
    UsageBy.QOS: lambda run, allocation: (run.reported.job_details or NO_DETAILS).qos or NO_QOS,
    UsageBy.ALLOCATION: lambda run, allocation: allocation.id,
    UsageBy.ALLOCATION_USER: lambda run, allocation: (
        str(allocation.id) if run.is_measured else f"{allocation.id}/{run.owner}"
    ),
    UsageBy.JOB: lambda run, allocation: (
        run.reported.run.cluster
        if run.is_measured
        else f"{run.reported.run.cluster}/{run.reported.run.job_id}"
    ),
}


def runs_by_group(
    tables: MemoryTables, query: UsageQuery, by: UsageBy
) -> dict[tuple[str | int, str, str], list[RunRecord]]:
    """Return the runs of a query by group, resource and the clusters of one price."""
    clusters = {(resource, name): names for resource, name, names in query.price_groups}
    billed = {resource for resource, _, _ in query.price_groups}
    groups: dict[tuple[str | int, str, str], list[RunRecord]] = {}
    for run in _used(tables, query):
        allocation = tables.allocations[run.allocation]
        if by.is_time:
            group: str | int = local_day(_ended(run), query.offsets)
        else:
            group = _GROUP[by](run, allocation)
        resource, cluster = allocation.terms.resource, run.reported.run.cluster
        names = clusters.get((resource, cluster), cluster)
        if run.is_measured and resource not in billed:
            names = ""
        groups.setdefault((group, resource, names), []).append(run)
    return groups


def _used(tables: MemoryTables, query: UsageQuery) -> Iterator[RunRecord]:
    for run in tables.runs.values():
        if (
            run.state in RESOLVED
            and can_see_run(tables, query.visibility, run)
            and is_one_of(run.reported.project, query.projects)
            and is_one_of(run.allocation, query.allocations)
            and is_one_of(run.owner, query.owners)
            and is_one_of(tables.allocations[run.allocation].terms.resource, query.resources)
            and is_between(_ended(run), query.since, query.until)
        ):
            yield run


def _ended(run: RunRecord) -> int:
    return run.end.ended if run.end else 0
