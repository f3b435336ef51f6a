"""Visibility and ownership as SQL conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, and_, false, literal_column, or_, select, true

from fairbank.bank.entry import REGISTRY, Kind
from fairbank.bank.query import Visibility
from fairbank.store.schema import allocation, journal, project, run
from fairbank.store.sql.dialects import in_few

Condition = ColumnElement[bool]

# Literal, not a bound parameter: a partial index is used only if the statement itself contains its
# condition.
IS_REFUSAL = journal.c.kind == literal_column(f"'{Kind.REFUSAL.value}'")


def is_in(column: ColumnElement[Any], values: Iterable[Any] | None) -> Condition:
    return true() if values is None else column.in_(sorted(values))


def is_visible(visibility: Visibility, of_project: ColumnElement[Any]) -> Condition:
    return true() if visibility.everything else is_in(of_project, visibility.projects)


def is_visible_or_owned(
    visibility: Visibility, of_allocation: ColumnElement[Any], owned: Condition
) -> Condition:
    if visibility.everything:
        return true()
    return or_(
        of_projects(of_allocation, visibility.projects),
        false() if visibility.uid is None else owned,
    )


def run_is_visible(visibility: Visibility) -> Condition:
    """Return the condition for runs of visible projects, runs charged to their allocations, and own
    runs.
    """
    return or_(
        is_visible_or_owned(visibility, run.c.allocation, run.c.owner == visibility.uid),
        is_visible(visibility, run.c.project),
    )


def entry_is_visible(visibility: Visibility) -> Condition:
    """Return the condition for entries in books of visible projects or about their runs, and own
    refusals.
    """
    found = is_visible_or_owned(
        visibility, journal.c.book, and_(journal.c.owner == visibility.uid, IS_REFUSAL)
    )
    if visibility.everything or not visibility.projects:
        return found
    return or_(
        found, and_(_in_their_line(visibility.projects), _about_runs_for(visibility.projects))
    )


def of_projects(of_allocation: ColumnElement[Any], projects: frozenset[int] | None) -> Condition:
    """Return the condition for rows of these projects' allocations; the registry's book belongs to
    none.
    """
    if projects is None:
        return true()
    theirs = select(allocation.c.id).where(allocation.c.project.in_(sorted(projects)))
    return and_(of_allocation != REGISTRY, of_allocation.in_(theirs)) if projects else false()


def of_entries(projects: frozenset[int] | None) -> Condition:
    """Return the condition for entries about runs of these projects, and others in their books."""
    if projects is None:
        return true()
    others = and_(journal.c.run.is_(None), of_projects(journal.c.book, projects))
    return and_(_in_their_line(projects), or_(others, _about_runs_for(projects)))


def _in_their_line(projects: frozenset[int]) -> Condition:
    """Return the condition for entries in books of these projects and their parents. Their runs
    have no others, so the whole journal need not be searched.
    """
    line = (
        select(project.c.id, project.c.parent)
        .where(is_in(project.c.id, projects))
        .cte(recursive=True)
    )
    line = line.union(select(project.c.id, project.c.parent).where(project.c.id == line.c.parent))
    return in_few(
        journal.c.book, select(allocation.c.id).where(allocation.c.project.in_(select(line.c.id)))
    )


def _about_runs_for(projects: frozenset[int]) -> Condition:
    return (
        select(run.c.id).where(run.c.id == journal.c.run, is_in(run.c.project, projects)).exists()
    )
