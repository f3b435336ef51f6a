"""What goes on, or ever went on, in a project's name: read where staff change a project, so rare.

Where no project is asked about no statement is made: SQLAlchemy takes longer to put one together than a hold takes as a whole.
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
    """All allocations of these projects."""
    if not projects:
        return set()
    return set(
        connection.execute(
            select(_ALLOCATION.id).where(_ALLOCATION.project.in_(sorted(projects)))
        ).scalars()
    )


def children_of(connection: Connection, projects: Collection[int]) -> Iterator[Project]:
    """The projects directly under these, without those that were removed."""
    if not projects:
        return iter(())
    found = select(schema.project).where(
        _PROJECT.parent.in_(sorted(projects)), _PROJECT.removed.is_(False)
    )
    return map(project_of, connection.execute(found))


def open_runs_of(
    connection: Connection, projects: Collection[int], most: int
) -> Iterator[tuple[int, Run]]:
    """Runs of these projects with an open hold, wherever it is held: `most` of each project at most."""
    for project in sorted(projects):
        held = (_RUN.project == project, _RUN.state == RunState.HELD.value)
        found = (
            select(_RUN.cluster, _RUN.job_id, _RUN.submitted, _RUN.restart).where(*held).limit(most)
        )
        yield from ((project, Run(*row)) for row in connection.execute(found))


def projects_in_use(connection: Connection, projects: Collection[int]) -> list[int]:
    """Which of these projects have, or had, an allocation or a run."""
    if not projects:
        return []
    project = schema.project.c.id
    used = or_(
        exists().where(_ALLOCATION.project == project), exists().where(_RUN.project == project)
    )
    return list(
        connection.execute(select(project).where(project.in_(sorted(projects)), used)).scalars()
    )
