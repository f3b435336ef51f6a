"""Output of `sshare --all --noheader --parsable2`: usage of accounts, and fair share."""

from __future__ import annotations

from functools import partial

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT, SHARES_MAX
from fairbank.report.slurm.layout import names_in
from fairbank.report.slurm.notation import PARENT
from fairbank.report.slurm.sshare import COLUMNS, ShareRow
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Cells, Records, Table, read_rows, split_records
from fairbank.slurm.parsers.values import ParsedRows


class ShareUsage(msgspec.Struct, frozen=True):
    """Usage of an account.

    `seconds` are used billing-seconds, `running` the billing-minutes that running jobs may still
    use.
    """

    account: str
    seconds: int
    running: int


def _account_usage(cells: Cells) -> ShareUsage | None:
    if cells["User"]:
        return None  # part of the usage of its account
    return ShareUsage(
        words.name(cells["Account"].strip(), "Account"),
        cells.read("RawUsage", words.number),
        words.billing(cells["TRESRunMins"]) or 0,
    )


USAGE = Table(
    "sshare", names_in(COLUMNS, "Account", "User", "RawUsage", "TRESRunMins"), _account_usage, PIPE
)


SHARE_COLUMNS = names_in(
    COLUMNS,
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
    """Read the rows in Slurm's order, with `--partition`.

    Rows below an account that cannot be read are left out, since their parent is unknown.
    """
    tree = _AccountTree()
    return read_rows(
        "sshare",
        tree.forget_after_errors(split_records("sshare", text, SHARE_COLUMNS, PIPE)),
        tree.share,
    )


class _AccountTree:
    """Position in the tree: Slurm indents each level by one blank, and a user by one more.

    Invariant: the last item of `_above` is the account of the current line, the items before it its
    parents. All rows belong to one cluster, and each association occurs once; with two of one name,
    neither could be identified.
    """

    def __init__(self) -> None:
        self._above: list[str] = []  # from the root down to where we are
        self._there: set[tuple[str, str, str]] = set()
        self._cluster: str | None = None

    def forget_after_errors(self, records: Records) -> Records:
        """Yield the records. After a line that is none, the position is unknown."""
        for record in records:
            if isinstance(record, UnreadableLine):
                self._above.clear()
            yield record

    def share(self, cells: Cells) -> ShareRow:
        row = self._placed(cells)
        if (name := (row.account, row.user, row.partition)) in self._there:
            raise InvalidInput(
                f"{words.quote_unknown(row.user or row.account)} is there twice",
                field="User" if row.user else "Account",
            )
        self._there.add(name)
        return row

    def _placed(self, cells: Cells) -> ShareRow:
        name = cells["Account"].lstrip(" ")
        depth = len(cells["Account"]) - len(name)
        if cells["Cluster"] != (self._cluster or cells["Cluster"]):
            del self._above[depth:]
            raise InvalidInput(
                f"{words.quote_unknown(cells['Cluster'])} is another cluster than"
                f" {words.quote_unknown(self._cluster or '')}",
                field="Cluster",
            )
        self._cluster = cells["Cluster"]
        if cells["User"]:
            if self._above[depth - 1 : depth] != [name]:
                raise InvalidInput(
                    f"a user of {words.quote_unknown(name)} is not below that account",
                    field="Account",
                )
            return _share(cells, name, "")
        if depth > len(self._above):
            raise InvalidInput(
                f"{words.quote_unknown(name)} is not below another account", field="Account"
            )
        del self._above[depth:]  # also when the rest of this row turns out to be unreadable
        row = _share(cells, name, self._above[-1] if self._above else "")
        self._above.append(name)
        return row


def _share(cells: Cells, account: str, parent: str) -> ShareRow:
    part = words.optional(partial(words.amount, most=1))
    return ShareRow(
        words.name(account, "Account"),
        cells.read("User", words.blank_or(words.user)),
        cells.read("Partition", words.name_or_blank),
        cells.read("RawShares", words.optional(_raw_shares)),
        words.amount(cells["NormShares"], "NormShares", most=1),
        words.number(cells["RawUsage"], "RawUsage", most=_USAGE_MAX),
        parent=parent,
        norm_usage=cells.read("NormUsage", part),
        effective=cells.read(
            "EffectvUsage", words.optional(partial(words.amount, most=_USAGE_MAX))
        ),
        factor=cells.read("FairShare", part),
        level=cells.read("LevelFS", words.optional(words.amount)),
        limits=cells["GrpTRESMins"],
        used=cells["GrpTRESRaw"],
        running=cells["TRESRunMins"],
        cluster=cells["Cluster"],
        number=cells.read("ID", words.number),
    )


def _raw_shares(text: str, field: str) -> int:
    return ON_PARENT if text == PARENT else words.number(text, field, most=SHARES_MAX)
