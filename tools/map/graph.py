"""The import graph of a package, read from its files without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


@dataclass(frozen=True, order=True)
class Import:
    """One name that one module takes from another. Modules of the package go by dotted names without the package's own."""

    source: str
    target: str
    inside: bool  # the target belongs to the package
    line: int
    in_function: bool = False


@dataclass(frozen=True)
class Module:
    """A file and what it says."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


class Graph:
    """All modules under a package folder, and who imports whom, wherever in the file the import stands."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.modules = {
            module.name: module for module in map(self._read, sorted(package.rglob("*.py")))
        }

    @cached_property
    def imports(self) -> list[Import]:
        return sorted(
            {found for module in self.modules.values() for found in self._imports(module)}
        )

    def where(self, found: Import) -> str:
        """`src/fairbank/bank/ledger.py:12`, for an editor to jump to."""
        return f"{shown(self.modules[found.source].path)}:{found.line}"

    def cycle(self) -> list[str]:
        """Modules that import each other in a circle; empty when there is no circle."""
        needs: dict[str, set[str]] = {name: set() for name in self.modules}
        for found in self.imports:
            if found.inside and found.source != found.target:
                needs[found.source].add(found.target)
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as circle:
            return [str(name) for name in circle.args[1]]
        return []

    def _read(self, path: Path) -> Module:
        parts = path.relative_to(self.package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return Module(name, path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))

    def _imports(self, module: Module) -> Iterator[Import]:
        """Yield the imports of a module. Those under TYPE_CHECKING do not happen, so they are free."""
        for node, in_function in _walk(module.tree, in_function=False):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield self._import(module, alias.name, node.lineno, in_function=in_function)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(module, node)
                for alias in node.names:
                    name = f"{origin}.{alias.name}"
                    yield self._import(module, name, node.lineno, in_function=in_function)

    def _origin(self, module: Module, node: ast.ImportFrom) -> str:
        """The absolute name that a `from` starts at."""
        if node.level == 0:
            return node.module or ""
        here = [self.package.name, *filter(None, module.name.split("."))]
        above = here[: len(here) - node.level + module.is_package]
        return ".".join([*above, *filter(None, [node.module])])

    def _import(self, module: Module, target: str, line: int, *, in_function: bool) -> Import:
        top, _, rest = target.partition(".")
        if top != self.package.name:
            return Import(module.name, target, False, line, in_function)
        while rest not in self.modules:  # a name inside a module stands for the module
            rest = rest.rpartition(".")[0]
        return Import(module.name, rest, True, line, in_function)


def _walk(node: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield all nodes but those under TYPE_CHECKING, and whether each is inside a function."""
    yield node, in_function
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    guarded = node.body if isinstance(node, ast.If) and _is_type_checking(node.test) else ()
    for child in ast.iter_child_nodes(node):
        if child not in guarded:
            yield from _walk(child, in_function=inside)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def shown(path: Path) -> str:
    """The path as people write it, from where they stand."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
