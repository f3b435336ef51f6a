"""Fair share as slurmctld has it: `sshare --all --partition --noheader --parsable2` with all its columns, of any version."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.delimited import PIPE, Record, read, records
from fairbank.slurm.parsers.values import ParsedRows, Unreadable

COLUMNS = (
    "Account",
    "Cluster",
    "User",
    "Partition",
    "RawShares",
    "NormShares",
    "RawUsage",
    "NormUsage",
    "EffectvUsage",
    "FairShare",
    "LevelFS",
    "GrpTRESMins",
    "GrpTRESRaw",
    "ID",
    "TRESRunMins",
)
_USAGE_MAX = 10**18 - 1


def read_shares(text: str) -> ParsedRows[ShareRow]:
    """The rows in Slurm's order. What stands below an account that cannot be read is left out too: nobody could say whose it is."""
    tree = _Tree()
    return read("sshare", tree.watched(records("sshare", text, COLUMNS, PIPE)), tree.share)


class _Tree:
    """Which account is above which: Slurm tells it by one blank for each level, and one more for a user. Of one cluster, and each
    association once: of two with one name nobody could say which is meant."""

    def __init__(self) -> None:
        self._above: list[str] = []  # from the root down to where we are
        self._there: set[tuple[str, str, str]] = set()
        self._cluster: str | None = None

    def watched(self, found: Iterator[Record | Unreadable]) -> Iterator[Record | Unreadable]:
        """After a line that is no record nobody knows where we are."""
        for each in found:
            if isinstance(each, Unreadable):
                self._above.clear()
            yield each

    def share(self, cells: dict[str, str]) -> ShareRow:
        row = self._placed(cells)
        if (name := (row.account, row.user, row.partition)) in self._there:
            raise InvalidInput(
                f"{words.shown(row.user or row.account)} is there twice",
                field="User" if row.user else "Account",
            )
        self._there.add(name)
        return row

    def _placed(self, cells: dict[str, str]) -> ShareRow:
        name = cells["Account"].lstrip(" ")
        depth = len(cells["Account"]) - len(name)
        if cells["Cluster"] != (self._cluster or cells["Cluster"]):
            del self._above[depth:]
            raise InvalidInput(
                f"{words.shown(cells['Cluster'])} is another cluster than {words.shown(self._cluster or '')}",
                field="Cluster",
            )
        self._cluster = cells["Cluster"]
        if cells["User"]:
            if self._above[depth - 1 : depth] != [name]:
                raise InvalidInput(
                    f"a user of {words.shown(name)} is not below that account", field="Account"
                )
            return _share(cells, name, "")
        if depth > len(self._above):
            raise InvalidInput(f"{words.shown(name)} is not below another account", field="Account")
        del self._above[depth:]  # also when the rest of this row turns out to be unreadable
        row = _share(cells, name, self._above[-1] if self._above else "")
        self._above.append(name)
        return row


def _share(cells: dict[str, str], account: str, parent: str) -> ShareRow:
    user = cells["User"]
    return ShareRow(
        ids.name(account, field="Account"),
        user and words.user(user, "User"),
        cells["Partition"] and ids.name(cells["Partition"], field="Partition"),
        parent,
        _raw_shares(cells["RawShares"]),
        words.amount(cells["NormShares"], "NormShares", most=1),
        words.number(cells["RawUsage"], "RawUsage", most=_USAGE_MAX),
        _perhaps(cells, "NormUsage", most=1),
        _perhaps(cells, "EffectvUsage", most=_USAGE_MAX),
        _perhaps(cells, "FairShare", most=1),
        _perhaps(cells, "LevelFS"),
        cells["GrpTRESMins"],
        cells["GrpTRESRaw"],
        cells["TRESRunMins"],
        cells["Cluster"],
        words.number(cells["ID"], "ID"),
    )


def _perhaps(cells: dict[str, str], name: str, most: float = inf) -> float | None:
    return words.amount(cells[name], name, most) if cells[name] else None


def _raw_shares(cell: str) -> int | None:
    if cell == "parent":
        return ON_PARENT
    return words.number(cell, "RawShares", most=SHARES_MAX) if cell else None
