"""Priorities explained: bars, position, the job before it; for programs; compared with Slurm's."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from fairbank.core.units import counted
from fairbank.report.cells import csv_line, ordinal_ending
from fairbank.report.slurm.sprio import FACTORS, FIELDS, Format, PriorityRow, WeightRow

BAR = 24
"""Length of the longest bar, in characters."""


class PriorityPart(NamedTuple):
    """Summand of a priority: its field or TRES, name for people, value, and maximum (None:
    unbounded).
    """

    field: str
    name: str
    value: float
    weight: float | None


class FactorNote(NamedTuple):
    """Sentence on a factor, and its facts for programs."""

    text: str
    facts: Mapping[str, object] = {}


def parts(row: PriorityRow, weights: WeightRow) -> list[PriorityPart]:
    """Return factors with a weight, TRES, site factor, nice; none if the priority was set."""
    if row.direct is not None:
        return []
    summands = [
        PriorityPart(factor.field, factor.words, factor.value(row), factor.weight(weights))
        for factor in FACTORS
        if factor.weight(weights)
    ]
    summands += [
        PriorityPart(name, name, value, weights.tres.get(name))
        for name, value in row.tres.items()
        if value
    ]
    summands += [PriorityPart("site", "site factor", float(row.site), None)] if row.site else []
    return summands + ([PriorityPart("nice", "nice", float(-row.nice), None)] if row.nice else [])


def best_rows(rows: Sequence[PriorityRow]) -> list[PriorityRow]:
    """Return the row with the highest priority of each job in each partition.

    sprio prints another row for each further QOS that a job requested.
    """
    best: dict[tuple[int, str], PriorityRow] = {}
    for row in rows:
        name = row.job, row.partition_name
        if name not in best or _order(row) < _order(best[name]):
            best[name] = row
    return list(best.values())


def partition_queues(rows: Sequence[PriorityRow]) -> dict[str, list[PriorityRow]]:
    """Return the pending jobs of each partition in order of priority, each job once."""
    queues: dict[str, list[PriorityRow]] = {}
    for row in sorted(best_rows([row for row in rows if not row.runs]), key=_order):
        queues.setdefault(row.partition_name, []).append(row)
    return queues


def _order(row: PriorityRow) -> tuple[int, float, int]:
    """Return slurmctld's sort key: priority, submit time, job id."""
    return -int(row.priority), inf if row.submitted is None else row.submitted, row.job


def explain_priority(
    row: PriorityRow,
    queue: Sequence[PriorityRow],
    weights: WeightRow,
    notes: Mapping[str, FactorNote] | None = None,
) -> list[str]:
    """Return lines that explain the priority of one job.

    Args:
        row: the best row of the job.
        queue: all pending jobs of its partition, in order.
        notes: on factors, by their fields.
    """
    who = ", ".join(
        part for part in (row.user, row.account, f"partition {row.partition_name}") if part
    )
    lines = [f"Job {row.job} ({who})"]
    if row.runs:
        return [*lines, f"priority {int(row.priority):,}, and it runs", *_bars(row, weights, {})]
    at = bisect_left(queue, _order(row), key=_order)
    place = f"{at + 1}{ordinal_ending(at + 1)} of {len(queue)} that wait in {row.partition_name}"
    lines += [f"priority {int(row.priority):,}, {place}", *_bars(row, weights, notes or {})]
    return [*lines, _ahead(row, queue[at - 1], weights) if at else "No job is ahead of it there."]


def with_job_ahead(row: PriorityRow, queue: Sequence[PriorityRow]) -> list[PriorityRow]:
    """Return the job and the one just ahead of it, if any (arguments: `explain_priority`)."""
    at = bisect_left(queue, _order(row), key=_order)
    return [row, *queue[max(at - 1, 0) : at]]


def terms_side_by_side(rows: Sequence[PriorityRow], weights: WeightRow) -> list[str]:
    """Return a line for each term of the priorities, with the terms of the jobs in columns."""
    terms = [{part.name: part.value for part in parts(row, weights)} for row in rows]
    names = dict.fromkeys(name for job_terms in terms for name in job_terms)
    cells = [["", *(f"job {row.job}" for row in rows)]]
    cells += [
        [name, *(f"{job_terms.get(name, 0.0):,.0f}" for job_terms in terms)] for name in names
    ]
    cells += [["together", *(f"{int(row.priority):,}" for row in rows)]]
    return ["".join([f"{name:<12}", *(f"{cell:>13}" for cell in line)]) for name, *line in cells]


def _bars(row: PriorityRow, weights: WeightRow, notes: Mapping[str, FactorNote]) -> list[str]:
    if row.direct is not None:
        return ["  An administrator gave it this priority; no factor counts."]
    summands = parts(row, weights)
    longest = max((abs(part.value) for part in summands), default=0.0) or 1.0
    lines = []
    for part in summands:
        lines.append(_line(part, round(abs(part.value) / longest * BAR)))
        if part.field in notes:
            lines.append(f"    {notes[part.field].text}")
    return (
        lines
        if sum(part.value for part in summands) >= 1
        else [*lines, "  All together is less than 1, the least that a job has."]
    )


def _line(part: PriorityPart, length: int) -> str:
    scaled = "" if not part.weight else f"{part.value / part.weight:.3f} x {part.weight:,.0f}"
    mark = "#" if part.value >= 0 else "-"
    return f"  {part.name:<12} {part.value:>12,.0f}   {scaled:<20} {mark * length}".rstrip()


def _ahead(row: PriorityRow, other: PriorityRow, weights: WeightRow) -> str:
    whose = f" of {other.user}" if other.user else ""
    start = f"Just ahead: job {other.job}{whose} with {int(other.priority):,}"
    if other.direct is not None:
        return f"{start}, which an administrator gave it."
    if row.direct is not None:
        return f"{start}."
    reasons = _differences(row, other, weights)
    if reasons:
        return f"{start}: {', '.join(reasons)}."
    return f"{start}: the same, and " + (
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
        for name, value in sorted(by_name.items(), key=lambda item: -item[1])
        if abs(value) >= 0.5
    ]


def unnamed_note(rows: Sequence[PriorityRow]) -> list[str]:
    """Return a note if accounts and QOS of some jobs are unknown."""
    if jobs := {row.job for row in rows if not (row.account or row.runs)}:
        return [
            f"Account and QOS of {counted(len(jobs), 'job')} are not known: squeue tells them, or"
            " with --from its file squeue.txt."
        ]
    return []


def undated_note(rows: Sequence[PriorityRow]) -> list[str]:
    """Return a note if submit times are unknown, which order jobs of equal priority."""
    if any(row.submitted is None and not row.runs for row in rows):
        return [
            "Of equal priorities the lower number stands first here: squeue, or squeue.txt, would"
            " tell which job was submitted first."
        ]
    return []


def as_data(row: PriorityRow) -> dict[str, object]:
    """Return a row for programs: weighted factors, null if an administrator set the priority."""
    return {
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


def explained_data(
    row: PriorityRow,
    queue: Sequence[PriorityRow],
    weights: WeightRow,
    notes: Mapping[str, FactorNote] | None,
) -> dict[str, object]:
    """Return for programs what `explain_priority` shows.

    Args:
        row: the best row of the job.
        queue: all pending jobs of its partition, in order.
        notes: notes on factors, by their fields; None: no notes are known.
    """
    ahead = with_job_ahead(row, queue)[1:]
    shown = {part.field for part in parts(row, weights)}
    return as_data(row) | {
        "position": None if row.runs else bisect_left(queue, _order(row), key=_order) + 1,
        "waiting": len(queue),
        "ahead": as_data(ahead[0]) if ahead and not row.runs else None,
        "notes": None
        if notes is None
        else {
            field: {"text": note.text, **note.facts}
            for field, note in notes.items()
            if field in shown and not row.runs
        },
    }


def _factors(row: PriorityRow) -> dict[str, object]:
    tres = {name: _rounded(value) for name, value in row.tres.items()}
    return {factor.field: _rounded(factor.value(row)) for factor in FACTORS} | {"tres": tres}


def _rounded(value: float) -> float:
    """Round to 12 digits, which removes the noise of the weight; sprio prints fewer."""
    return float(f"{value:.12g}")


# --- comparison with the computed priorities ---


COMPARED = (*(f"{factor.letter}{factor.letter.lower()}" for factor in FACTORS), "Tt", "N")
"""Computed figures by sprio's letters: factors weighted and normalised, and nice."""


class PriorityDifference(NamedTuple):
    """Difference in one figure of a job, in words."""

    figure: str
    text: str


def priority_differences(
    theirs_shown: Sequence[PriorityRow], computed: Sequence[PriorityRow], weights: WeightRow
) -> Iterator[PriorityDifference]:
    """Yield the differences; the priority itself only if no factor explains its difference.

    Args:
        theirs_shown: rows that Slurm shows, with one for each computed row.
        computed: computed rows.
    """
    by_name = {_name(row): row for row in theirs_shown}
    for ours in computed:
        theirs = by_name[_name(ours)]
        different = [
            letters
            for letters in COMPARED
            if _cells(theirs, letters, weights) != _cells(ours, letters, weights)
        ]
        if not different and int(theirs.priority) != int(ours.priority):
            different = ["Y"]
        for letters in different:
            pairs = zip(
                _cells(theirs, letters, weights), _cells(ours, letters, weights), strict=True
            )
            slurm_cell, own_cell = next(pair for pair in pairs if pair[0] != pair[1])
            figure = FIELDS[letters[0]].head
            yield PriorityDifference(
                figure,
                f"{figure} of job {ours.job} in {ours.partition_name}: Slurm says"
                f" {slurm_cell or 'nothing'}, computed {own_cell or 'nothing'}",
            )


def _name(row: PriorityRow) -> tuple[int, str, str]:
    return row.job, row.partition_name, row.qos_name


def _cells(row: PriorityRow, letters: str, weights: WeightRow) -> list[str]:
    return [FIELDS[letter].show(row, weights) for letter in letters]


_WHY = {
    "AGE": (
        "Age counts to slurmctld's last tick, and of a job that came or was changed since then to"
        " that moment."
    ),
    "FAIRSHARE": "A job has the factor that its association had at slurmctld's last tick.",
    "JOBSIZE": (
        "Of a job that takes whole nodes slurmctld counts all their CPUs once it has tried to place"
        " it; it tells those asked for."
    ),
}
_ELSE = "What was changed since slurmctld's last tick counts from the next one on."


def possible_reasons(differences: Collection[PriorityDifference]) -> list[str]:
    """Return possible reasons for the differences, each once."""
    figures = {difference.figure for difference in differences}
    reasons = [why for figure, why in _WHY.items() if figure in figures]
    return reasons + ([_ELSE] if figures - _WHY.keys() else [])


def csv_lines(
    rows: Sequence[PriorityRow], weights: WeightRow, format_: Format, *, header: bool = True
) -> list[str]:
    """Return the columns of sprio as CSV, without line ends.

    Args:
        rows: rows of jobs, in order.
        format_: columns; their widths do not count.
        header: begin with the header.
    """
    header_line = [[cell.field.head for cell in format_.cells]] if header else []
    made = [[cell.field.show(row, weights).strip() for cell in format_.cells] for row in rows]
    return [csv_line(cells) for cells in header_line + made]
