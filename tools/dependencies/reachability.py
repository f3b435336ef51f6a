"""Reachability check: a command, daemon, route or migration must reach every module."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from os.path import relpath
from pathlib import Path

from tools.dependencies.graph import Graph, Module

# Modules that no product code imports, and their next user.
NEXT_USERS: Mapping[str, str] = {}


def unreachable_modules(graph: Graph, scripts: Iterable[str]) -> Iterator[str]:
    """Report modules that only tests or benchmarks import, and needless entries of NEXT_USERS."""
    roots = [*scripts, *(name for name in graph.modules if _is_entry_point(graph.modules[name]))]
    reached = reachable(graph, roots)
    for name in sorted(NEXT_USERS.keys() & reached):
        yield f"{name}: has a user now; remove it from tools/dependencies/reachability.py"
    for name in sorted(NEXT_USERS.keys() - graph.modules.keys()):
        yield f"{name}: no such module; remove it from tools/dependencies/reachability.py"
    for name in sorted(graph.modules.keys() - reachable(graph, [*roots, *NEXT_USERS])):
        yield (
            f"{relpath(graph.modules[name].path)}: no command, daemon, route or migration "
            "reaches this module; delete it or move it beside the tests"
        )


def reachable(graph: Graph, roots: Iterable[str]) -> set[str]:
    """Return the roots and all modules that they import or name, directly or not."""
    needs: dict[str, set[str]] = defaultdict(set)
    for item in graph.imports:
        if item.is_internal:
            needs[item.source].add(item.target)
    reached: set[str] = set()
    waiting = [name for name in roots if name in graph.modules]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [*needs[name], *_named_modules(graph, graph.modules[name])]
            waiting += [name.rpartition(".")[0]]  # Python runs the folder's __init__.py first
    return reached


def script_modules(project: Path, package: str) -> list[str]:
    """Return the modules that [project.scripts] of a pyproject.toml names."""
    scripts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["scripts"]
    return [text.partition(":")[0].removeprefix(f"{package}.") for text in scripts.values()]


def _is_entry_point(module: Module) -> bool:
    """Return True for a command, a program for `python -m`, and a file that Alembic runs."""
    if module.name.startswith("store.migrations.") or module.name.endswith("__main__"):
        return True
    return module.name.startswith("cli.") and any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("Command", "Noun", "host_command")
        for node in module.tree.body
    )


def _named_modules(graph: Graph, module: Module) -> Iterator[str]:
    """Yield modules that a string names in full, such as "fairbank.setup.write_queue_process"."""
    prefix = f"{graph.package.name}."
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.removeprefix(prefix)
            if name != node.value and name in graph.modules:
                yield name
