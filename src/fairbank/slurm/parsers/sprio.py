"""The factors of the jobs that wait: `sprio --noheader --format=` what `format_of` its version says."""

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
from fairbank.slurm.parsers.delimited import PIPE, Record, read, records
from fairbank.slurm.parsers.values import ParsedRows, Unreadable
from fairbank.slurm.parsers.version import Version

COMMAND = "sprio"
LETTERS = "ircuYySAaBbFfJjPpQqNTt"
"""Job, partition, cluster, user; priority whole and normalised; site; each factor weighted and normalised; nice; TRES in both forms."""
NAMES = "on"
"""Account and QOS, which sprio tells from NAMED_SINCE on."""
FACTORS = "abfjpq"
"""Age, association, fair share, job size, partition, QOS."""
FACTOR_DIGITS, TRES_DIGITS = 7, 2
"""So many follow the point of what is normalised."""
NAMED_SINCE = Version(23, 2, 0)
_NONE = "Unable to find jobs matching"
_SIGNED = re.compile(r"-?\d{1,10}", re.ASCII)
_PAIR = re.compile(r"([a-z][\w/:.-]*)=(\d{1,20}(?:\.\d+)?)", re.ASCII)


class Factors(msgspec.Struct, frozen=True):
    """A job in one of its partitions. `weighted` and `normal` are the factors by the letters of FACTORS, rounded as sprio rounds them;
    so are `tres` (weighted) and `tres_normal`. `total` is what PRIORITY was cut off from. Where `given`, an administrator gave the
    priority, and there are no factors. `account` and `qos_name` are empty where sprio does not tell them. `line` is where it stands."""

    job: int
    partition: str
    user: str
    cluster: str | None
    priority: int
    total: float
    given: bool
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
    """What sprio of this version tells, by the letters of its columns."""
    return LETTERS + NAMES if version >= NAMED_SINCE else LETTERS


def format_of(version: Version) -> str:
    return PIPE.join(f"%{letter}" for letter in letters_of(version))


def letters_in(text: str) -> str:
    """By which letters a file was asked for: with the names where any line has as many cells."""
    named = LETTERS + NAMES
    return (
        named if any(line.count(PIPE) == len(named) - 1 for line in text.splitlines()) else LETTERS
    )


def read_factors(text: str, letters: str = LETTERS) -> ParsedRows[Factors]:
    """The lines, in the order of sprio; none where it says that no job waits."""
    if text.startswith(_NONE):
        return ParsedRows(())
    seen = _Position()
    return read(COMMAND, seen.watched(records(COMMAND, text, letters, PIPE)), seen.factors)


class _Position:
    """Where in the answer we are, and who was there. A job stands once for each of its partitions; where Slurm is so new that it tells
    names, also once for each QOS that the job asked for, and only a line that says nothing else is there twice."""

    def __init__(self) -> None:
        self._line = 0
        self._there: set[tuple[object, ...]] = set()

    def watched(self, found: Iterator[Record | Unreadable]) -> Iterator[Record | Unreadable]:
        for each in found:
            self._line = each.line
            yield each

    def factors(self, cells: dict[str, str]) -> Factors:
        row = _factors(cells, self._line)
        name = tuple(cells.values()) if NAMES[0] in cells else (row.job, row.partition)
        if name in self._there:
            raise InvalidInput(
                f"job {row.job} is there twice in partition {row.partition}", field="JOBID"
            )
        self._there.add(name)
        return row


def unrounded(weighted: float, normal: float, weight: float, digits: int) -> float:
    """A weighted factor of which both columns come again: whole, as `weighted`, and by its weight with so many `digits`, as `normal`.

    Where no factor has both (the weights are others by now), it is nearest to the normalised one among those that are `weighted`.
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


def _factors(padded: dict[str, str], line: int) -> Factors:
    cells = {letter: cell.strip(" ") for letter, cell in padded.items()}
    normal = {letter: words.decimal(cells[letter], letter.upper()) for letter in FACTORS}
    weighted = {
        letter: _signed(cells[letter.upper()], letter.upper(), most=2**40) for letter in FACTORS
    }
    priority = words.number(cells["Y"], "PRIORITY", most=PRIORITY_MAX)
    part = words.decimal(cells["y"], "PRIORITY")
    given = part > 1 or (not any(normal.values()) and not cells["T"] and part == priority)
    return Factors(
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
    """What the priority was cut off from; the 14 digits of the normalised one may miss it by a little."""
    return min(max(float(priority), part * PRIORITY_MAX), nextafter(priority + 1, 0))


def _signed(text: str, field: str, most: int = NICE_OFFSET) -> int:
    if _SIGNED.fullmatch(text) and abs(int(text)) <= most:
        return int(text)
    raise InvalidInput(f"{words.shown(text)} is not a whole number", field=field)


def _pairs(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise InvalidInput(f"{words.shown(part)} is not NAME=NUMBER", field="TRES")
        found[tres_name(match[1], field="TRES")] = float(match[2])
    return found
