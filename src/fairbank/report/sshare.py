"""Fair share in the output format of Slurm's sshare, byte for byte.

Source: docs/reference/slurm-rules.md, "sshare output". The origin of the figures does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from fairbank.core.errors import InvalidInput
from fairbank.report.cells import csv_line

if TYPE_CHECKING:
    from fairbank.cluster.share import ShareRow


class LineFormat(Enum):
    """Format of a line: padded columns; whole cells with | after each, or between them; CSV."""

    PADDED = "padded"
    BAR = "bar"
    BETWEEN = "between"
    COMMAS = "commas"


class ShareField(NamedTuple):
    """Column of sshare. A negative `width` aligns left; `show` returns None for blank."""

    name: str
    width: int
    show: Callable[[ShareRow], str | float | None]


# In the order in which a name that was cut short is looked for.
FIELDS = (
    ShareField("Account", -20, lambda row: row.account),
    ShareField("Cluster", 10, lambda row: row.cluster),
    ShareField("EffectvUsage", 13, lambda row: row.effective),
    ShareField("FairShare", 10, lambda row: row.factor),
    ShareField("GrpTRESMins", 30, lambda row: row.limits),
    ShareField("GrpTRESRaw", 30, lambda row: row.used),
    ShareField("ID", 6, lambda row: row.number),
    ShareField("LevelFS", 10, lambda row: row.level),
    ShareField("NormShares", 11, lambda row: row.norm_shares),
    ShareField("NormUsage", 11, lambda row: row.norm_usage),
    ShareField("Partition", 12, lambda row: row.partition),
    ShareField("RawShares", 10, lambda row: row.shown_shares),
    ShareField("RawUsage", 11, lambda row: int(row.usage)),
    ShareField("TRESRunMins", 30, lambda row: row.running),
    ShareField("User", 10, lambda row: row.user),
)
_WANTED = re.compile(r"([A-Za-z]+)(?:%(-?\d{1,4}))?", re.ASCII)


def default_fields(
    *, long: bool = False, partitions: bool = False, fair_tree: bool = True
) -> list[ShareField]:
    """Return the default columns of sshare.

    Args:
        long: as with -l: normalised usage, level and minutes of TRES too.
        partitions: as with -m: the partition too.
        fair_tree: False leaves out LevelFS of -l, which only Fair Tree has.
    """
    names = ["Account", "User", *(["Partition"] if partitions else [])]
    names += ["RawShares", "NormShares", "RawUsage", *(["NormUsage"] if long else [])]
    names += ["EffectvUsage", "FairShare"]
    if long:
        names += [*(["LevelFS"] if fair_tree else []), "GrpTRESMins", "TRESRunMins"]
    return [_field_named(name) for name in names]


def parse_fields(text: str) -> list[ShareField]:
    """Parse `account%30,user,lev%-12`: possibly abbreviated names, widths. Raises InvalidInput."""
    fields = []
    for wanted in filter(None, text.split(",")):
        match = _WANTED.fullmatch(wanted)
        if match is None:
            raise InvalidInput(
                f"{wanted[:40]!r} is not a column",
                field="--format",
                remedy="write NAME or NAME%WIDTH, as in account%30,user",
            )
        field = _field_named(match[1])
        fields.append(field if match[2] is None else field._replace(width=int(match[2])))
    return fields


def _field_named(name: str) -> ShareField:
    for field in FIELDS:
        if field.name.lower().startswith(name.lower()):
            return field
    there = ",".join(field.name for field in FIELDS)
    raise InvalidInput(
        f"there is no column {name[:40]!r}", field="--format", remedy=f"there are {there}"
    )


def lines(
    rows: Sequence[ShareRow],
    fields: Sequence[ShareField],
    ending: LineFormat = LineFormat.PADDED,
    *,
    header: bool = True,
) -> Iterator[str]:
    """Yield the lines without line ends.

    Args:
        rows: rows of associations, an account before what is below it.
        fields: columns.
        ending: format of each line; only CSV does not indent the accounts.
        header: begin with the header.
    """
    padded = ending is LineFormat.PADDED
    if header and padded:
        header_cells = [_padded(field.name[: abs(field.width)], field.width) for field in fields]
        yield _line(header_cells, ending)
        yield _line(["-" * abs(field.width) for field in fields], ending)
    elif header:
        yield _line([field.name for field in fields], ending)
    for row in rows if ending is LineFormat.COMMAS else _indented(rows):
        values = [field.show(row) for field in fields]
        if padded:
            cells = [
                _narrow(value, field.width) for value, field in zip(values, fields, strict=True)
            ]
        else:
            cells = [_whole(value) for value in values]
        yield _line(cells, ending)


def _line(cells: Sequence[str], ending: LineFormat) -> str:
    if ending is LineFormat.PADDED:
        return "".join(f"{cell} " for cell in cells)
    if ending is LineFormat.COMMAS:
        return csv_line(cells)
    return "|".join(cells) + ("|" if ending is LineFormat.BAR else "")


def _whole(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:f}" if isinstance(value, float) else str(value)


def _narrow(value: str | float | None, width: int) -> str:
    """Fit a value to its column: a + marks a truncated text, a figure gets an exponent, and a whole
    number widens the column.
    """
    text, columns = _whole(value), abs(width)
    if len(text) > columns and isinstance(value, float):
        # Never padded; C takes a precision below 0 for none.
        return f"{value:.{columns - 6}e}" if columns >= 6 else f"{value:e}"
    if len(text) > columns and isinstance(value, str):
        text = text[: columns - 1] + "+"
    return _padded(text, width)


def _padded(text: str, width: int) -> str:
    return text.ljust(-width) if width < 0 else text.rjust(width)


def _indented(rows: Sequence[ShareRow]) -> Iterator[ShareRow]:
    """Yield the rows with account names indented by their depth, users one level deeper."""
    depths: dict[str, int] = {}
    for row in rows:
        if row.user:
            depth = depths.get(row.account, -1) + 1
        else:
            depth = depths.setdefault(row.account, depths.get(row.parent, -1) + 1)
        yield structs.replace(row, account=" " * depth + row.account)


def select_rows(
    rows: Sequence[ShareRow],
    *,
    users: Collection[str] | None = None,
    accounts: Collection[str] | None = None,
    users_only: bool = False,
) -> list[ShareRow]:
    """Return the rows that fit all of the selections.

    Args:
        rows: rows of associations.
        users: names of users; None selects all. Rows of accounts stay.
        accounts: names of accounts; None selects all.
        users_only: leave out the rows of accounts.
    """
    return [
        row
        for row in rows
        if (not row.user or users is None or row.user in users)
        and (accounts is None or row.account in accounts)
        and (row.user or not users_only)
    ]
