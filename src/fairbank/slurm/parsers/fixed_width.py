"""Answers in columns of fixed width: `squeue --Format`, for columns none of which holds a text that a user chose."""

from __future__ import annotations

from collections.abc import Mapping


def fixed_width_format(widths: Mapping[str, int]) -> str:
    """What `squeue --Format` is asked for, to have these columns so wide."""
    return ",".join(f"{name}:{width}" for name, width in widths.items())


def fixed_width_cells(line: str, widths: Mapping[str, int]) -> dict[str, str]:
    """A line's cells by the names of their columns."""
    cells, at = {}, 0
    for name, width in widths.items():
        cells[name] = line[at : at + width].strip()
        at += width
    return cells
