"""Visibility of the rows of the store in memory."""

from __future__ import annotations

from fairbank.bank.entry import REGISTRY, Entry
from fairbank.bank.project import project_chain
from fairbank.bank.query import Visibility
from fairbank.bank.run import RunRecord
from fairbank.store.memory.tables import MemoryTables


def ran_for(tables: MemoryTables, projects: frozenset[int]) -> set[int | None]:
    """Return the runs of these projects, charged to them or to their parents."""
    parents = _parents(tables)
    paying = {number for project in projects for number in project_chain(project, parents)}
    return {
        run.id
        for run in tables.runs.values()
        if run.reported.project in projects and project_of(tables, run.allocation) in paying
    }


def is_own(tables: MemoryTables, visibility: Visibility, entry: Entry) -> bool:
    """Return whether an entry is of an own job, or of none, in a journal of `own_jobs_of` or,
    for jobs, of their parents.

    Args:
        tables: rows of the store.
        visibility: what the user may see.
        entry: entry of a journal.
    """
    projects, parents = visibility.own_jobs_of, _parents(tables)
    paying = {number for visible in projects for number in project_chain(visible, parents)}
    project = project_of(tables, entry.allocation)
    if entry.owner is None:
        return project in projects
    return entry.owner == visibility.uid and project in paying


def _parents(tables: MemoryTables) -> dict[int, int | None]:
    return {project.id: project.parent for project in tables.projects.values()}


def project_of(tables: MemoryTables, allocation: int) -> int | None:
    """Return the project of an allocation; None for the registry."""
    if allocation == REGISTRY:
        return None
    return tables.allocations[allocation].terms.project


def can_see_run(tables: MemoryTables, visibility: Visibility, run: RunRecord) -> bool:
    """Return whether a user sees a run: of its project, or as they see its allocation.

    Args:
        tables: rows of the store.
        visibility: what the user may see.
        run: the run.
    """
    return run.reported.project in visibility.projects or can_see(
        tables, visibility, run.allocation, run.owner
    )


def can_see(
    tables: MemoryTables, visibility: Visibility, allocation: int, owner: int | None
) -> bool:
    """Return whether a user sees something in an allocation.

    Args:
        tables: rows of the store.
        visibility: what the user may see.
        allocation: number of the allocation, REGISTRY for the registry.
        owner: uid of its owner; None if it is of no user.
    """
    if visibility.everything or project_of(tables, allocation) in visibility.projects:
        return True
    return owner is not None and owner == visibility.uid
