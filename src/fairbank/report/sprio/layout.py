"""Output format of sprio's -o, and lines in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.report.cells import csv_line
from fairbank.report.sprio.fields import FIELDS, PriorityField
from fairbank.report.sprio.row import PriorityRow, WeightRow


class Cell(NamedTuple):
    """Column in a line: its width (0: as wide as its text), alignment, and the text after it."""

    field: PriorityField
    width: int
    right: bool
    behind: str


class Format(NamedTuple):
    """Format of a line: the text before its first column, and its columns."""

    before: str
    cells: tuple[Cell, ...]

    @property
    def tells_names(self) -> bool:
        """True if it has the account or the QOS of a job."""
        return any(cell.field in (FIELDS["o"], FIELDS["n"]) for cell in self.cells)


_WANTED = re.compile(r"(\.?)(\d{0,4})(.)(.*)", re.DOTALL)


def parse_format(text: str) -> Format:
    """Parse `%.15i %9r`: the dot aligns right, the number is the width, the character the column.
    Raises InvalidInput.
    """
    before, *wanted = text.split("%")
    cells = []
    for each in filter(None, wanted):
        match = _WANTED.fullmatch(each)
        if match is None or match[3] not in FIELDS:
            raise InvalidInput(
                f"%{each[:40]} is no column",
                field="--format",
                remedy=f"the letters are {', '.join(FIELDS)}, as in %.15i %9r",
            )
        cells.append(Cell(FIELDS[match[3]], int(match[2] or 0), bool(match[1]), match[4]))
    if not cells:
        raise InvalidInput(
            f"{text[:40]!r} names no column",
            field="--format",
            remedy="write for example %.15i %9r %.10Y",
        )
    return Format(before, tuple(cells))


def default_format(
    weights: WeightRow,
    *,
    long: bool = False,
    norm: bool = False,
    named: bool = False,
    users: bool = False,
) -> Format:
    """Return the default format: with `long` as with -l, with `norm` as with -n, else the used
    factors.

    `named` adds account and QOS to -l, as Slurm 23.02 and newer do; `users` adds the user as with
    -u.
    """
    head = "%.15i %9r"
    if long:
        head += " %.8u %.8o" if named else " %.8u"
        name = "" if not named else " %10n" if norm else " %.10n"
        if norm:
            return parse_format(f"{head} %10y %10a %10b %10f %10j %10p{name} %10q %20t")
        return parse_format(
            f"{head} %.10Y %.10S %.10A %.10B %.10F %.10J %.10P{name} %.10Q %.11N %.20T"
        )
    head += " %.8u" if users else ""
    counted = (
        weights.age,
        weights.association,
        weights.fair_share,
        weights.job_size,
        weights.partition,
        weights.qos,
    )
    letters = [letter for letter, weight in zip("ABFJPQ", counted, strict=True) if weight]
    if norm:
        factors = [f"%10{letter.lower()}" for letter in letters] + (
            ["%20t"] if weights.tres_text else []
        )
        return parse_format(" ".join([head, "%10y", *factors]))
    factors = [f"%.10{letter}" for letter in letters] + (["%.20T"] if weights.tres_text else [])
    return parse_format(" ".join([head, "%.10Y", "%.10S", *factors]))


def lines(
    rows: Sequence[PriorityRow], weights: WeightRow, format_: Format, *, header: bool = True
) -> list[str]:
    """Return the lines without line ends."""
    made = [
        _line([cell.field.show(row, weights) for cell in format_.cells], format_) for row in rows
    ]
    return [_heads(format_), *made] if header else made


def csv_lines(
    rows: Sequence[PriorityRow], weights: WeightRow, format_: Format, *, header: bool = True
) -> list[str]:
    """Return the same columns as CSV."""
    heads = [[cell.field.head for cell in format_.cells]] if header else []
    made = [[cell.field.show(row, weights).strip() for cell in format_.cells] for row in rows]
    return [csv_line(cells) for cells in heads + made]


def weight_lines(weights: WeightRow, format_: Format, *, header: bool = True) -> list[str]:
    """Return the line of weights, as with -w."""
    made = [_line([cell.field.weight(weights) for cell in format_.cells], format_)]
    return [_heads(format_), *made] if header else made


def _heads(format_: Format) -> str:
    return _line([cell.field.head for cell in format_.cells], format_)


def _line(texts: Sequence[str], format_: Format) -> str:
    found = format_.before
    for text, cell in zip(texts, format_.cells, strict=True):
        if cell.width:
            text = (text.rjust if cell.right else text.ljust)(cell.width)[: cell.width]
        found += text + cell.behind
    return found
