"""Fair share from day to day: told to the bank as Slurm says it, and drawn (cli.figures.History)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

from fairbank.compose.figures import Drawn, written
from fairbank.compose.slurm_says import Shares, SlurmSays
from fairbank.report.fairshare import Kept, figures
from fairbank.report.share_tree import level_of
from fairbank.report.shares import ShareRow
from fairbank.rest.client import Client
from fairbank.values.slurm_numbers import ON_PARENT
from fairbank.values.time import iso
from fairbank.values.trouble import Malformed

BATCH = 5_000
"""Associations that are told at once."""


class Recorded(NamedTuple):
    """What came of recording: how many associations are kept now, or would be."""

    cluster: str
    day: str
    kept: int
    unreadable: Sequence[str]


class History:
    """Daily figures: those of the Slurm of this host for the bank, and the bank's as pictures."""

    def record(self, client: Client, folder: str | None, now: int, *, dry_run: bool) -> Recorded:
        """Tell the bank how everybody stands now, or stood as a Slurm said before. Raises what asking Slurm and the bank raises, and
        Malformed where a cluster has no name or figures are none."""
        found = SlurmSays().shares(folder, now)
        rows = told(found)
        path = "/share?dry-run=true" if dry_run else "/share"
        kept = 0
        for begin in range(0, len(rows), BATCH):
            answer = client.post(path, {"cluster": found.cluster, "at": found.as_of, "rows": rows[begin : begin + BATCH]})
            kept += answer["data"]["kept"]
        return Recorded(str(found.cluster), iso(found.as_of)[:10], kept, found.unreadable)

    def draw(self, folder: str, kept: Sequence[Kept], *, as_png: bool) -> list[Drawn]:
        """A figure for each cluster into a folder, which is made if need be. Raises Forbidden."""
        drawn = []
        for number, (cluster, picture) in enumerate(figures(kept), start=1):
            plain = cluster.isascii() and cluster.replace("-", "").replace("_", "").isalnum()
            file = written(folder, f"fairshare-{cluster if plain else number}", picture, as_png=as_png)
            drawn.append(Drawn(file, picture.about))
        return drawn


def told(found: Shares) -> list[Mapping[str, Any]]:
    """As the bank is told of it. Raises Malformed for what would be no history: no name, no rows, figures that are not finite."""
    if not found.cluster:
        raise Malformed("this Slurm has no name", field="ClusterName", remedy="set it in slurm.conf")
    if not found.rows:
        raise Malformed("there is nobody whose fair share could be kept", field="sshare", remedy="look at what it prints: sshare -a")
    if len({(row.account, row.user, row.partition) for row in found.rows}) < len(found.rows):
        raise Malformed("an association is there twice", field="sshare", remedy="ask one cluster, without -M")
    return list(_rows(found))


def _rows(found: Shares) -> Iterator[Mapping[str, Any]]:
    for row in found.rows:
        _check(row)
        level = level_of(row, found.rule)
        yield {
            "account": row.account,
            "user": row.user or None,
            "partition": row.partition or None,
            "shares": "parent" if row.shares == ON_PARENT else row.shares,
            "norm_shares": row.norm_shares,
            "usage": row.usage,
            "effective": row.effective,
            "level": None if level is None or level == inf else level,
            "factor": row.factor,
        }


def _check(row: ShareRow) -> None:
    read = {"NormShares": row.norm_shares, "RawUsage": row.usage, "EffectvUsage": row.effective, "FairShare": row.factor}
    for name, figure in read.items():
        if figure is not None and not isfinite(figure):
            who = f"user {row.user} of account {row.account}" if row.user else f"account {row.account}"
            raise Malformed(f"{who} has {figure}", field=name, remedy="a finite number is wanted; look at what sshare prints")
