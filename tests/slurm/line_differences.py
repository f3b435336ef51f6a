"""Differences between Slurm's output and Fairbank's: each different cell by column name, or the
whole line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


def compared(
    question: str, theirs: list[str], ours: list[str], counted: Counter[str]
) -> Iterator[str]:
    """Yield the differences as text and count rows and cells. Trailing blanks are ignored."""
    if len(theirs) != len(ours):
        yield f"{question}: {len(theirs)} lines, not {len(ours)}"
    head = [cell.strip() for cell in theirs[0].split("|")]
    counted[f"rows of {question.split()[0]}"] += len(theirs) - 1
    for said_so, found in zip(theirs, ours, strict=False):
        cells = list(zip(said_so.split("|"), found.split("|"), strict=False))
        counted["cells"] += len(cells) if len(head) > 1 else len(said_so.split())
        if said_so.rstrip() != found.rstrip():
            named = list(_cells(head, cells)) if len(head) > 1 else []
            yield from (f"{question}: {each}" for each in named or [_told("", said_so, found)])


def _cells(head: list[str], cells: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the cells that differ in more than their width."""
    who = " ".join(cell for cell, _ in cells[:3])
    for name, (one, other) in zip(head, cells, strict=False):
        if one.strip() != other.strip():
            yield _told(f"{who}: {name}: ", one, other)


def _told(where: str, one: str, other: str) -> str:
    return f"{where}Slurm says\n    {one}\n and we\n    {other}"
