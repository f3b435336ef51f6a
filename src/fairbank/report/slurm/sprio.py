"""Priorities in the output format of Slurm's sprio, byte for byte.

Source: docs/reference/slurm-rules.md, "sprio output". A row is a job in one of its partitions.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import PRIORITY_MAX
from fairbank.report.slurm.notation import NULL


class WeightRow(NamedTuple):
    """Slurm's PriorityWeight*. `tres_text` is PriorityWeightTRES as configured, `tres` by name."""

    age: int = 0
    association: int = 0
    fair_share: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}
    tres_text: str = ""


class PriorityRow(NamedTuple):
    """Job in one of its partitions, with its weighted factors in full precision.

    `tres` has the TRES that add anything. `site` and `nice` are offsets from 0. `direct` is the
    priority that an administrator set; then there are no factors. `total` is the sum if it is known
    better than from the factors. `submitted` is None if unknown. `runs` marks a running job, which
    sprio lists with CALCULATE_RUNNING. `short_zeros` prints a normalised factor as 0 for a job
    without factors, as Slurm 24.11 does.
    """

    job: int
    partition_name: str
    user: str = ""
    account: str = ""
    qos_name: str = ""
    cluster: str | None = None
    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    site: int = 0
    nice: int = 0
    direct: int | None = None
    total: float | None = None
    submitted: int | None = None
    runs: bool = False
    short_zeros: bool = False

    @property
    def priority(self) -> float:
        """Priority as sprio adds it up: TRES last, at least 1."""
        if self.direct is not None:
            return float(self.direct)
        if self.total is not None:
            return max(self.total, 1.0)
        # One addition after the other, as in C: sum() would compensate rounding errors.
        total = self.age + self.association + self.fair_share + self.job_size
        total = total + self.partition + self.qos + self.site - self.nice
        for value in self.tres.values():
            total += value
        return max(total, 1.0)


class PriorityFactor(NamedTuple):
    """Factor with one weight: sprio's character and header, field of both rows, name for people."""

    letter: str
    head: str
    field: str
    words: str

    def value(self, row: PriorityRow) -> float:
        """Return the weighted factor of a job."""
        return float(getattr(row, self.field))

    def weight(self, weights: WeightRow) -> int:
        """Return the weight of the factor."""
        return int(getattr(weights, self.field))

    def normal(self, row: PriorityRow, weights: WeightRow) -> float:
        """Return the factor without its weight, from 0 to 1."""
        weight = self.weight(weights)
        return self.value(row) / weight if weight else 0.0


NO_JOBS = "Unable to find jobs matching"
"""Begin of the sentence in place of an empty list."""
FACTOR_DIGITS, TRES_DIGITS = 7, 2
"""Decimals of normalised values."""

# In the order in which sprio lists and adds them.
FACTORS = (
    PriorityFactor("A", "AGE", "age", "age"),
    PriorityFactor("B", "ASSOC", "association", "association"),
    PriorityFactor("F", "FAIRSHARE", "fair_share", "fair share"),
    PriorityFactor("J", "JOBSIZE", "job_size", "job size"),
    PriorityFactor("P", "PARTITION", "partition", "partition"),
    PriorityFactor("Q", "QOS", "qos", "QOS"),
)


class PriorityField(NamedTuple):
    """Column of sprio: header, cell of a job, cell of the line of weights, sort key."""

    head: str
    show: Callable[[PriorityRow, WeightRow], str]
    weight: Callable[[WeightRow], str]
    key: Callable[[PriorityRow, WeightRow], str | float]


def _plain(head: str, value: Callable[[PriorityRow], str | int], weight: str = "") -> PriorityField:
    return PriorityField(
        head,
        lambda row, weights: str(value(row)),
        lambda weights: weight,
        lambda row, weights: value(row),
    )


def _factor_fields(factor: PriorityFactor) -> Iterator[tuple[str, PriorityField]]:
    """Yield the columns of a factor: weighted, and with the lower case normalised."""

    def weight(weights: WeightRow) -> str:
        return str(factor.weight(weights))

    def normal(row: PriorityRow, weights: WeightRow) -> str:
        is_short = row.short_zeros and row.direct is not None
        return "0" if is_short else f"{factor.normal(row, weights):.{FACTOR_DIGITS}f}"

    yield (
        factor.letter,
        PriorityField(
            factor.head,
            lambda row, weights: f"{factor.value(row):.0f}",
            weight,
            lambda row, weights: factor.value(row),
        ),
    )
    yield factor.letter.lower(), PriorityField(factor.head, normal, weight, factor.normal)


def _normal_tres(row: PriorityRow, weights: WeightRow) -> dict[str, float]:
    return {
        name: value / weights.tres[name] if weights.tres.get(name) else 0.0
        for name, value in row.tres.items()
    }


def _pairs(values: Mapping[str, float], decimals: int) -> str:
    return ",".join(f"{name}={value:.{decimals}f}" for name, value in values.items())


FIELDS: Mapping[str, PriorityField] = {
    "i": _plain("JOBID", lambda row: row.job, "Weights"),
    "r": _plain("PARTITION", lambda row: row.partition_name),
    "c": _plain("CLUSTER", lambda row: NULL if row.cluster is None else row.cluster),
    "u": _plain("USER", lambda row: row.user),
    "o": _plain("ACCOUNT", lambda row: row.account),
    "n": _plain("QOSNAME", lambda row: row.qos_name),
    "Y": PriorityField(
        "PRIORITY",
        lambda row, weights: str(int(row.priority)),
        lambda weights: "",
        lambda row, weights: row.priority,
    ),
    "y": PriorityField(
        "PRIORITY",
        # sprio leaves a given priority as it is.
        lambda row, weights: (
            f"{row.priority / (1 if row.direct is not None else PRIORITY_MAX):16.14f}"
        ),
        lambda weights: "",
        lambda row, weights: row.priority,
    ),
    "S": _plain("SITE", lambda row: row.site, "1"),
    **{letter: field for factor in FACTORS for letter, field in _factor_fields(factor)},
    "N": _plain("NICE", lambda row: row.nice),
    "T": PriorityField(
        "TRES",
        lambda row, weights: _pairs(row.tres, 0),
        lambda weights: weights.tres_text or NULL,
        lambda row, weights: sum(row.tres.values()),
    ),
    "t": PriorityField(
        "TRES",
        lambda row, weights: _pairs(_normal_tres(row, weights), TRES_DIGITS),
        lambda weights: "",
        lambda row, weights: sum(_normal_tres(row, weights).values()),
    ),
}
"""By the letters of -o."""


def select_rows(
    rows: Sequence[PriorityRow],
    *,
    jobs: Collection[int] | None = None,
    users: Collection[str] | None = None,
    partitions: Collection[str] | None = None,
) -> list[PriorityRow]:
    """Return the rows that fit all of the selections; None selects all."""
    return [
        row
        for row in rows
        if (jobs is None or row.job in jobs)
        and (users is None or row.user in users)
        and (partitions is None or row.partition_name in partitions)
    ]


def sort_rows(
    rows: Sequence[PriorityRow], weights: WeightRow, keys: str = "i"
) -> list[PriorityRow]:
    """Return the rows in the order of keys such as `u,-y`, the first counting most; - reverses.

    Raises InvalidInput if there is no such column.
    """
    ordered = list(rows)
    for key in reversed(keys.split(",")):
        letter = key.lstrip("+-")
        if letter not in FIELDS or len(key) - len(letter) > 1:
            raise InvalidInput(
                f"{key[:40]!r} is nothing to sort by",
                field="--sort",
                remedy=f"the letters are {', '.join(FIELDS)}, as in u,-y",
            )
        ordered.sort(key=partial(_sort_key, FIELDS[letter], weights), reverse=key.startswith("-"))
    return ordered


def _sort_key(field: PriorityField, weights: WeightRow, row: PriorityRow) -> Any:
    """Return the sort key of a row, a text or a number, the same type for all rows of a field."""
    return field.key(row, weights)


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
    def has_names(self) -> bool:
        """True if it has the account or the QOS of a job."""
        return any(cell.field in (FIELDS["o"], FIELDS["n"]) for cell in self.cells)


_WANTED = re.compile(r"(\.?)(\d{0,4})(.)(.*)", re.DOTALL)


def parse_format(text: str) -> Format:
    """Parse `%.15i %9r`: dot: right, number: width, then the column. Raises InvalidInput."""
    before, *wanted = text.split("%")
    cells = []
    for specification in filter(None, wanted):
        match = _WANTED.fullmatch(specification)
        if match is None or match[3] not in FIELDS:
            raise InvalidInput(
                f"%{specification[:40]} is not a column",
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
    """Return the default format of sprio.

    Args:
        weights: the weights; unless `long`, only factors with a weight have a column.
        long: as with -l: all factors.
        norm: as with -n: factors from 0 to 1, not weighted.
        named: add account and QOS to -l, as Slurm 23.02 and newer do.
        users: add the user, as with -u; -l has it always.
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
    letters = [factor.letter for factor in FACTORS if factor.weight(weights)]
    if norm:
        factors = ["%10y", *(f"%10{letter.lower()}" for letter in letters)]
        tres = "%20t"
    else:
        factors = ["%.10Y", "%.10S", *(f"%.10{letter}" for letter in letters)]
        tres = "%.20T"
    return parse_format(" ".join([head, *factors, *([tres] if weights.tres_text else [])]))


def lines(
    rows: Sequence[PriorityRow], weights: WeightRow, format_: Format, *, header: bool = True
) -> list[str]:
    """Return the lines of rows without line ends."""
    made = [
        _line([cell.field.show(row, weights) for cell in format_.cells], format_) for row in rows
    ]
    return [*_header(format_, header=header), *made]


def weight_lines(weights: WeightRow, format_: Format, *, header: bool = True) -> list[str]:
    """Return the line of weights, as with -w."""
    line = _line([cell.field.weight(weights) for cell in format_.cells], format_)
    return [*_header(format_, header=header), line]


def _header(format_: Format, *, header: bool) -> list[str]:
    return [_line([cell.field.head for cell in format_.cells], format_)] if header else []


def _line(texts: Sequence[str], format_: Format) -> str:
    line = format_.before
    for text, cell in zip(texts, format_.cells, strict=True):
        if cell.width:
            text = (text.rjust if cell.right else text.ljust)(cell.width)[: cell.width]
        line += text + cell.behind
    return line
