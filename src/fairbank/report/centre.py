"""Use of the whole centre: capacity, granted, used, occupied, idle and down of each resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.core.units import MINUTES_IN_SU, counted, in_permille, show_permille
from fairbank.report.cells import plain
from fairbank.report.columns import Column, DisplayFormat, Row, Show, if_any, percent, su, text
from fairbank.report.plots.figures import Axis, Caption, Group, GroupFigure
from fairbank.report.usage import hours, resource_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BARS = ("granted", "used", "occupied", "idle", "down")


def centre_rows(resources: Sequence[Row], down_minutes: Mapping[tuple[str, str], int]) -> list[Row]:
    """Return the rows of the bank with their unit, and more amounts in SU-minutes.

    CAPACITY = OCCUPIED + IDLE + DOWN, so IDLE includes what is down where that is not known, and is
    negative if runs had more than exists. `uncharged` is what is neither used nor down.

    Args:
        resources: rows of the bank, with Slurm's capacity where the settings have none.
        down_minutes: what is down of a resource and clusters, as far as it is known.
    """
    names = resource_names((row["resource"], row["clusters"]) for row in resources)
    rows: list[Row] = []
    for row in resources:
        unit = row["resource"], row["clusters"]
        capacity, down = row["capacity"], down_minutes.get(unit)
        uncharged = used_permille = idle = None
        if not row["several_prices"]:
            used_permille = _permille(row, "used")
            if capacity is not None:
                uncharged = max(0, capacity - row["used"] - (down or 0))
                if row["occupied"] is not None:
                    idle = capacity - row["occupied"] - (down or 0)
        shown = {
            "resource_name": names[unit],
            "down": down,
            "idle": idle,
            "uncharged": uncharged,
            "used_permille": used_permille,
        }
        rows.append({**row, **shown})
    return rows


TOTALS = (
    *("since", "until", "projects", "allocations", "runs", "core_seconds", "gpu_seconds"),
    *("cpus", "cpu_used_permille", "gpus", "gpu_used_permille"),
)
"""Fields of the bank's answer that are the totals of the centre."""


def warnings(rows: Sequence[Row], form: DisplayFormat) -> list[str]:
    """Return a warning for each resource of which more is granted than exists: for the whole time,
    or for one of this length by the allocations of its end, as new ones are small in a past time;
    and for each of which jobs had more, with the causes.
    """
    lines: list[str] = []
    for row in rows:
        for key, what in (
            ("granted", "{} are granted for this time"),
            ("granted_at_end", "the allocations of its end grant {} for a time of this length"),
        ):
            if row["capacity"] and row[key] is not None and row[key] > row["capacity"]:
                part = show_permille(in_permille(row[key], row["capacity"]) or 0)
                lines.append(
                    f"! {plain(row['resource_name'])}: {what.format(form.su_text(row[key]))},"
                    f" {part} of the {form.su_text(row['capacity'])} that exist."
                )
                break
        if row["idle"] is not None and row["idle"] < 0:
            lines.append(
                f"! {plain(row['resource_name'])}: jobs had {form.su_text(-row['idle'])} more than"
                " there was, so IDLE is negative. Jobs that began before this time count in full,"
                " as do nodes that are down but still run jobs; else the capacity is too small."
            )
    return lines


def notes(rows: Sequence[Row], totals: Row, form: DisplayFormat) -> list[str]:
    """Return the totals of the centre, and the meaning of the columns.

    Args:
        rows: rows of the table, one for each unit.
        form: format of the hours.
    """
    lines = [
        f"{counted(totals['projects'], 'project')}, {counted(totals['allocations'], 'allocation')},"
        f" {counted(totals['runs'], 'job')},"
        f" {hours('core_seconds')(totals, form)} CPU-hours{_utilisation(totals, 'cpu')},"
        f" {hours('gpu_seconds')(totals, form)} GPU-hours{_utilisation(totals, 'gpu')}.",
        "GRANTED = credit for this time, terms spread evenly; USED = charges of jobs that ended in"
        " it; OCCUPIED = what its jobs had, also free ones, at a lower price or on the credit of a"
        " QOS; CAPACITY = OCCUPIED + IDLE + DOWN.",
    ]
    lines += [
        f"{plain(row['resource_name'])}: an SU pays on each of its clusters, at their own prices,"
        " so CAPACITY is what all of them can charge. USED is not added."
        for row in rows
        if row["capacity"] is not None and row["several_prices"]
    ]
    lines += _missing_capacities(rows)
    lines += _idle_notes(rows)
    unknown = [
        things
        for things, used in (("cpus", "core_seconds"), ("gpus", "gpu_seconds"))
        if totals[things] is None and totals[used]
    ]
    if unknown:
        lines.append(
            f"Utilisation not known: set {' and '.join(unknown)} of each [clusters.NAME], or ask on"
            " a host with scontrol."
        )
    return lines


def _missing_capacities(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the resources of unknown capacity with the remedy. A host has the nodes of one cluster,
    and so a part of a row of several.
    """
    for remedy, several in (
        ("Ask on a host with scontrol, or set [clusters.NAME.capacity].", False),
        ("Set [clusters.NAME.capacity] of each of its clusters.", True),
    ):
        missing = [
            str(row["resource_name"])
            for row in rows
            if row["capacity"] is None
            and row["clusters"]
            and not row["of_qos"]
            and _is_of_several(row) == several
        ]
        if missing:
            yield f"Capacity not known: {plain(', '.join(missing))}. {remedy}"
    of_qos = [
        str(row["resource_name"]) for row in rows if row["capacity"] is None and row["of_qos"]
    ]
    if of_qos:
        yield (
            f"No capacity of its own: {plain(', '.join(of_qos))}. Jobs of a QOS with credit of its"
            " own run on the nodes of the other resources."
        )


def _idle_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield why IDLE is not known, or includes what is down."""
    for row in rows:
        name = plain(row["resource_name"])
        if row["capacity"] is not None and row["without_size"]:
            yield (
                f"{name}: IDLE is not known: {counted(row['without_size'], 'job')} ran free, and"
                " were reported without their size (tres or billing)."
            )
    unknown = [row for row in rows if row["idle"] is not None and row["down"] is None]
    for remedy, several in ((" Ask on a host with scontrol.", False), ("", True)):
        names = [str(row["resource_name"]) for row in unknown if _is_of_several(row) == several]
        if names:
            where = "of its clusters together " if several else ""
            yield (
                f"{plain(', '.join(names))}: DOWN {where}is not known; IDLE includes it.{remedy}"
            )


def _is_of_several(row: Row) -> bool:
    return len(row["cluster_names"]) > 1


def _utilisation(totals: Row, kind: str) -> str:
    permille = totals[f"{kind}_used_permille"]
    return "" if permille is None else f" (utilisation {show_permille(permille)})"


def _permille(row: Row, key: str) -> int | None:
    return None if row[key] is None else in_permille(row[key], row["capacity"])


def _of_jobs(show: Show) -> Show:
    """Show a sum over jobs; empty in a row without one: credit for several prices."""
    return lambda row, form: "" if row["used"] is None else show(row, form)


COLUMNS = (
    Column("RESOURCE", text("resource_name")),
    Column("CAPACITY", su("capacity"), right=True),
    Column("GRANTED", su("granted"), right=True),
    Column("GRANTED%", percent(lambda row: _permille(row, "granted")), right=True, drop=2),
    Column("USED", su("used"), right=True),
    Column("USED%", percent(lambda row: row["used_permille"]), right=True, drop=1),
    Column("OCCUPIED", if_any(su("occupied")), right=True, drop=4),
    Column("IDLE", if_any(su("idle")), right=True, drop=5),
    Column("DOWN", if_any(su("down")), right=True, drop=3),
    Column("JOBS", _of_jobs(text("runs")), right=True, extra=True),
    Column("CPU-HOURS", _of_jobs(hours("core_seconds")), right=True, extra=True),
    Column("GPU-HOURS", _of_jobs(hours("gpu_seconds")), right=True, extra=True),
)


def figure(rows: Sequence[Row], caption: Caption) -> GroupFigure:
    """Return bars of each row in SU, those of a resource on one axis, with a line at the capacity.

    Args:
        rows: rows of the table, with amounts in SU-minutes.
        caption: text of the figure.
    """
    keys = [key for key in BARS if any(_bar(row, key) is not None for row in rows)]
    groups = [
        Group(
            str(row["resource_name"]),
            [_bar(row, key) for key in keys],
            line=None if row["capacity"] is None else row["capacity"] / MINUTES_IN_SU,
            remark=_remark(row),
            panel=str(row["resource"]),
        )
        for row in rows
    ]
    return GroupFigure(caption, "resource", Axis("SU"), keys, groups, line="line: capacity")


def _bar(row: Row, key: str) -> float | None:
    """Return the height of a bar in SU, 0 for a negative amount; None if the table has no amount
    there either.
    """
    return None if row[key] is None else max(0.0, float(row[key])) / MINUTES_IN_SU


def _remark(row: Row) -> str:
    """Return the parts of the capacity that were granted and used, in percent."""
    parts = {"granted": _permille(row, "granted"), "used": row["used_permille"]}
    known = [f"{name} {show_permille(part)}" for name, part in parts.items() if part is not None]
    return "\n".join(known) if row["capacity"] is not None else "capacity\nnot known"
