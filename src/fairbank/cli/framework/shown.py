"""Requested texts, terminal width and suggestions.

Separate from the parser, so that the help of `fairbank` itself does not import argparse.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Shown(Exception):
    """Text that the user requested, such as the help: print it and stop."""


def terminal_width() -> int:
    """Return COLUMNS, or the terminal's width, or 80."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and 0 < int(said) < 10_000:
        return int(said)
    try:
        return os.get_terminal_size(1).columns or 80
    except (OSError, ValueError):
        return 80


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean balance?` if a known word is near, else an empty string."""
    from difflib import get_close_matches  # 6 ms that only a mistake pays

    near = get_close_matches(word[:64], list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""
