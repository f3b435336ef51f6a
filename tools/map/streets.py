"""The streets: which room may import which. All are one way. A wrong street is told with file, line and what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.map.graph import Graph, Import, shown

EVERYONE = "*"

# A room is a folder, or one file of a folder where the longer name stands here too. A room may always import itself.
STREETS: Mapping[str, tuple[str, ...]] = {
    "values": (),
    "cluster": ("values",),
    "bank": ("values", "cluster"),
    "priority": ("values", "cluster"),
    "scheduling": ("values", "cluster"),
    "simulator": ("values", "cluster", "bank", "priority", "scheduling"),
    "report": ("values",),
    "store": ("values", "cluster", "bank"),
    "service": ("values", "cluster", "bank", "priority", "simulator", "store"),
    "rest": (
        "values",
        "cluster",
        "bank",
        "service",
        "rest.bodies",
        "rest.statuses",
        "rest.sign_in",
        "rest.sign_in.doorkeeper",
    ),
    "rest.bodies": ("values",),
    "rest.statuses": ("values",),
    "rest.client": ("values", "rest.bodies", "rest.sign_in"),
    "rest.sign_in": ("values",),
    "rest.sign_in.doorkeeper": ("values", "bank", "service", "rest", "rest.sign_in"),
    "rest.server": (
        "values",
        "service",
        "rest",
        "rest.bodies",
        "rest.sign_in",
        "rest.server.unix_socket",
    ),
    "rest.server.unix_socket": ("values",),
    "web": ("values", "cluster", "bank", "service", "report"),
    "gold": ("values",),
    "gold.verbs": ("values", "cluster", "bank", "service", "gold"),
    "amie": ("values",),
    "amie.flows": ("values", "cluster", "bank", "service", "amie"),
    "agent": (
        "values",
        "cluster",
        "priority",
        "rest.bodies",
        "rest.client",
        "rest.sign_in",
        "rest.server.unix_socket",
    ),
    "slurm": (
        "values",
        "cluster",
        "priority",
        "agent",
        "rest.bodies",
        "rest.client",
        "slurm.answers",
        "slurm.judging",
    ),
    "slurm.answers": ("values", "cluster", "priority", "simulator"),
    "slurm.judging": ("values", "cluster", "bank", "slurm.answers"),
    "slurm.ranking": ("values", "priority", "report", "slurm.answers"),
    "slurm.queueing": ("values", "cluster", "priority", "scheduling", "slurm.answers"),
    "wlm.core": ("values", "cluster", "priority", "scheduling"),
    "wlm.wire": ("values",),
    "wlm.controller": ("values", "cluster", "wlm.core", "wlm.wire", "rest.bodies", "rest.client"),
    "wlm.node": ("values", "cluster", "wlm.wire"),
    "wlm.commands": ("values", "report", "wlm.wire"),
    "cli": ("values", "report", "rest.client", "rest.statuses"),
    "compose": (EVERYONE,),
}

ANYWHERE = ""  # the package itself: its name and version


def room_of(module: str) -> str:
    """The most particular entry of the table that the module falls under; its folder where there is none."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in STREETS), parts[0])


def may_import(source: str, target: str) -> bool:
    """Whether the streets lead from one module to another."""
    if target == ANYWHERE:
        return True
    here, there = room_of(source), room_of(target)
    allowed = STREETS.get(here, ())
    return here == there or there in allowed or EVERYONE in allowed


def wrong_streets(graph: Graph) -> Iterator[str]:
    """A sentence for each import that leaves the streets, each room that has none, and a circle of files."""
    for name, module in sorted(graph.modules.items()):
        if (
            room_of(name) not in STREETS
            and name != ANYWHERE
            and not (module.is_package and _is_house_of_rooms(name))
        ):
            yield f"{shown(module.path)}: the room {room_of(name)} is not on the map; say in tools/map/streets.py what it may import"
    for found in graph.imports:
        if found.inside and not may_import(found.source, found.target):
            yield f"{graph.where(found)}: {_complaint(found)}"
    if circle := graph.cycle():
        yield f"these files import each other in a circle: {' -> '.join(circle)}"


def _is_house_of_rooms(folder: str) -> bool:
    """`wlm` is no room itself; the rooms are its folders."""
    return any(room.startswith(f"{folder}.") for room in STREETS)


def _complaint(found: Import) -> str:
    here, there = room_of(found.source) or "the package itself", room_of(found.target)
    allowed = ", ".join(STREETS.get(here, ())) or "nothing but itself"
    return f"{here} may not import {there} (here {found.target}); it may import {allowed}"
