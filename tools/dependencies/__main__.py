"""`python -m tools.dependencies`: check imports, purity and reachability of the package."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.dependencies.graph import Graph
from tools.dependencies.purity import impurities
from tools.dependencies.reachability import script_modules, unreachable_modules
from tools.dependencies.rules import forbidden_imports, unused_entries

PACKAGE = Path("src/fairbank")


def main() -> int:
    """Print what is wrong and return 1, or return 0."""
    graph = Graph(PACKAGE.resolve())
    scripts = script_modules(Path("pyproject.toml"), PACKAGE.name)
    faults = [
        *forbidden_imports(graph),
        *unused_entries(graph),
        *impurities(graph),
        *unreachable_modules(graph, scripts),
    ]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
