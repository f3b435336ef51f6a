"""Factors whose two columns, weighted and normalised, agree: of two that contradict each other nobody could say which is right."""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.priority.multifactor.settings import WORDS, Flag, MultifactorSettings
from fairbank.slurm.parsers.sprio import COMMAND, FACTOR_DIGITS, TRES_DIGITS, SprioLine
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine

_NAMES = {
    "a": "age",
    "b": "association",
    "f": "fairshare",
    "j": "job_size",
    "p": "partition",
    "q": "qos",
}
"""The weights by the letters of their columns."""
_RAW = {"b": Flag.NO_NORMAL_ASSOC, "p": Flag.NO_NORMAL_PART, "q": Flag.NO_NORMAL_QOS}
"""Where Slurm was told so, these factors are not from 0 to 1."""
_DOUBLES = 1 + 1e-6
"""What doubles lose is far less than what printing did."""


def consistent_rows(answer: ParsedRows[SprioLine], settings: MultifactorSettings) -> ParsedRows[SprioLine]:
    """The rows that can be right. Each other one is told, with the line and the column."""
    wrong = {row.line: found for row in answer.rows if (found := next(_contradictions(row, settings), None))}
    unreadable = sorted((*answer.unreadable, *wrong.values()), key=lambda each: each.line)
    return ParsedRows(tuple(row for row in answer.rows if row.line not in wrong), tuple(unreadable))


def _contradictions(row: SprioLine, settings: MultifactorSettings) -> Iterator[UnreadableLine]:
    for letter, normal in row.normal.items():
        name = _NAMES[letter]
        if normal < 0 or (normal > 1 and _RAW.get(letter) not in settings.flags):
            yield UnreadableLine(
                COMMAND, row.line, letter, f"{normal:.12g} is not a figure from 0 to 1"
            )
        weight, weighted = getattr(settings.weights, name), row.weighted[letter]
        if not _agree(weighted, normal, weight, FACTOR_DIGITS):
            why = f"{normal:.12g} of PriorityWeight{WORDS[name]}={weight} is not {weighted}, as column {letter.upper()} says"
            yield UnreadableLine(COMMAND, row.line, letter, why)
    for name, value in row.tres.items():
        by, part = settings.weights.tres.get(name, 0.0), row.tres_normal.get(name, 0.0)
        if not _agree(value, part, by, TRES_DIGITS):
            why = f"{part:.12g} of {name}={by:.12g} in PriorityWeightTRES is not {value:.12g}, as column T says"
            yield UnreadableLine(COMMAND, row.line, "t", why)


def _agree(weighted: float, normal: float, weight: float, digits: int) -> bool:
    """Whether one factor can have been printed as both: whole, and by its weight with so many `digits`."""
    if not weight:
        return weighted == normal == 0
    lost = 0.5 + weight * 0.5 * 0.1**digits
    return abs(normal * weight - weighted) <= lost * _DOUBLES
