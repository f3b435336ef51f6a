"""Efficiency in `fairbank usage`: cells, and remarks on jobs that fail early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.time import show_duration
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairbank.report.columns import Look, Row

LOW_PERCENT = 25
"""An efficiency that gets a mark."""

EARLY_LEAST = 3
"""As many jobs that failed early are worth a remark, if they are also most of somebody's."""

UNKNOWN = "-"
WASTED = "WASTED = charged but idle, of the jobs whose processor time is known."


def known(row: Row) -> bool:
    """Return whether the use of its processors is known."""
    return bool(row["cpu_given"])


def wasted(row: Row) -> int | None:
    """Return wasted SU-minutes; None if unknown."""
    return row["wasted"] if known(row) else None


def idle(row: Row, look: Look) -> str:
    """Return the amount charged for idle resources."""
    if row["wasted"] is None:
        return "" if look.exact else UNKNOWN
    return look.su(row["wasted"])


def efficiency(row: Row, look: Look) -> str:
    """Return the efficiency in percent, marked if low; empty for a total."""
    if not known(row) or "total" in row:
        return "" if look.exact or "total" in row else UNKNOWN
    percent = (200 * row["cpu_seconds"] + row["cpu_given"]) // (2 * row["cpu_given"])
    return f"{percent}%" if look.exact else f"{percent}% {'!' if percent < LOW_PERCENT else ' '}"


def average_wait(row: Row, look: Look) -> str:
    """Return the average time from submission to start."""
    return (
        show_duration(row["waited"] // row["runs"])
        if row["runs"]
        else ""
        if look.exact
        else UNKNOWN
    )


def remarks(rows: Iterable[Row], by: str) -> list[str]:
    """Return notes: the meaning of WASTED, and users whose jobs mostly fail within two minutes."""
    rows = list(rows)
    said = [WASTED] if any(map(known, rows)) else []
    return said + [
        _early(row)
        for row in rows
        if by == "user" and row["failed_early"] >= max(EARLY_LEAST, row["runs"] // 2 + 1)
    ]


def _early(row: Row) -> str:
    exited = f" (exit {row['early_exit_code']})" if row["early_exit_code"] else ""
    name = plain(str(row["name"]))
    failed = f"{row['failed_early']} of {row['runs']} jobs failed within 2 minutes of start{exited}"
    return f"{name}: {failed}: fairbank jobs -u {name} --failed"


def same_exit(one: Row, other: Row) -> int | None:
    """Return the exit code of both groups' early failures, if it is the same."""
    codes = {row["early_exit_code"] for row in (one, other) if row["failed_early"]}
    return codes.pop() if len(codes) == 1 else None
