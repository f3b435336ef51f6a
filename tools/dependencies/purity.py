"""Purity check: pure packages have no input, output, clock or randomness without a seed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from os.path import relpath

from tools.dependencies.graph import Graph
from tools.dependencies.rules import PURE, package_of

# System, files, network, databases, threads, clocks, randomness.
IMPURE_MODULES = frozenset(
    "os sys.stdin sys.stdout sys.stderr pathlib shutil tempfile glob fcntl mmap signal subprocess "
    "multiprocessing threading concurrent asyncio selectors select socket socketserver ssl http "
    "urllib sqlite3 dbm time secrets logging ctypes getpass pwd grp pysqlite3 sqlalchemy alembic "
    "psycopg litestar uvicorn uvloop httptools httpx prometheus_client psutil".split()
)
IMPURE_CALLS = frozenset(
    "open print input exec eval breakpoint datetime.now datetime.utcnow datetime.today date.today "
    "datetime.datetime.now datetime.date.today uuid.uuid1 uuid.uuid4 uuid1 uuid4".split()
)


def impurities(graph: Graph) -> Iterator[str]:
    """Report each import and each call that a pure package may not have."""
    pure = {name: package_of(name) for name in graph.modules if package_of(name) in PURE}
    for item in graph.imports:
        if (
            item.source in pure
            and not item.is_internal
            and not item.is_for_types
            and _is_impure(item.target)
        ):
            yield (
                f"{graph.location(item)}: {pure[item.source]} is pure and may not import "
                f"{item.target}; let the caller read it and pass the value"
            )
    for name, package in sorted(pure.items()):
        for node in ast.walk(graph.modules[name].tree):
            call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if call in IMPURE_CALLS or _is_random(call):
                yield (
                    f"{relpath(graph.modules[name].path)}:{getattr(node, 'lineno', 0)}: "
                    f"{package} is pure and may not call {call}; take the value as an argument"
                )


def _is_impure(target: str) -> bool:
    parts = target.split(".")
    names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return _is_random(target) or not IMPURE_MODULES.isdisjoint(names)


def _is_random(target: str) -> bool:
    """Return True for the functions of `random`; a `random.Random` has a seed of its own."""
    return target.startswith("random.") and target != "random.Random"
