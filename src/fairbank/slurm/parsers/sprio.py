"""Factors of pending jobs: `sprio --noheader` with the `--format` of `format_of`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import copysign, nextafter

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_OFFSET, PRIORITY_MAX
from fairbank.core.tres import tres_name
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Record, read_rows, split_records
from fairbank.slurm.parsers.config import Version
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine

COMMAND = "sprio"
LETTERS = "ircuYySAaBbFfJjPpQqNTt"
"""Job, partition, cluster, user; priority, normalised priority; site; each factor weighted and
normalised; nice; TRES weighted and normalised.
"""
NAMES = "on"
"""Account and QOS, which sprio prints since NAMED_SINCE."""
FACTORS = "abfjpq"
"""Age, association, fair share, job size, partition, QOS."""
FACTOR_DIGITS, TRES_DIGITS = 7, 2
"""Decimals of normalised values."""
NAMED_SINCE = Version(23, 2, 0)
_NONE = "Unable to find jobs matching"
_SIGNED = re.compile(r"-?\d{1,10}", re.ASCII)
_PAIR = re.compile(r"([a-z][\w/:.-]*)=(\d{1,20}(?:\.\d+)?)", re.ASCII)


class SprioLine(msgspec.Struct, frozen=True):
    """Job in one of its partitions.

    weighted, normal   factors by their columns in FACTORS, rounded as sprio rounds them tres,
    tres_normal  the same for TRES total              priority before it was rounded down is_fixed
    an administrator set the priority, and there are no factors account, qos_name  empty where sprio
    does not print them line               number of the line
    """

    job: int
    partition: str
    user: str
    cluster: str | None
    priority: int
    total: float
    is_fixed: bool
    site: int
    nice: int
    weighted: Mapping[str, int]
    normal: Mapping[str, float]
    tres: Mapping[str, float]
    tres_normal: Mapping[str, float]
    account: str = ""
    qos_name: str = ""
    line: int = 0


def letters_of(version: Version) -> str:
    """Return the columns that sprio of this version prints."""
    return LETTERS + NAMES if version >= NAMED_SINCE else LETTERS


def format_of(letters: str) -> str:
    """Return the `--format` for these columns."""
    return PIPE.join(f"%{letter}" for letter in letters)


def letters_in(text: str) -> str:
    """Return the columns of a recorded file: with the names if any line has as many cells."""
    named = LETTERS + NAMES
    return (
        named if any(line.count(PIPE) == len(named) - 1 for line in text.splitlines()) else LETTERS
    )


def read_factors(text: str, letters: str = LETTERS) -> ParsedRows[SprioLine]:
    """Read the lines in sprio's order; none if it prints that no job is pending."""
    if text.startswith(_NONE):
        return ParsedRows(())
    seen = _LineTracker()
    return read_rows(
        COMMAND, seen.number_lines(split_records(COMMAND, text, letters, PIPE)), seen.factors
    )


class _LineTracker:
    """Number of the current line, and the jobs so far.

    A job occurs once for each of its partitions; in versions that print names, also for each QOS
    that it requested. Then only a line with equal cells is a duplicate.
    """

    def __init__(self) -> None:
        self._line = 0
        self._there: set[tuple[object, ...]] = set()

    def number_lines(
        self, records: Iterator[Record | UnreadableLine]
    ) -> Iterator[Record | UnreadableLine]:
        for record in records:
            self._line = record.line
            yield record

    def factors(self, cells: dict[str, str]) -> SprioLine:
        row = _factors(cells, self._line)
        name = tuple(cells.values()) if NAMES[0] in cells else (row.job, row.partition)
        if name in self._there:
            raise InvalidInput(
                f"job {row.job} is listed twice in partition {row.partition}", field="JOBID"
            )
        self._there.add(name)
        return row


def unrounded(weighted: float, normal: float, weight: float, digits: int) -> float:
    """Return a weighted factor that rounds to both printed columns.

    If none does, since the weights have changed, return the one nearest to the normalised column
    among those that round to the weighted column.

    Args:
        weighted: the column of whole numbers.
        normal: the normalised column.
        weight: of the factor.
        digits: decimals of the normalised column.
    """
    if not weight or f"{weighted / weight:.{digits}f}" == f"{normal:.{digits}f}":
        return float(weighted)
    about = normal * weight
    if abs(about - weighted) < 0.5:
        return about
    end = weighted + copysign(0.5, about - weighted)
    return (
        end if round(end) == weighted else nextafter(end, weighted)
    )  # halves are rounded to the even number


def _factors(padded: dict[str, str], line: int) -> SprioLine:
    cells = {letter: cell.strip(" ") for letter, cell in padded.items()}
    normal = {letter: words.decimal(cells[letter], letter.upper()) for letter in FACTORS}
    weighted = {
        letter: _signed(cells[letter.upper()], letter.upper(), most=2**40) for letter in FACTORS
    }
    priority = words.number(cells["Y"], "PRIORITY", most=PRIORITY_MAX)
    part = words.decimal(cells["y"], "PRIORITY")
    given = part > 1 or (not any(normal.values()) and not cells["T"] and part == priority)
    return SprioLine(
        words.number(cells["i"], "JOBID", most=ids.JOB_ID_MAX),
        ids.name(cells["r"], field="PARTITION"),
        words.user(cells["u"], "USER"),
        None if cells["c"] in ("", "(null)") else ids.name(cells["c"], field="CLUSTER"),
        priority,
        float(priority) if given else _uncut(priority, part),
        given,
        _signed(cells["S"], "SITE"),
        _signed(cells["N"], "NICE"),
        weighted,
        normal,
        _pairs(cells["T"]),
        _pairs(cells["t"]),
        ids.name(cells["o"], field="ACCOUNT") if cells.get("o") else "",
        ids.name(cells["n"], field="QOSNAME") if cells.get("n") else "",
        line,
    )


def _uncut(priority: int, part: float) -> float:
    """Return the priority before it was rounded down, from the 14 digits of the normalised one."""
    return min(max(float(priority), part * PRIORITY_MAX), nextafter(priority + 1, 0))


def _signed(text: str, field: str, most: int = NICE_OFFSET) -> int:
    if _SIGNED.fullmatch(text) and abs(int(text)) <= most:
        return int(text)
    raise InvalidInput(f"{words.quoted(text)} is not a whole number", field=field)


def _pairs(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise InvalidInput(f"{words.quoted(part)} is not NAME=NUMBER", field="TRES")
        found[tres_name(match[1], field="TRES")] = float(match[2])
    return found
