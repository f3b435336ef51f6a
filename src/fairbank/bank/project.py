"""Projects, their members and the roles of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum

import msgspec


class Role(Enum):
    """Role of a user in a project. A coordinator acts for the PI."""

    PI = "pi"
    COORDINATOR = "coordinator"
    MEMBER = "member"


# Users grant and remove only roles below their own.
GRANTS: Mapping[Role, frozenset[Role]] = {
    Role.PI: frozenset({Role.COORDINATOR, Role.MEMBER}),
    Role.COORDINATOR: frozenset({Role.MEMBER}),
    Role.MEMBER: frozenset(),
}


class Project(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Group that is granted credit: a Unix group with a Slurm account of its own.

    A project may draw on shared credit of its parents. A removed project keeps its id, names and
    journal, so that no other project can get them. It gets no holds and no credit, and has no
    members. Ends of its earlier runs are still charged.
    """

    id: int
    gname: str
    gid: int
    account: str
    parent: int | None = None
    removed: bool = False


class Member(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Role of a user in a project; a user has at most one."""

    project: int
    uid: int
    role: Role


CHAIN_MAX = 8


def project_chain(project: int, parents: Mapping[int, int | None]) -> tuple[int, ...]:
    """Return a project and its parents, nearest first, at most CHAIN_MAX; a cycle is cut."""
    chain: list[int] = []
    here: int | None = project
    while here is not None and here not in chain and len(chain) < CHAIN_MAX:
        chain.append(here)
        here = parents.get(here)
    return tuple(chain)


def with_all_above(
    projects: Iterable[Project], load: Callable[[Collection[int]], Iterable[Project]]
) -> list[Project]:
    """Return projects with all their parents, loaded level by level. Missing parents are left out.

    Args:
        projects: projects that are loaded already.
        load: returns the projects with some ids.
    """
    known = {project.id: project for project in projects}
    last = known
    while wanted := {project.parent for project in last.values() if project.parent} - known.keys():
        last = {project.id: project for project in load(wanted)}
        known |= last
    return list(known.values())
