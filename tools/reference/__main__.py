"""`python -m tools.reference` draws the pages, those of `man` too; with `--check` it says which are older than the code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.reference.manual import manual
from tools.reference.pages import PAGES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
MANUAL = ROOT / "packaging" / "data" / "share" / "man"
DRAWN = "<!-- drawn by `make map` from the code; do not edit by hand -->\n\n"


def drawn() -> Iterator[tuple[Path, str]]:
    """Each file with the text that it is to have."""
    for name, draw in PAGES.items():
        yield FOLDER / f"{name}.md", DRAWN + draw()
    for name, text in manual().items():
        yield MANUAL / f"man{name[-1]}" / name, text


def main() -> int:
    os.environ["COLUMNS"] = "100"  # argparse folds its help to the terminal
    wanted = dict(drawn())
    there = set(MANUAL.glob("*/*")) | wanted.keys()
    stale = sorted(
        path for path in there if not path.exists() or path.read_text() != wanted.get(path)
    )
    if "--check" in sys.argv[1:]:
        if stale:
            names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
            print(
                f"{names}: older than the code; run `make map` and look at what changed",
                file=sys.stderr,
            )
        return 1 if stale else 0
    for path in stale:
        if path not in wanted:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
