"""The rooms above the line do no input or output, own no clock and throw no dice: what they are told is all they know."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.map.graph import Graph, shown
from tools.map.streets import room_of

PURE_ROOMS = frozenset(
    "values cluster bank priority scheduling simulator report slurm.answers slurm.judging slurm.ranking wlm.core".split()
)

# What reaches outside: the system, files, the network, databases, threads, clocks, chance.
OUTSIDE = frozenset(
    "os sys.stdin sys.stdout sys.stderr pathlib shutil tempfile glob fcntl mmap signal subprocess multiprocessing threading "
    "concurrent asyncio selectors select socket socketserver ssl http urllib sqlite3 dbm time secrets logging ctypes getpass pwd grp "
    "pysqlite3 sqlalchemy alembic psycopg litestar uvicorn uvloop httptools httpx prometheus_client psutil".split()
)
OUTSIDE_CALLS = frozenset(
    "open print input exec eval breakpoint datetime.now datetime.utcnow datetime.today date.today "
    "datetime.datetime.now datetime.date.today uuid.uuid1 uuid.uuid4 uuid1 uuid4".split()
)
SEEDED = frozenset({"random.Random"})
PLOTS = "report.plots"
"""The only package that may import matplotlib. It is an extra, and reads files of its own."""


def impurities(graph: Graph) -> Iterator[str]:
    """A sentence for each place where a pure room reaches outside."""
    for found in graph.imports:
        room = room_of(found.source)
        if found.target.split(".")[0] == "matplotlib" and not found.source.startswith(PLOTS):
            yield f"{graph.where(found)}: only {PLOTS} may import matplotlib; describe the figure and let canvas draw it"
        if (
            room in PURE_ROOMS
            and not found.inside
            and (_is_outside(found.target) or _is_dice(found.target))
        ):
            yield f"{graph.where(found)}: {room} is pure and may not import {found.target}; let a shell do it and hand over the value"
    for name, module in sorted(graph.modules.items()):
        if room_of(name) in PURE_ROOMS:
            for call, line in _calls(module.tree):
                yield f"{shown(module.path)}:{line}: {room_of(name)} is pure and may not call {call}; take the value as an argument"


def _is_outside(target: str) -> bool:
    parts = target.split(".")
    return any(".".join(parts[:length]) in OUTSIDE for length in range(1, len(parts) + 1))


def _is_dice(target: str) -> bool:
    """`from random import choice`; `import random` is judged by what is called."""
    return target.startswith("random.") and target not in SEEDED


def _calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _dotted(node.func)
            if called in OUTSIDE_CALLS or _is_dice(called):
                yield called, node.lineno


def _dotted(node: ast.expr) -> str:
    """`datetime.now` of `datetime.now(...)`; empty for anything that is not a plain name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""
