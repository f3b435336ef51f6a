"""Differences between Slurm's output and Fairbank's: each different cell by column name, or the
whole line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


def compare_lines(
    command: str, theirs: list[str], ours: list[str], counted: Counter[str]
) -> Iterator[str]:
    """Yield the differences as text and count rows and cells. Trailing blanks are ignored."""
    if len(theirs) != len(ours):
        yield f"{command}: {len(theirs)} lines, not {len(ours)}"
    head = [cell.strip() for cell in theirs[0].split("|")]
    counted[f"rows of {command.split()[0]}"] += len(theirs) - 1
    for their_line, our_line in zip(theirs, ours, strict=False):
        cells = list(zip(their_line.split("|"), our_line.split("|"), strict=False))
        counted["cells"] += len(cells) if len(head) > 1 else len(their_line.split())
        if their_line.rstrip() != our_line.rstrip():
            differences = list(_cells(head, cells)) if len(head) > 1 else []
            yield from (
                f"{command}: {difference}"
                for difference in differences or [_difference("", their_line, our_line)]
            )


def _cells(head: list[str], cells: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the cells that differ in more than their width."""
    row_name = " ".join(cell for cell, _ in cells[:3])
    for name, (theirs, ours) in zip(head, cells, strict=False):
        if theirs.strip() != ours.strip():
            yield _difference(f"{row_name}: {name}: ", theirs, ours)


def _difference(prefix: str, theirs: str, ours: str) -> str:
    return f"{prefix}Slurm says\n    {theirs}\n and we\n    {ours}"
