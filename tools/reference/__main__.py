"""`python -m tools.reference`: write the generated reference and manual pages.

With `--check` it writes nothing and reports the pages that are older than the code.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tools.reference.manual import manual
from tools.reference.pages import PAGES
from tools.reference.route_schemas import route_schemas

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MANUAL = ROOT / "packaging" / "data" / "share" / "man"
HEADER = "<!-- generated from the code by `make reference`; do not edit by hand -->\n\n"


def generated() -> Iterator[tuple[Path, str]]:
    """Yield each generated file with its text."""
    for name, page in PAGES.items():
        yield REFERENCE / f"{name}.md", HEADER + wrap(page())
    yield REFERENCE / "schemas" / "routes.json", route_schemas()
    for name, text in manual().items():
        yield MANUAL / f"man{name[-1]}" / name, text


def wrap(page: str) -> str:
    """Return a Markdown page whose paragraphs and list items have at most 100 columns."""
    lines: list[str] = []
    paragraph, indent, is_code = "", "", False

    def end_paragraph() -> None:
        if paragraph:
            filled = textwrap.fill(
                re.sub("`[^`]*`", lambda span: span[0].replace(" ", "\0"), paragraph),
                100,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines.append(filled.replace("\0", " "))

    for line in page.split("\n"):
        is_fence = line.startswith("```")
        starts_item = re.match(r" *(?:[-*:]|\d+\.) +", line)
        is_text = not (is_code or is_fence or line.startswith(("|", "#", "<"))) and line.strip()
        if is_text and paragraph and not starts_item:
            paragraph += f" {line.strip()}"
            continue
        end_paragraph()
        paragraph = line if is_text else ""
        indent = " " * starts_item.end() if starts_item else ""
        if not is_text:
            lines.append(line)
        is_code ^= is_fence
    end_paragraph()
    return "\n".join(lines)


def main() -> int:
    """Write or check the pages; return 1 if a check finds an old one."""
    os.environ["COLUMNS"] = "100"  # argparse wraps its help to the width of the terminal
    texts = dict(generated())
    present = set(MANUAL.glob("*/*"))
    stale = sorted(
        path
        for path in present | texts.keys()
        if not path.exists() or path.read_text() != texts.get(path)
    )
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: older than the code; run `make reference`")
        return 1 if stale else 0
    for path in stale:
        if path in texts:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
