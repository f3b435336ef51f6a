"""Priorities as Slurm's sprio prints them: its letters, widths, and ways to write a figure, byte for byte.

Pure formatting: who computed the factors makes no difference. A row is a job in one of its partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from fairbank.values.trouble import Malformed

HIGHEST = 2**32 - 1
"""What a normalised priority is a part of."""


class Weights(NamedTuple):
    """Slurm's PriorityWeight*: `place` is the partition's, `tres_text` PriorityWeightTRES as the settings have it, `tres` that by name."""

    age: int = 0
    association: int = 0
    fair_share: int = 0
    size: int = 0
    place: int = 0
    qos: int = 0
    tres: Mapping[str, float] = {}
    tres_text: str = ""


class Rank(NamedTuple):
    """A job in one of its partitions. The factors are weighted: each times its weight, with all decimals; `place` is the partition's.

    `site` and `nice` are counted from 0. `direct` is the priority that an administrator gave, and then there are no factors. `total` is the
    sum where it is known better than from the factors.
    """

    job: int
    partition: str
    user: str = ""
    account: str = ""
    qos_name: str = ""
    cluster: str | None = None
    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    size: float = 0.0
    place: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    site: int = 0
    nice: int = 0
    direct: int | None = None
    total: float | None = None

    @property
    def priority(self) -> float:
        """As sprio adds it up: TRES last, at least 1."""
        if self.direct is not None:
            return float(self.direct)
        if self.total is not None:
            return max(self.total, 1.0)
        found = self.age + self.association + self.fair_share + self.size + self.place + self.qos
        found += self.site
        found -= self.nice
        for value in self.tres.values():
            found += value
        return max(found, 1.0)


class Field(NamedTuple):
    """A column: its head, what it shows of a row, what in the line of weights, and by what rows are sorted."""

    head: str
    show: Callable[[Rank, Weights], str]
    weight: Callable[[Weights], str]
    key: Callable[[Rank, Weights], str | float]


def _blank(weights: Weights) -> str:
    return ""


def _factor(head: str, value: Callable[[Rank], float], weight: Callable[[Weights], int]) -> tuple[Field, Field]:
    """The column with the factor weighted, and that with it normalised."""

    def normal(row: Rank, weights: Weights) -> float:
        return value(row) / weight(weights) if weight(weights) else 0.0

    def told(weights: Weights) -> str:
        return str(weight(weights))

    return (
        Field(head, lambda row, weights: f"{value(row):.0f}", told, lambda row, weights: value(row)),
        Field(head, lambda row, weights: f"{normal(row, weights):.7f}", told, normal),
    )


def _plain(head: str, value: Callable[[Rank], str | int], weight: str = "") -> Field:
    return Field(head, lambda row, weights: str(value(row)), lambda weights: weight, lambda row, weights: value(row))


def _share_of_tres(row: Rank, weights: Weights) -> dict[str, float]:
    return {name: value / weights.tres[name] if weights.tres.get(name) else 0.0 for name, value in row.tres.items()}


def _pairs(values: Mapping[str, float], decimals: int) -> str:
    return ",".join(f"{name}={value:.{decimals}f}" for name, value in values.items() if value)


def _normal_priority(row: Rank) -> float:
    return row.priority if row.direct is not None else row.priority / HIGHEST  # sprio leaves a given one as it is


_A, _a = _factor("AGE", lambda row: row.age, lambda weights: weights.age)
_B, _b = _factor("ASSOC", lambda row: row.association, lambda weights: weights.association)
_F, _f = _factor("FAIRSHARE", lambda row: row.fair_share, lambda weights: weights.fair_share)
_J, _j = _factor("JOBSIZE", lambda row: row.size, lambda weights: weights.size)
_P, _p = _factor("PARTITION", lambda row: row.place, lambda weights: weights.place)
_Q, _q = _factor("QOS", lambda row: row.qos, lambda weights: weights.qos)

FIELDS: Mapping[str, Field] = {
    "i": _plain("JOBID", lambda row: row.job, "Weights"),
    "r": _plain("PARTITION", lambda row: row.partition),
    "c": _plain("CLUSTER", lambda row: "(null)" if row.cluster is None else row.cluster),
    "u": _plain("USER", lambda row: row.user),
    "o": _plain("ACCOUNT", lambda row: row.account),
    "n": _plain("QOSNAME", lambda row: row.qos_name),
    "Y": Field("PRIORITY", lambda row, weights: str(int(row.priority)), _blank, lambda row, weights: row.priority),
    "y": Field("PRIORITY", lambda row, weights: f"{_normal_priority(row):16.14f}", _blank, lambda row, weights: row.priority),
    "S": _plain("SITE", lambda row: row.site, "1"),
    "A": _A,
    "a": _a,
    "B": _B,
    "b": _b,
    "F": _F,
    "f": _f,
    "J": _J,
    "j": _j,
    "P": _P,
    "p": _p,
    "Q": _Q,
    "q": _q,
    "N": _plain("NICE", lambda row: row.nice),
    "T": Field(
        "TRES", lambda row, _: _pairs(row.tres, 0), lambda weights: weights.tres_text or "(null)", lambda row, _: sum(row.tres.values())
    ),
    "t": Field(
        "TRES",
        lambda row, weights: _pairs(_share_of_tres(row, weights), 2),
        _blank,
        lambda row, weights: sum(_share_of_tres(row, weights).values()),
    ),
}
"""By the letters of -o."""


class Cell(NamedTuple):
    """A column in a line, how wide it is (0: as wide as what it holds), and the text behind it."""

    field: Field
    width: int
    right: bool
    behind: str


class Format(NamedTuple):
    """A line: the text before its first column, and its columns."""

    before: str
    cells: tuple[Cell, ...]


_WANTED = re.compile(r"(\.?)(\d{0,4})(.)(.*)", re.DOTALL)


def parse_format(text: str) -> Format:
    """`%.15i %9r`: the dot puts a column on the right, the number is its width, the letter names it. Raises Malformed."""
    before, *wanted = text.split("%")
    cells = []
    for each in filter(None, wanted):
        match = _WANTED.fullmatch(each)
        if match is None or match[3] not in FIELDS:
            raise Malformed(f"%{each[:40]} is no column", field="--format", remedy=f"the letters are {', '.join(FIELDS)}, as in %.15i %9r")
        cells.append(Cell(FIELDS[match[3]], int(match[2] or 0), bool(match[1]), match[4]))
    if not cells:
        raise Malformed(f"{text[:40]!r} names no column", field="--format", remedy="write for example %.15i %9r %.10Y")
    return Format(before, tuple(cells))


def usual_format(weights: Weights, *, long: bool = False, norm: bool = False, named: bool = False, users: bool = False) -> Format:
    """What is shown when nobody names columns: with `long` as with -l, with `norm` as with -n, else the factors that count.

    `named`: -l with the account and the QOS of each job, as Slurm 23.02 and newer have it; `users`: with the user's name, as with -u.
    """
    head = "%.15i %9r"
    if long:
        head += " %.8u %.8o" if named else " %.8u"
        name = "" if not named else " %10n" if norm else " %.10n"
        if norm:
            return parse_format(f"{head} %10y %10a %10b %10f %10j %10p{name} %10q %20t")
        return parse_format(f"{head} %.10Y %.10S %.10A %.10B %.10F %.10J %.10P{name} %.10Q %.11N %.20T")
    head += " %.8u" if users else ""
    counted = (weights.age, weights.association, weights.fair_share, weights.size, weights.place, weights.qos)
    letters = [letter for letter, weight in zip("ABFJPQ", counted, strict=True) if weight]
    if norm:
        factors = [f"%10{letter.lower()}" for letter in letters] + (["%20t"] if weights.tres_text else [])
        return parse_format(" ".join([head, "%10y", *factors]))
    factors = [f"%.10{letter}" for letter in letters] + (["%.20T"] if weights.tres_text else [])
    return parse_format(" ".join([head, "%.10Y", "%.10S", *factors]))


def lines(rows: Sequence[Rank], weights: Weights, format_: Format, *, header: bool = True) -> list[str]:
    """The lines, without their ends."""
    made = [_line([cell.field.show(row, weights) for cell in format_.cells], format_) for row in rows]
    return [_heads(format_), *made] if header else made


def lines_of_weights(weights: Weights, format_: Format, *, header: bool = True) -> list[str]:
    """The line that tells the weights, as with -w."""
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


def in_order(rows: Sequence[Rank], weights: Weights, keys: str = "i") -> list[Rank]:
    """Sorted by letters apart by commas, the first counting most; `-` before one turns it around. Raises Malformed."""
    found = list(rows)
    for key in reversed(keys.split(",")):
        letter = key.lstrip("+-")
        if letter not in FIELDS or len(key) - len(letter) > 1:
            raise Malformed(
                f"{key[:40]!r} is nothing to sort by", field="--sort", remedy=f"the letters are {', '.join(FIELDS)}, as in u,-y"
            )
        found.sort(key=lambda row, by=FIELDS[letter].key: by(row, weights), reverse=key.startswith("-"))  # type: ignore[misc]
    return found


def chosen(
    rows: Sequence[Rank],
    *,
    jobs: Collection[int] | None = None,
    users: Collection[str] | None = None,
    partitions: Collection[str] | None = None,
) -> list[Rank]:
    """The rows of these jobs, users and partitions; None stands for all of them."""
    return [
        row
        for row in rows
        if (jobs is None or row.job in jobs)
        and (users is None or row.user in users)
        and (partitions is None or row.partition in partitions)
    ]
