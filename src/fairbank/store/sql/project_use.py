"""Current and past use of a project, read when staff change a project.

Without projects no statement is built: building one in SQLAlchemy takes longer than a whole hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import Connection, exists, or_, select

from fairbank.bank.project import Project
from fairbank.bank.run import RunState
from fairbank.cluster.job import Run
from fairbank.store import schema
from fairbank.store.sql.rows import project_of

_ALLOCATION, _PROJECT, _RUN = schema.allocation.c, schema.project.c, schema.run.c


def allocations_of(connection: Connection, projects: Collection[int]) -> set[int]:
    """Return the ids of all allocations of these projects."""
    if not projects:
        return set()
    return set(
        connection.execute(
            select(_ALLOCATION.id).where(_ALLOCATION.project.in_(sorted(projects)))
        ).scalars()
    )


def children_of(connection: Connection, projects: Collection[int]) -> Iterator[Project]:
    """Yield the direct children of these projects, without removed ones."""
    if not projects:
        return iter(())
    found = select(schema.project).where(
        _PROJECT.parent.in_(sorted(projects)), _PROJECT.removed.is_(False)
    )
    return map(project_of, connection.execute(found))


def open_runs_of(
    connection: Connection, projects: Collection[int], most: int
) -> Iterator[tuple[int, Run]]:
    """Yield runs of these projects with an open hold: at most `most` per project."""
    for project in sorted(projects):
        held = (_RUN.project == project, _RUN.state == RunState.HELD.value)
        found = (
            select(_RUN.cluster, _RUN.job_id, _RUN.submitted, _RUN.restart).where(*held).limit(most)
        )
        yield from ((project, Run(*row)) for row in connection.execute(found))


def projects_in_use(connection: Connection, projects: Collection[int]) -> list[int]:
    """Return those of the projects that have, or had, an allocation or a run."""
    if not projects:
        return []
    project = schema.project.c.id
    used = or_(
        exists().where(_ALLOCATION.project == project), exists().where(_RUN.project == project)
    )
    return list(
        connection.execute(select(project).where(project.in_(sorted(projects)), used)).scalars()
    )
