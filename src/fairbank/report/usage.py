"""Usage by group: rows with shares, and a subtotal for each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.core.time import show_duration
from fairbank.core.usage_groups import OTHERS, UsageBy
from fairbank.report.columns import (
    Column,
    DisplayFormat,
    Row,
    Show,
    duration,
    field,
    if_any,
    su,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SUMS = (
    *("runs", "failed", "charged", "elapsed", "core_seconds", "gpu_seconds", "waited"),
    *("cpu_seconds", "cpu_given", "wasted", "failed_early"),
)
BAR = 25
LOW_PERCENT = 25
"""An efficiency that gets a mark."""

UNKNOWN = "-"

Unit = tuple[str, str]


class UsageTable(NamedTuple):
    """Rows of usage, those of a unit together, and the total of each unit.

    The rows of a unit add up to its total: what a limit leaves out is its last row.
    """

    rows: Sequence[Row]
    totals: Sequence[Row]


def usage_table(
    rows: Iterable[Row], by: str, names: Mapping[object, str], limit: int, totals: Iterable[Row]
) -> UsageTable:
    """Return the table of usage rows of the bank; rows of one key are added up.

    Args:
        rows: rows by group; with a limit at least the largest of each unit.
        by: the kind of group.
        names: names of groups that are shown by another name.
        limit: maximum number of rows of a unit: the largest, of times the latest; 0: all.
        totals: rows by resource, of all groups.
    """
    whole = {_unit(row): row for row in _added(totals, keep_group=False)}
    units = unit_names(whole)
    groups = _added(rows)
    shown: list[dict[str, Any]] = []
    for unit, total in sorted(whole.items()):
        of_unit = [row for row in groups if _unit(row) == unit]
        order = _later if UsageBy(by).is_time else _larger
        kept = sorted(of_unit, key=order)[: limit or None]
        if UsageBy(by).is_time:
            kept.reverse()
        rest = {key: total[key] - sum(row[key] for row in kept) for key in SUMS}
        parts = [row["charged"] for row in kept]
        shares = permille([*parts, rest["charged"]], total["charged"])
        for row, share in zip(kept, shares, strict=False):
            name = names.get(row["group"], str(row["group"]))
            shown.append(_finished(row, name, units[unit], share))
        if any(rest.values()):  # not only runs: measured use is none
            row = {**total, **rest, "early_exit_code": None}
            shown.append(_finished(row, OTHERS, units[unit], shares[-1]))
    total_rows = [
        _finished(row, "TOTAL", units[unit], sum(permille([row["charged"]], row["charged"])))
        | {"is_total": True}
        for unit, row in sorted(whole.items())
    ]
    return UsageTable(shown, total_rows)


def _later(row: Row) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in row["group"])


def _larger(row: Row) -> tuple[object, ...]:
    return -row["charged"], str(row["group"])


def _unit(row: Row) -> Unit:
    return row["resource"], row["clusters"]


def unit_names(units: Iterable[Unit]) -> dict[Unit, str]:
    """Return the names of units: the resource, with its clusters if prices differ between them.

    A unit without clusters has credit or use that belongs to none of them.
    """
    units = list(units)
    resources = [resource for resource, _ in units]
    return {
        (resource, clusters): (
            f"{resource}@{clusters}" if clusters and resources.count(resource) > 1 else resource
        )
        for resource, clusters in units
    }


def _added(rows: Iterable[Row], *, keep_group: bool = True) -> list[Row]:
    """Return one row for each group and unit, the sum of its rows."""
    sums: dict[object, dict[str, Any]] = {}
    for row in rows:
        group = row["group"] if keep_group else None
        key = (group, *_unit(row))
        if (before := sums.get(key)) is None:
            sums[key] = {name: row[name] for name in row if name != "display"} | {"group": group}
            continue
        before["early_exit_code"] = same_exit(before, row)
        for name in SUMS:
            before[name] += row[name]
    return list(sums.values())


def _finished(row: Row, name: str, unit: str, share: int) -> dict[str, Any]:
    has_cpu_time = bool(row["cpu_given"])
    return {
        **row,
        "name": name,
        "unit": unit,
        "share_permille": share,
        "wasted": row["wasted"] if has_cpu_time else None,
    }


def permille(parts: Sequence[int], whole: int) -> list[int]:
    """Return the parts in thousandths of the whole. They add up to 1000: largest remainders."""
    if whole <= 0:
        return [0] * len(parts)
    floors = [divmod(1000 * max(0, part), whole) for part in parts]
    missing = 1000 - sum(floor for floor, _ in floors)
    by_rest = sorted(range(len(parts)), key=lambda place: (-floors[place][1], place))
    raised = set(by_rest[: max(0, missing)])
    return [floor + (place in raised) for place, (floor, _) in enumerate(floors)]


# --- columns ---


def columns(by: str) -> Sequence[Column]:
    """Return the columns; the first is the group."""
    unit = () if by == "resource" else (Column("RESOURCE", text("unit")),)
    return (
        Column(by.upper(), text("unit" if by == "resource" else "name")),
        *unit,
        Column("JOBS", text("runs"), right=True),
        Column("FAILED", text("failed"), right=True, drop=2),
        Column("SU", su("charged"), right=True),
        Column("SHARE%", _share, drop=1),
        Column("EFF%", efficiency, right=True, drop=4),
        Column("WASTED", if_any(su("wasted")), right=True, drop=3),
        Column("AVG-WAIT", _average_wait, right=True, extra=True),
        Column("ELAPSED", duration("elapsed"), right=True, extra=True),
        Column("CPU-HOURS", hours("core_seconds"), right=True, extra=True),
        Column("GPU-HOURS", hours("gpu_seconds"), right=True, extra=True),
    )


def hours(key: str) -> Show:
    """Show seconds as whole hours."""
    return field(key, lambda value, form: f"{value // 3_600:{',' if form.separators else ''}}")


def percent_text(permille: int) -> str:
    return f"{permille // 10}.{permille % 10}%"


def _share(row: Row, form: DisplayFormat) -> str:
    permille = row["share_permille"]
    percent = percent_text(permille)
    if form.exact:
        return percent
    bar = "" if form.short or "is_total" in row else "#" * (permille * BAR // 1000)
    return f"{percent:>6} {bar}"


def efficiency(row: Row, form: DisplayFormat) -> str:
    """Return the used part of the given processor time in percent, marked if low."""
    if not row["cpu_given"]:
        return "" if form.exact else UNKNOWN
    used = min(row["cpu_seconds"], row["cpu_given"])
    percent = (200 * used + row["cpu_given"]) // (2 * row["cpu_given"])
    return f"{percent}%" if form.exact else f"{percent}% {'!' if percent < LOW_PERCENT else ' '}"


def _average_wait(row: Row, form: DisplayFormat) -> str:
    """Return the average time from submission to start."""
    if not row["runs"]:
        return "" if form.exact else UNKNOWN
    return show_duration(row["waited"] // row["runs"])


def same_exit(one: Row, other: Row) -> int | None:
    """Return the exit code of both groups' early failures, if it is the same."""
    codes = {row["early_exit_code"] for row in (one, other) if row["failed_early"]}
    return codes.pop() if len(codes) == 1 else None
