"""Factors of pending jobs: output of `command`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import copysign, nextafter
from typing import Any

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_OFFSET, PRIORITY_MAX
from fairbank.core.tres import tres_name
from fairbank.report.slurm import sprio as columns
from fairbank.report.slurm.notation import NULL
from fairbank.report.slurm.sprio import NO_JOBS, PriorityRow
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Cells, read_rows, split_records
from fairbank.slurm.parsers.config import Version
from fairbank.slurm.parsers.values import ParsedRows

COMMAND = "sprio"
LETTERS = "ircuYySAaBbFfJjPpQqNTt"
"""Job, partition, cluster, user; priority, normalised priority; site; each factor weighted and
normalised; nice; TRES weighted and normalised.
"""
NAMES = "on"
"""Account and QOS, which sprio prints since NAMED_SINCE."""
FACTORS = {factor.letter.lower(): factor.field for factor in columns.FACTORS}
"""Fields of a row by the columns of the factors."""
FACTOR_DIGITS, TRES_DIGITS = columns.FACTOR_DIGITS, columns.TRES_DIGITS
"""Decimals of normalised values."""
NAMED_SINCE = Version(23, 2, 0)
_SIGNED = re.compile(r"-?\d{1,10}", re.ASCII)
_PAIR = re.compile(r"([^\s=,]+)=(\d{1,20}(?:\.\d+)?)", re.ASCII)


class SprioLine(msgspec.Struct, frozen=True):
    """Line of sprio, a job in one of its partitions.

    `row` has the weighted factors as sprio rounds them, the total before it was rounded down, and
    account and QOS empty where sprio does not print them. `normal` has the normalised factors by
    their columns in FACTORS, `tres_normal` those of TRES. `line` is the number of the line.
    """

    row: PriorityRow
    normal: Mapping[str, float]
    tres_normal: Mapping[str, float]
    line: int = 0


def letters_of(version: Version) -> str:
    """Return the columns that sprio of this version prints."""
    return LETTERS + NAMES if version >= NAMED_SINCE else LETTERS


def command(letters: str) -> tuple[str, ...]:
    """Return the command that prints these columns."""
    return COMMAND, "--noheader", f"--format={PIPE.join(f'%{letter}' for letter in letters)}"


def letters_in(text: str) -> str:
    """Return the columns of a recorded file: with the names if any line has as many cells."""
    named = LETTERS + NAMES
    return (
        named if any(line.count(PIPE) == len(named) - 1 for line in text.splitlines()) else LETTERS
    )


def read_factors(text: str, letters: str = LETTERS) -> ParsedRows[SprioLine]:
    """Read the lines in sprio's order; none if it prints that no job is pending."""
    if text.startswith(NO_JOBS):
        return ParsedRows(())
    there: set[tuple[object, ...]] = set()

    def line_of(cells: Cells) -> SprioLine:
        # A job occurs once for each of its partitions; in versions that print names, also for each
        # QOS that it requested. Then only a line with equal cells is a duplicate.
        line = _line(cells)
        name = tuple(cells.values()) if NAMES[0] in cells else line.row[:2]
        if name in there:
            raise InvalidInput(
                f"job {line.row.job} is listed twice in partition {line.row.partition_name}",
                field="JOBID",
            )
        there.add(name)
        return line

    return read_rows(COMMAND, split_records(COMMAND, text, letters, PIPE), line_of)


def unrounded(weighted: float, normal: float, weight: float, digits: int) -> float:
    """Return a weighted factor that rounds to both printed columns.

    If none does, since the weights have changed, return the one nearest to the normalised column
    among those that round to the weighted column.
    """
    if not weight or f"{weighted / weight:.{digits}f}" == f"{normal:.{digits}f}":
        return float(weighted)
    about = normal * weight
    if abs(about - weighted) < 0.5:
        return about
    end = weighted + copysign(0.5, about - weighted)
    # Halves are rounded to the even number.
    return end if round(end) == weighted else nextafter(end, weighted)


def _line(padded: Cells) -> SprioLine:
    cells = Cells(padded.line, {letter: cell.strip(" ") for letter, cell in padded.items()})
    normal = {letter: words.decimal(cells[letter], letter.upper()) for letter in FACTORS}
    weighted: dict[str, Any] = {
        field: float(_signed(cells[letter.upper()], letter.upper(), most=2**40))
        for letter, field in FACTORS.items()
    }
    # sprio adds the factors itself, so its sum may exceed the highest priority of a job.
    priority = words.number(cells["Y"], "PRIORITY")
    part = words.decimal(cells["y"], "PRIORITY")
    has_factors = any(normal.values()) or bool(cells["T"])
    # sprio does not normalise a fixed priority.
    is_fixed = part == priority and (part > 1 or not has_factors)
    account = cells.get("o", "")
    return SprioLine(
        PriorityRow(
            job=words.job_id(cells["i"], "JOBID"),
            partition_name=words.name(cells["r"], "PARTITION"),
            user=words.user(cells["u"], "USER"),
            account=account and words.name(account, "ACCOUNT"),
            qos_name=words.name_or_blank(cells.get("n", ""), "QOSNAME"),
            cluster=None if cells["c"] in ("", NULL) else words.name(cells["c"], "CLUSTER"),
            **weighted,
            tres=_pairs(cells["T"]),
            site=_signed(cells["S"], "SITE"),
            nice=_signed(cells["N"], "NICE"),
            direct=priority if is_fixed else None,
            total=float(priority) if is_fixed else _uncut(priority, part),
            # An sprio that prints accounts shortens zeros, too: 24.11 does both, 22.05 neither.
            short_zeros=bool(account),
        ),
        normal,
        _pairs(cells["t"]),
        padded.line,
    )


def _uncut(priority: int, part: float) -> float:
    """Return the priority before it was rounded down, from the 14 digits of the normalised one."""
    return min(max(float(priority), part * PRIORITY_MAX), nextafter(priority + 1, 0))


def _signed(text: str, field: str, most: int = NICE_OFFSET) -> int:
    if _SIGNED.fullmatch(text) and abs(int(text)) <= most:
        return int(text)
    raise InvalidInput(f"{words.quote_unknown(text)} is not a whole number", field=field)


def _pairs(text: str) -> Mapping[str, float]:
    numbers: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        match = words.match_cell(_PAIR, part, "TRES", "is not NAME=NUMBER")
        numbers[tres_name(match[1], field="TRES")] = float(match[2])
    return numbers
