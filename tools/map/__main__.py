"""`python -m tools.map` draws the map into ARCHITECTURE.md; with `--check` it only says whether the map is true. Both walk the streets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.map.drawing import NEW_PAGE, draw, replace_map
from tools.map.graph import Graph
from tools.map.purity import impurities
from tools.map.streets import wrong_streets


def main(arguments: list[str] | None = None) -> int:
    """Draw or check; 0 when the streets are kept and the page is up to date."""
    parser = argparse.ArgumentParser(
        prog="tools.map", description="Draw the import graph, and keep the streets one way."
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail when the drawing is stale"
    )
    parser.add_argument(
        "--package",
        type=Path,
        default=Path("src/fairbank"),
        help="the folder of the package (%(default)s)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=Path("ARCHITECTURE.md"),
        help="where the drawing stands (%(default)s)",
    )
    asked = parser.parse_args(arguments)
    graph = Graph(asked.package.resolve())
    faults = [*wrong_streets(graph), *impurities(graph)]
    fault = check_page(graph, asked.page) if asked.check else draw_page(graph, asked.page)
    faults += [fault] if fault else []
    for line in faults:
        print(line, file=sys.stderr)
    return 1 if faults else 0


def draw_page(graph: Graph, page: Path) -> str | None:
    """Write the drawing into the page, which is made when missing. Answers what is wrong with the page, if anything."""
    old = page.read_text(encoding="utf-8") if page.exists() else NEW_PAGE
    try:
        page.write_text(replace_map(old, draw(graph)), encoding="utf-8")
    except ValueError as wrong:
        return f"{page}: {wrong}"
    return None


def check_page(graph: Graph, page: Path) -> str | None:
    """What is wrong with the page: missing, without markers, or older than the code."""
    if not page.exists():
        return f"{page}: missing; run `make map`"
    old = page.read_text(encoding="utf-8")
    try:
        fresh = replace_map(old, draw(graph))
    except ValueError as wrong:
        return f"{page}: {wrong}"
    return (
        None
        if fresh == old
        else f"{page}: the map is older than the code; run `make map` and look at what changed"
    )


if __name__ == "__main__":
    sys.exit(main())
