"""Explanation of a job's priority: a bar per factor, its position, and the job before it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from fairbank.report.cells import counted
from fairbank.report.sprio import PriorityRow, WeightRow

BAR = 24
"""Length of the longest bar, in characters."""


class NamedFactor(NamedTuple):
    """Factor with one weight: its field and its name for people."""

    name: str
    words: str


FACTORS = (
    NamedFactor("age", "age"),
    NamedFactor("association", "association"),
    NamedFactor("fair_share", "fair share"),
    NamedFactor("job_size", "job size"),
    NamedFactor("partition", "partition"),
    NamedFactor("qos", "QOS"),
)


class PriorityPart(NamedTuple):
    """Summand of a priority: name, value, and maximum (None: unbounded)."""

    name: str
    value: float
    weight: float | None


def parts(row: PriorityRow, weights: WeightRow) -> list[PriorityPart]:
    """Return the factors with a weight, then TRES, site factor and nice; none if the priority was
    set.
    """
    if row.direct is not None:
        return []
    found = [
        PriorityPart(each.words, getattr(row, each.name), weight)
        for each in FACTORS
        if (weight := getattr(weights, each.name))
    ]
    found += [
        PriorityPart(name, value, weights.tres.get(name))
        for name, value in row.tres.items()
        if value
    ]
    found += [PriorityPart("site factor", float(row.site), None)] if row.site else []
    return found + ([PriorityPart("nice", float(-row.nice), None)] if row.nice else [])


def best_rows(rows: Sequence[PriorityRow]) -> list[PriorityRow]:
    """Return the row with the highest priority of each job in each partition.

    sprio prints another row for each further QOS that a job requested.
    """
    found: dict[tuple[int, str], PriorityRow] = {}
    for row in rows:
        name = row.job, row.partition_name
        if name not in found or _order(row) < _order(found[name]):
            found[name] = row
    return list(found.values())


def partition_queues(rows: Sequence[PriorityRow]) -> dict[str, list[PriorityRow]]:
    """Return the pending jobs of each partition in order of priority, each job once."""
    found: dict[str, list[PriorityRow]] = {}
    for row in sorted(best_rows([row for row in rows if not row.runs]), key=_order):
        found.setdefault(row.partition_name, []).append(row)
    return found


def _order(row: PriorityRow) -> tuple[int, float, int]:
    """Return slurmctld's sort key: priority, submit time, job id."""
    return -int(row.priority), inf if row.submitted is None else row.submitted, row.job


def explain_priority(
    row: PriorityRow, queue: Sequence[PriorityRow], weights: WeightRow
) -> list[str]:
    """Return lines that explain the priority of one job.

    Args:
        row: the best row of the job.
        queue: all pending jobs of its partition, in order.
        weights: the weights of the factors.
    """
    who = ", ".join(
        each for each in (row.user, row.account, f"partition {row.partition_name}") if each
    )
    if row.runs:
        return [
            f"Job {row.job} ({who})",
            f"priority {int(row.priority):,}, and it runs",
            *_bars(row, weights),
        ]
    at = bisect_left(queue, _order(row), key=_order)
    lines = [
        f"Job {row.job} ({who})",
        (
            f"priority {int(row.priority):,}, {_ordinal(at + 1)} of {len(queue)} that wait in"
            f" {row.partition_name}"
        ),
    ]
    lines += _bars(row, weights)
    return [*lines, _ahead(row, queue[at - 1], weights) if at else "Nobody is ahead of it there."]


def _bars(row: PriorityRow, weights: WeightRow) -> list[str]:
    if row.direct is not None:
        return ["  An administrator gave it this priority; no factor counts."]
    found = parts(row, weights)
    longest = max((abs(part.value) for part in found), default=0.0) or 1.0
    lines = [_line(part, round(abs(part.value) / longest * BAR)) for part in found]
    return (
        lines
        if sum(part.value for part in found) >= 1
        else [*lines, "  All together is less than 1, the least that a job has."]
    )


def _line(part: PriorityPart, length: int) -> str:
    scaled = "" if not part.weight else f"{part.value / part.weight:.3f} x {part.weight:,.0f}"
    mark = "#" if part.value >= 0 else "-"
    return f"  {part.name:<12} {part.value:>12,.0f}   {scaled:<20} {mark * length}".rstrip()


def _ahead(row: PriorityRow, other: PriorityRow, weights: WeightRow) -> str:
    whose = f" of {other.user}" if other.user else ""
    said = f"Just ahead: job {other.job}{whose} with {int(other.priority):,}"
    if other.direct is not None:
        return f"{said}, which an administrator gave it."
    if row.direct is not None:
        return f"{said}."
    reasons = _differences(row, other, weights)
    if reasons:
        return f"{said}: {', '.join(reasons)}."
    return f"{said}: the same, and " + (
        "the lower number goes first."
        if other.submitted == row.submitted
        else "it was submitted earlier."
    )


def _differences(row: PriorityRow, other: PriorityRow, weights: WeightRow) -> list[str]:
    """Return the differences per factor, the greatest advantage of the other job first."""
    mine: Mapping[str, float] = {part.name: part.value for part in parts(row, weights)}
    theirs = {part.name: part.value for part in parts(other, weights)}
    by_name = {
        name: theirs.get(name, 0.0) - mine.get(name, 0.0)
        for name in [*theirs, *(name for name in mine if name not in theirs)]
    }
    return [
        f"{name} {value:+,.0f}"
        for name, value in sorted(by_name.items(), key=lambda each: -each[1])
        if abs(value) >= 0.5
    ]


def _ordinal(number: int) -> str:
    ending = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{ending}"


def unnamed_note(rows: Sequence[PriorityRow]) -> list[str]:
    """Return a note if accounts and QOS of some jobs are unknown."""
    if jobs := {row.job for row in rows if not (row.account or row.runs)}:
        return [
            f"Account and QOS of {counted(len(jobs), 'job')} are not known: squeue tells them, or"
            " with --from its file squeue.txt."
        ]
    return []


def undated_note(rows: Sequence[PriorityRow]) -> list[str]:
    """Return a note if submit times are unknown, by which slurmctld orders jobs of equal
    priority.
    """
    if any(row.submitted is None and not row.runs for row in rows):
        return [
            "Of equal priorities the lower number stands first here: squeue, or squeue.txt, would"
            " tell which job was submitted first."
        ]
    return []


def as_data(rows: Sequence[PriorityRow]) -> list[Mapping[str, object]]:
    """Return the rows for programs. Factors are weighted; null if an administrator set the
    priority.
    """
    return [
        {
            "job_id": row.job,
            "partition": row.partition_name,
            "user": row.user or None,
            "account": row.account or None,
            "qos": row.qos_name or None,
            "cluster": row.cluster,
            "priority": int(row.priority),
            "given": row.direct is not None,
            "runs": row.runs,
            "factors": None if row.direct is not None else _factors(row),
            "site": row.site,
            "nice": row.nice,
        }
        for row in rows
    ]


def _factors(row: PriorityRow) -> dict[str, object]:
    told = {name: _told(value) for name, value in row.tres.items()}
    return {**{each.name: _told(getattr(row, each.name)) for each in FACTORS}, "tres": told}


def _told(value: float) -> float:
    """Round to 12 digits, which removes the noise of multiplying by the weight; sprio prints
    fewer.
    """
    return float(f"{value:.12g}")
