"""Usage by group: rows with shares, and a subtotal for each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.core.time import show_duration
from fairbank.core.units import in_percent, show_hours, show_permille
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

BAR = 25
LOW_PERCENT = 25
"""An efficiency that gets a mark."""

HOUR_DECIMALS = 4
"""Decimals of hours for programs: no two numbers of seconds have the same text."""

UNKNOWN = "-"
TOTAL = "TOTAL"

Unit = tuple[str, str]


class UsageTable(NamedTuple):
    """Rows of usage, those of a unit together, and the total of each unit.

    The rows of a unit add up to its total: what a limit leaves out is its last row.
    """

    rows: Sequence[Row]
    totals: Sequence[Row]


def usage_table(
    rows: Iterable[Row], by: str, names: Mapping[object, str], totals: Sequence[Row]
) -> UsageTable:
    """Return the table of usage rows of the bank.

    Args:
        rows: rows by group, with the group OTHERS for what a limit has left out.
        by: the kind of group.
        names: names of groups that are shown by another name.
        totals: rows by resource, of all groups.
    """
    of_unit: dict[Unit, list[Row]] = {_unit(row): [] for row in totals}
    for row in rows:
        of_unit[_unit(row)].append(row)
    units = resource_names(of_unit)
    shown: list[dict[str, Any]] = []
    total_rows: list[dict[str, Any]] = []
    for total in sorted(totals, key=_unit):
        unit, whole = _unit(total), total["charged"]
        kept = sorted(of_unit[unit], key=_by_time if UsageBy(by).is_time else _larger)
        shares = permille([row["charged"] for row in kept], whole)
        for row, share in zip(kept, shares, strict=True):
            name = names.get(row["group"], str(row["group"]))
            shown.append(_finished(row, name, units[unit], share))
        (share,) = permille([whole], whole)
        total_rows.append(_finished(total, TOTAL, units[unit], share))
    return UsageTable(shown, total_rows)


def _by_time(row: Row) -> tuple[object, ...]:
    return row["group"] == OTHERS, row["group"]


def _larger(row: Row) -> tuple[object, ...]:
    return row["group"] == OTHERS, -row["charged"], str(row["group"])


def _unit(row: Row) -> Unit:
    return row["resource"], row["clusters"]


def resource_names(units: Iterable[Unit]) -> dict[Unit, str]:
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


def _finished(row: Row, name: str, unit: str, share: int) -> dict[str, Any]:
    return {
        **{key: value for key, value in row.items() if key != "display"},
        "group": None if row["group"] == OTHERS else row["group"],
        "name": name,
        "resource_name": unit,
        "share_permille": share,
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
    unit = () if by == "resource" else (Column("RESOURCE", text("resource_name")),)
    return (
        Column(by.upper(), text("resource_name" if by == "resource" else "name")),
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
    """Show seconds as hours, which are rounded as amounts are; for programs by the second."""

    def show(seconds: int, form: DisplayFormat) -> str:
        decimals = HOUR_DECIMALS if form.exact and form.decimals is None else form.decimals
        return show_hours(seconds, form.amounts._replace(decimals=decimals))

    return field(key, show)


def _share(row: Row, form: DisplayFormat) -> str:
    permille = row["share_permille"]
    percent = show_permille(permille)
    if form.exact:
        return percent
    is_total = row["group"] is None and row["name"] == TOTAL
    bar = "" if form.short or is_total else "#" * (permille * BAR // 1000)
    return f"{percent:>6} {bar}"


def efficiency(row: Row, form: DisplayFormat) -> str:
    """Return the used part of the given processor time in percent, marked if low."""
    if not row["cpu_given"]:
        return "" if form.exact else UNKNOWN
    used = min(row["cpu_seconds"], row["cpu_given"])
    percent = in_percent(used, row["cpu_given"]) or 0
    return f"{percent}%" if form.exact or percent >= LOW_PERCENT else f"! {percent}%"


def _average_wait(row: Row, form: DisplayFormat) -> str:
    """Return the average time from submission to start."""
    if not row["runs"]:
        return "" if form.exact else UNKNOWN
    return show_duration(row["waited"] // row["runs"])
