"""Who is granted credit, and who may speak for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum

import msgspec


class Role(Enum):
    """What a user is in a project. A coordinator does a PI's work on the PI's behalf."""

    PI = "pi"
    COORDINATOR = "coordinator"
    MEMBER = "member"


# Nobody gives or takes a role at or above their own.
GRANTS: Mapping[Role, frozenset[Role]] = {
    Role.PI: frozenset({Role.COORDINATOR, Role.MEMBER}),
    Role.COORDINATOR: frozenset({Role.MEMBER}),
    Role.MEMBER: frozenset(),
}


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A Unix group with a Slurm account of its own; a project may draw on the shared credit of its parents.

    One that was `removed` keeps its number, its names and its books, so that nobody else gets at these; it holds and is granted no more,
    and makes nobody a member. What its runs cost before is still charged.
    """

    id: int
    gname: str
    gid: int
    account: str
    parent: int | None = None
    removed: bool = False


class Member(msgspec.Struct, frozen=True):
    """A user's role in a project: one at most."""

    project: int
    uid: int
    role: Role


LINE_MAX = 8


def line_of(project: int, parents: Mapping[int, int | None]) -> tuple[int, ...]:
    """The project and its parents, nearest first, at most LINE_MAX of them; a cycle ends where it closes."""
    line: list[int] = []
    here: int | None = project
    while here is not None and here not in line and len(line) < LINE_MAX:
        line.append(here)
        here = parents.get(here)
    return tuple(line)


def with_all_above(
    projects: Iterable[Project], load: Callable[[Collection[int]], Iterable[Project]]
) -> list[Project]:
    """These projects and all above them, each level by `load`; one that is not there, or that is met again, ends it."""
    found = {each.id: each for each in projects}
    last = found
    while wanted := {each.parent for each in last.values() if each.parent} - found.keys():
        last = {each.id: each for each in load(wanted)}
        found |= last
    return list(found.values())
