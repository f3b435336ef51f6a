"""The map as Markdown: the rooms as a Mermaid picture, the files as plain text, both between two markers of a page."""

from __future__ import annotations

from collections import defaultdict

from tools.map.graph import Graph
from tools.map.streets import ANYWHERE, STREETS, room_of

BEGIN = "<!-- map: drawn by `make map`; do not edit by hand -->"
END = "<!-- end of map -->"
NEW_PAGE = f"# Architecture\n\n## Map\n\n{BEGIN}\n{END}\n"


def draw(graph: Graph) -> str:
    """The whole drawing, without the markers."""
    return f"```mermaid\n{rooms(graph)}\n```\n\n```text\n{files(graph)}\n```\n"


def rooms(graph: Graph) -> str:
    """Each room and an arrow to each room that it imports."""
    present = sorted({room_of(name) for name in graph.modules if name != ANYWHERE}, key=_in_order)
    arrows = {
        (room_of(found.source), room_of(found.target)) for found in graph.imports if found.inside
    }
    lines = ["flowchart TD"]
    lines += [f'  {_identifier(room)}["{room}"]' for room in present]
    lines += [
        f"  {_identifier(here)} --> {_identifier(there)}"
        for here, there in sorted(
            arrows, key=lambda arrow: (_in_order(arrow[0]), _in_order(arrow[1]))
        )
        if here != there and there != ANYWHERE
    ]
    return "\n".join(lines)


def files(graph: Graph) -> str:
    """Each file under its room, with the files it imports: neighbours by their name, others by room."""
    by_room: dict[str, list[str]] = defaultdict(list)
    for name, module in graph.modules.items():
        if name != ANYWHERE and not (module.is_package and not _targets(graph, name)):
            by_room[room_of(name)].append(name)
    lines = []
    for room in sorted(by_room, key=_in_order):
        lines.append(room)
        lines += [
            f"  {_file(name, room):<14} {_needs(graph, name, room)}".rstrip()
            for name in sorted(by_room[room])
        ]
    return "\n".join(lines)


def replace_map(page: str, drawing: str) -> str:
    """The page with the drawing between its markers. Raises ValueError when the markers are not there once each, in order."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(
            f"the page needs these two lines, once each and in this order:\n{BEGIN}\n{END}"
        )
    return f"{before}{BEGIN}\n\n{drawing}\n{END}{after}"


def _targets(graph: Graph, name: str) -> set[str]:
    return {
        found.target
        for found in graph.imports
        if found.source == name and found.inside and found.target not in (name, ANYWHERE)
    }


def _needs(graph: Graph, name: str, room: str) -> str:
    """`entry refusal; values: time units`."""
    needed: dict[str, list[str]] = defaultdict(list)
    for target in sorted(_targets(graph, name)):
        needed[room_of(target)].append(_inside(target, room_of(target)))
    neighbours = " ".join(filter(None, needed.pop(room, [])))
    others = [
        f"{there}: {' '.join(needed[there])}".removesuffix(": ")
        for there in sorted(needed, key=_in_order)
    ]
    return "; ".join(filter(None, [neighbours, *others]))


def _inside(module: str, room: str) -> str:
    """The module's name within its room; empty for the room's own file."""
    return module.removeprefix(room).removeprefix(".")


def _file(module: str, room: str) -> str:
    return _inside(module, room) or room.rpartition(".")[2]


def _identifier(room: str) -> str:
    return room.replace(".", "_")


def _in_order(room: str) -> tuple[int, str]:
    """As in the table of streets, from the values to the composition."""
    names = list(STREETS)
    return (names.index(room) if room in names else len(names), room)
