"""Use of the whole centre: capacity, granted, used, down and idle of each resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairbank.core.units import MINUTES_IN_SU, in_permille
from fairbank.report.cells import counted, plain
from fairbank.report.columns import Amount, Column, DisplayFormat, Row, Show, if_any, su, text
from fairbank.report.plots.figures import Axis, Caption, Group, GroupFigure
from fairbank.report.usage import hours, percent_text, unit_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNKNOWN = "-"
BARS = ("granted", "used", "idle", "down")


def centre_rows(
    resources: Sequence[Row], seconds: int, of_slurm: Mapping[tuple[str, str], tuple[Any, int]]
) -> list[Row]:
    """Return the rows of the bank with capacity, down and idle; amounts in SU-minutes.

    Args:
        resources: rows of the bank. Settings have priority over the nodes that Slurm has now.
        seconds: duration of the period.
        of_slurm: units and down SU-minutes by resource and clusters.
    """
    names = unit_names(map(_unit, resources))
    capacities = {_unit(row): row["capacity"] for row in resources}
    for unit, (units, _) in of_slurm.items():
        if capacities[unit] is None:
            capacities[unit] = int(units * seconds / 60)
    rows: list[Row] = []
    for row in resources:
        unit = _unit(row)
        capacity, (_, down) = capacities[unit], of_slurm.get(unit, (None, None))
        of_clusters = [capacities[key] for key in capacities if key[0] == unit[0] and key[1]]
        has_prices = row["several_prices"]
        if has_prices and None not in of_clusters:
            capacity = sum(of_clusters)
        idle = None
        if capacity is not None and not has_prices:
            idle = max(0, capacity - row["used"] - (down or 0))
        shown = {**row, "unit": names[unit], "capacity": capacity, "down": down, "idle": idle}
        used_permille = None if has_prices else _permille(shown, "used")
        rows.append({**shown, "used_permille": used_permille})
    return rows


def _unit(row: Row) -> tuple[str, str]:
    return row["resource"], row["clusters"]


_SUMS = ("since", "until", "projects", "allocations", "runs", "core_seconds", "gpu_seconds")
_UTILISATION = (
    ("cpus", "core_seconds", "cpu_used_permille"),
    ("gpus", "gpu_seconds", "gpu_used_permille"),
)


def centre_totals(
    card: Row, seconds: int, of_slurm: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return the totals of the centre, with the used part of all processors and GPUs, without jobs
    on clusters that the settings lack.

    Args:
        card: the answer of the bank. Settings have priority over the nodes that Slurm has now.
        seconds: duration of the period.
        of_slurm: numbers of `cpus` and `gpus` by cluster.
    """
    sums = {key: card[key] for key in _SUMS}
    names = {row["cluster"] for row in card["clusters"]}
    of_settings = [row for row in card["resources"] if names >= set(row["clusters"].split("+"))]
    for things, used, part in _UTILISATION:
        own = [
            of_slurm.get(row["cluster"], {}).get(things) if row[things] is None else row[things]
            for row in card["clusters"]
        ]
        known = [number for number in own if number is not None]
        number = sum(known) if known and len(known) == len(own) else None
        time = sum(row[used] for row in of_settings)
        sums |= {things: number, part: in_permille(time, number and number * seconds)}
    return sums


def warnings(rows: Sequence[Row], form: DisplayFormat) -> list[str]:
    """Return a warning for each resource of which more is granted than exists: for the whole time,
    or for one of this length by the allocations of its end, as new ones are small in a past time.
    """
    lines: list[str] = []
    for row in rows:
        for key, what in (
            ("granted", "{} are granted for this time"),
            ("granted_at_end", "the allocations of its end grant {} for a time of this length"),
        ):
            if row["capacity"] and row[key] is not None and row[key] > row["capacity"]:
                percent = percent_text(in_permille(row[key], row["capacity"]) or 0)
                lines.append(
                    f"! {plain(row['unit'])}: {what.format(form.su_text(row[key]))},"
                    f" {percent} of the {form.su_text(row['capacity'])} that exist."
                )
                break
    return lines


def notes(rows: Sequence[Row], totals: Row, form: DisplayFormat) -> list[str]:
    """Return the totals of the centre, and the meaning of the columns.

    Args:
        rows: rows of the table, one for each unit.
        totals: totals of the centre.
        form: format of the hours.
    """
    lines = [
        f"{counted(totals['projects'], 'project')}, {counted(totals['allocations'], 'allocation')},"
        f" {counted(totals['runs'], 'job')},"
        f" {hours('core_seconds')(totals, form)} CPU-hours{_utilisation(totals, 'cpu')},"
        f" {hours('gpu_seconds')(totals, form)} GPU-hours{_utilisation(totals, 'gpu')}.",
        "GRANTED = credit for this time, terms spread evenly; USED = charges of jobs that ended in"
        " it; DOWN = nodes that are down now; IDLE = the rest, also what ran free, at a lower price"
        " or on the credit of a QOS.",
    ]
    lines += [
        f"{plain(row['unit'])}: an SU pays on each of its clusters, at their own prices, so"
        " CAPACITY is what all of them can charge. USED is not added."
        for row in rows
        if row["capacity"] is not None and row["several_prices"]
    ]
    # A host has the nodes of one cluster, and so a part of a row of several.
    for remedy, several in (
        ("Ask on a host with scontrol, or set [clusters.NAME.capacity].", False),
        ("Set [clusters.NAME.capacity] of each of its clusters.", True),
    ):
        missing = [
            str(row["unit"])
            for row in rows
            if row["capacity"] is None and row["clusters"] and _is_of_several(row) == several
        ]
        if missing:
            lines.append(f"Capacity not known: {plain(', '.join(missing))}. {remedy}")
    lines += [
        f"{plain(row['unit'])}: DOWN of its clusters together is not known; IDLE includes it."
        for row in rows
        if row["capacity"] is not None and _is_of_several(row)
    ]
    unknown = [
        things for things, used, _ in _UTILISATION if totals[things] is None and totals[used]
    ]
    if unknown:
        lines.append(
            f"Utilisation not known: set {' and '.join(unknown)} of each [clusters.NAME], or ask on"
            " a host with scontrol."
        )
    return lines


def _is_of_several(row: Row) -> bool:
    return "+" in row["clusters"]


def _utilisation(totals: Row, kind: str) -> str:
    permille = totals[f"{kind}_used_permille"]
    return "" if permille is None else f" (utilisation {percent_text(permille)})"


def _permille(row: Row, key: str) -> int | None:
    return None if row[key] is None else in_permille(row[key], row["capacity"])


def _part(permille_of: Callable[[Row], int | None]) -> Show:
    """Show a part of the capacity in percent."""

    def show(row: Row, form: DisplayFormat) -> str:
        permille = permille_of(row)
        if permille is None:
            return "" if form.exact else UNKNOWN
        return percent_text(permille)

    return show


_granted_percent = _part(lambda row: _permille(row, "granted"))


def _has_use(row: Row) -> bool:
    """Return whether a row has sums over jobs: credit for several prices only if it has any."""
    return bool(row["used"]) or not row["several_prices"]


def _of_jobs(show: Show) -> Show:
    """Show a sum over jobs; empty in a row without one."""
    return lambda row, form: show(row, form) if _has_use(row) else ""


COLUMNS = (
    Column("RESOURCE", text("unit")),
    Column("CAPACITY", su("capacity"), right=True),
    Column("GRANTED", su("granted"), right=True),
    Column("GRANTED%", _granted_percent, right=True, drop=2),
    Column("USED", Amount(_of_jobs(su("used"))), right=True),
    Column("USED%", _part(lambda row: row["used_permille"]), right=True, drop=1),
    Column("DOWN", if_any(su("down")), right=True, drop=3),
    Column("IDLE", su("idle"), right=True, drop=4),
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
            str(row["unit"]),
            [_bar(row, key) for key in keys],
            line=None if row["capacity"] is None else row["capacity"] / MINUTES_IN_SU,
            remark=_remark(row),
            panel=str(row["resource"]),
        )
        for row in rows
    ]
    return GroupFigure(caption, "resource", Axis("SU"), keys, groups, line="line: capacity")


def _bar(row: Row, key: str) -> float | None:
    """Return the height of a bar in SU; None if the table has no amount there either."""
    if row[key] is None or (key == "used" and not _has_use(row)):
        return None
    return float(row[key]) / MINUTES_IN_SU


def _remark(row: Row) -> str:
    """Return the parts of the capacity that were granted and used, in percent."""
    parts = {"granted": _permille(row, "granted"), "used": row["used_permille"]}
    known = [f"{name} {percent_text(part)}" for name, part in parts.items() if part is not None]
    return "\n".join(known) if row["capacity"] is not None else "capacity\nnot known"
