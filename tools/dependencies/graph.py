"""Import graph of a package, read from its files without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os.path import relpath
from pathlib import Path


@dataclass(frozen=True, order=True)
class Import:
    """One name that a module imports. Names inside the package are dotted, without its own name."""

    source: str
    target: str
    is_internal: bool
    line: int
    is_for_types: bool = False  # stands under `if TYPE_CHECKING:`, so it never runs
    is_deferred: bool = False  # stands in a function, so it runs when the function is called


@dataclass(frozen=True)
class Module:
    """A file of the package with its syntax tree."""

    name: str
    path: Path
    tree: ast.Module


class Graph:
    """All modules below the directory of a package, and their imports."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.modules = {
            module.name: module for module in map(self._read, sorted(package.rglob("*.py")))
        }

    @cached_property
    def imports(self) -> list[Import]:
        return sorted({item for module in self.modules.values() for item in self._imports(module)})

    def location(self, item: Import) -> str:
        """Return the place of an import, such as `src/fairbank/bank/ledger.py:12`."""
        return f"{relpath(self.modules[item.source].path)}:{item.line}"

    def _read(self, path: Path) -> Module:
        parts = path.relative_to(self.package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return Module(name, path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))

    def _imports(self, module: Module) -> Iterator[Import]:
        for node, is_for_types, is_deferred in _import_nodes(module.tree):
            origin = "" if isinstance(node, ast.Import) else f"{self._origin(module, node)}."
            for alias in node.names:
                target = self._target(origin + alias.name)
                yield Import(module.name, *target, node.lineno, is_for_types, is_deferred)

    def _origin(self, module: Module, node: ast.ImportFrom) -> str:
        """Return the absolute name of the module in `from MODULE import`."""
        if node.level == 0:
            return node.module or ""
        here = [self.package.name, *filter(None, module.name.split("."))]
        base = here[: len(here) - node.level + (module.path.name == "__init__.py")]
        return ".".join([*base, *filter(None, [node.module])])

    def _target(self, name: str) -> tuple[str, bool]:
        top, _, rest = name.partition(".")
        if top != self.package.name:
            return name, False
        while rest not in self.modules:  # a name defined in a module stands for the module
            rest = rest.rpartition(".")[0]
        return rest, True


def _import_nodes(
    node: ast.AST, is_for_types: bool = False, is_deferred: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, is_for_types, is_deferred
        else:
            guard = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _import_nodes(child, is_for_types or guard, is_deferred or function)
