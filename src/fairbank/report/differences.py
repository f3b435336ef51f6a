"""Differences between sprio and the priorities computed from other output of Slurm."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from fairbank.report.sprio import FIELDS, PriorityRow, WeightRow

FACTORS = ("Aa", "Bb", "Ff", "Jj", "Pp", "Qq", "Tt")
"""Computed factors by sprio's letters: weighted and normalised."""


class PriorityDifference(NamedTuple):
    """Difference in one figure of a job: Slurm's value and the computed one."""

    figure: str
    of: str
    said: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.figure} of {self.of}: Slurm says {self.said or 'nothing'}, computed"
            f" {self.found or 'nothing'}"
        )


def priority_differences(
    said: Sequence[PriorityRow], found: Sequence[PriorityRow], weights: WeightRow
) -> Iterator[PriorityDifference]:
    """Yield the differences of the computed rows. The priority itself is listed only if no factor
    explains the difference.
    """
    by_name = {_name(row): row for row in said}
    for ours in found:
        theirs = by_name[_name(ours)]
        of = f"job {ours.job} in {ours.partition_name}"
        wrong = [
            pair
            for pair in (*FACTORS, "N")
            if _cells(theirs, pair, weights) != _cells(ours, pair, weights)
        ]
        for pair in wrong or ([] if int(theirs.priority) == int(ours.priority) else ["Y"]):
            one, other = _cells(theirs, pair, weights), _cells(ours, pair, weights)
            at = next(at for at in range(len(pair)) if one[at] != other[at])
            yield PriorityDifference(
                FIELDS[pair].head if pair in FIELDS else FIELDS[pair[0]].head,
                of,
                one[at],
                other[at],
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


def possible_reasons(found: Collection[PriorityDifference]) -> list[str]:
    """Return possible reasons for the differences, each once."""
    figures = {each.figure for each in found}
    return [why for figure, why in _WHY.items() if figure in figures] + (
        [_ELSE] if figures - _WHY.keys() else []
    )
