"""`python -m tools.reference` draws the pages; with `--check` it says which are older than the code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.reference.pages import PAGES

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
DRAWN = "<!-- drawn by `make map` from the code; do not edit by hand -->\n\n"


def main() -> int:
    os.environ["COLUMNS"] = "100"  # argparse folds its help to the terminal
    stale = []
    for name, draw in PAGES.items():
        page, text = FOLDER / f"{name}.md", DRAWN + draw()
        if "--check" in sys.argv[1:]:
            if not page.exists() or page.read_text() != text:
                stale.append(page.name)
        else:
            page.write_text(text)
    if stale:
        print(f"docs/reference: {', '.join(stale)}: older than the code; run `make map` and look at what changed", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
