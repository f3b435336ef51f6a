"""Fields of scontrol update: their names in any case, which may be cut short."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from fairbank.core.errors import InvalidInput

T = TypeVar("T")

LETTERS_MIN = 3
"""Fewest letters of a name that is cut short."""
_FIELD = "a field that can change"


def find_field(name: str, known: Mapping[str, T], what: str = _FIELD) -> T:
    """Return what stands for a field, or other word. Raises InvalidInput as `field_name` does."""
    return known[field_name(name, known, what)]


def field_name(name: str, known: Mapping[str, object], what: str = _FIELD) -> str:
    """Return the full name of a field. Raises InvalidInput if there is none, or several fit.

    Args:
        name: the name, which may be cut short.
        known: the names that there are.
        what: what the name stands for, in the error.
    """
    wanted = name.lower()
    by_name = {full.lower(): full for full in known}
    begun = [full for full in by_name if len(wanted) >= LETTERS_MIN and full.startswith(wanted)]
    if wanted in by_name:
        return by_name[wanted]
    if len(begun) == 1:
        return by_name[begun[0]]
    near = get_close_matches(wanted, by_name, n=1)
    raise InvalidInput(
        f"{name[:40]!a} is not {what}",
        field="field",
        remedy=f"did you mean {by_name[near[0]]}?" if near else f"one of {', '.join(known)}",
    )


def required(text: str, name: str, form: str) -> str:
    """Return the text of a field. Raises InvalidInput if it is empty."""
    if text:
        return text
    raise InvalidInput(f"{name} is empty", field=name, remedy=f"write {name}={form}")
