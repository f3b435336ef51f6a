"""Fair share in the output format of Slurm's sshare, byte for byte.

Source: docs/reference/slurm-rules.md, "sshare output". The origin of the figures does not matter.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.slurm.layout import SlurmColumn, cells_of, field_lines, table, whole
from fairbank.report.slurm.notation import PARENT, Notation, Written, plain

# In the order in which a name that was cut short is looked for.
COLUMNS = table(
    SlurmColumn("Account", "account", plain, width=-20),
    SlurmColumn("Cluster", "cluster", plain, width=10),
    SlurmColumn("EffectvUsage", "effective", plain, width=13),
    SlurmColumn("FairShare", "factor", plain, width=10),
    SlurmColumn("GrpTRESMins", "limits", plain, width=30),
    SlurmColumn("GrpTRESRaw", "used", plain, width=30),
    SlurmColumn("ID", "number", plain, width=6),
    SlurmColumn("LevelFS", "level", plain, width=10),
    SlurmColumn("NormShares", "norm_shares", plain, width=11),
    SlurmColumn("NormUsage", "norm_usage", plain, width=11),
    SlurmColumn("Partition", "partition", plain, width=12),
    SlurmColumn("RawShares", "shown_shares", plain, width=10),
    SlurmColumn("RawUsage", "usage", lambda usage, notation: int(usage), width=11),
    SlurmColumn("TRESRunMins", "running", plain, width=30),
    SlurmColumn("User", "user", plain, width=10),
)
_WANTED = re.compile(r"([A-Za-z]+)(?:%(-?\d{1,4}))?", re.ASCII)


class ShareRow(NamedTuple):
    """Association with its fair share.

    `user` is empty for an account, `partition` if it is for all partitions. `shares` is None for
    the root and ON_PARENT for an association that uses its parent's shares. `usage` is decayed, in
    billing-seconds; `effective` is the fraction that counts as its own. `level` is None for the
    root and on the parent's shares, `factor` for accounts. `parent` is empty for the root and for
    users. `limits` is GrpTRESMins in minutes, such as `cpu=1000,gres/gpu=60`; `used` what counts
    against it, and `running` the remaining time of its running jobs, both of every TRES. `number`
    is the id of the association. `wall` is minutes that count against GrpWall, which sshare does
    not print. None is a blank cell.
    """

    account: str
    user: str = ""
    partition: str = ""
    shares: int | None = None
    norm_shares: float = 0.0
    usage: float = 0.0
    effective: float | None = None
    level: float | None = None
    factor: float | None = None
    cluster: str = ""
    parent: str = ""
    norm_usage: float | None = None
    limits: str = ""
    used: str = ""
    running: str = ""
    number: int = 0
    wall: float = 0.0

    @property
    def shown_shares(self) -> str | int | None:
        """Shares as sshare prints them."""
        return PARENT if self.shares == ON_PARENT else self.shares


def default_fields(
    *, long: bool = False, partitions: bool = False, fair_tree: bool = True
) -> list[SlurmColumn]:
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
    return [COLUMNS[name] for name in names]


def parse_fields(text: str) -> list[SlurmColumn]:
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


def _field_named(name: str) -> SlurmColumn:
    for field in COLUMNS.values():
        if field.name.lower().startswith(name.lower()):
            return field
    there = ",".join(COLUMNS)
    raise InvalidInput(
        f"there is no column {name[:40]!r}", field="--format", remedy=f"there are {there}"
    )


def lines(
    rows: Sequence[ShareRow],
    fields: Sequence[SlurmColumn],
    *,
    delimiter: str = "",
    is_ended: bool = False,
    header: bool = True,
) -> Iterator[str]:
    """Yield the lines of rows without line ends, as `field_lines` does.

    An account comes before what is below it.
    """
    cells = cells_of(rows, fields, Notation())
    return field_lines(
        map(_indented, cells, repeat([field.name for field in fields]), _depths(rows)),
        fields,
        delimiter=delimiter,
        is_ended=is_ended,
        header=header,
    )


def _indented(cells: list[Written], names: Sequence[str], depth: int) -> list[Written]:
    """Return the cells with the account's name indented."""
    return [
        " " * depth + whole(cell) if name == "Account" else cell
        for cell, name in zip(cells, names, strict=True)
    ]


def _depths(rows: Sequence[ShareRow]) -> Iterator[int]:
    """Yield the depth of each account in the tree, and of users one level deeper."""
    depths: dict[str, int] = {}
    for row in rows:
        if row.user:
            yield depths.get(row.account, -1) + 1
        else:
            yield depths.setdefault(row.account, depths.get(row.parent, -1) + 1)


def select_rows(
    rows: Sequence[ShareRow],
    *,
    users: Collection[str] | None = None,
    accounts: Collection[str] | None = None,
    users_only: bool = False,
) -> list[ShareRow]:
    """Return the rows that fit all of the selections; None selects all.

    With `users` the rows of accounts stay; `users_only` leaves them out.
    """
    return [
        row
        for row in rows
        if (not row.user or users is None or row.user in users)
        and (accounts is None or row.account in accounts)
        and (row.user or not users_only)
    ]
