"""The streets: which room may import which. All are one way. A wrong street is told with file, line and what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.map.graph import Graph, Import, shown

EVERYONE = "*"

# A room is a folder, or one file of a folder where the longer name stands here too. A room may always import itself.
STREETS: Mapping[str, tuple[str, ...]] = {
    "core": (),
    "cluster": ("core",),
    "bank": ("core", "cluster"),
    "priority": ("core", "cluster"),
    "scheduling": ("core", "cluster"),
    "simulator": ("core", "cluster", "bank", "priority", "scheduling"),
    "report": ("core",),
    "store": ("core", "cluster", "bank"),
    "service": ("core", "cluster", "bank", "priority", "simulator", "store"),
    "rest": (
        "core",
        "cluster",
        "bank",
        "service",
        "rest.bodies",
        "rest.sign_in",
        "rest.sign_in.doorkeeper",
    ),
    "rest.bodies": ("core",),
    "rest.client": ("core", "rest.bodies", "rest.sign_in"),
    "rest.sign_in": ("core",),
    "rest.sign_in.doorkeeper": ("core", "bank", "service", "rest", "rest.sign_in"),
    "rest.server": (
        "core",
        "service",
        "rest",
        "rest.bodies",
        "rest.sign_in",
        "rest.server.unix_socket",
    ),
    "rest.server.unix_socket": ("core",),
    "slurm": (
        "core",
        "cluster",
        "priority",
        "rest.bodies",
        "rest.client",
        "slurm.parsers",
        "slurm.compare",
    ),
    "slurm.parsers": ("core", "cluster", "priority", "simulator"),
    "slurm.compare": ("core", "cluster", "bank", "slurm.parsers"),
    "slurm.fairshare_view": ("core", "priority", "report", "slurm.parsers"),
    "slurm.queue_snapshot": ("core", "cluster", "priority", "scheduling", "slurm.parsers"),
    "slurm.agent": (
        "core",
        "cluster",
        "priority",
        "slurm",
        "rest.bodies",
        "rest.client",
        "rest.sign_in",
        "rest.server.unix_socket",
    ),
    "cli": ("core", "report", "rest.client"),
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
