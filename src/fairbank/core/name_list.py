"""Lists of names in messages, shortened."""

from __future__ import annotations

from collections.abc import Sequence

LISTED_MAX = 5
"""Maximum number of names or numbers that a message lists."""


def list_some(names: Sequence[object]) -> str:
    """Return the first LISTED_MAX names, separated by commas, with `...` if there are more."""
    return ", ".join(map(str, names[:LISTED_MAX])) + (", ..." if len(names) > LISTED_MAX else "")
