"""Rows in the order that somebody asks for."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.report.cells import plain
from fairbank.report.columns import Column, Look, Row
from fairbank.values.trouble import Malformed


def sort_rows(columns: Sequence[Column], rows: Sequence[Row], wanted: str, look: Look) -> list[Row]:
    """`rows` by `COL[,-COL]`: numbers by size, the rest as text; with - the largest first. Raises Malformed."""
    ordered = list(rows)
    exactly = look._replace(units="m", separators=False, short=False)
    for said in reversed([each.strip() for each in wanted.split(",") if each.strip()]):
        column = _column(columns, said.removeprefix("-"))
        ordered.sort(
            key=lambda row, column=column: _rank(column.cell(row, exactly)),  # type: ignore[misc]
            reverse=said.startswith("-"),
        )
    return ordered


def _column(columns: Sequence[Column], name: str) -> Column:
    for column in columns:
        if column.head == name.upper().replace("_", "-"):
            return column
    there = ", ".join(column.head for column in columns)
    raise Malformed(
        f"there is no column {plain(name[:40])!r} to sort by",
        field="--sort",
        remedy=f"there are: {there}",
    )


def _rank(cell: str) -> tuple[bool, float, str]:
    """Numbers before text, each among themselves."""
    try:
        return False, float(cell.rstrip("%")), cell
    except ValueError:
        return True, 0.0, cell
