"""Fair share from day to day: told to the bank as Slurm says it, and drawn (cli.figures.History)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.compose.figures import Drawn, written
from fairbank.compose.slurm_says import SlurmSays
from fairbank.core.time import iso
from fairbank.report.share_history import ShareHistoryRow, figures
from fairbank.rest.client import Client
from fairbank.slurm.fairshare_view.daily_records import day_told

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
        rows = day_told(found.cluster, found.rows, found.rule)
        path = "/share?dry-run=true" if dry_run else "/share"
        kept = 0
        for begin in range(0, len(rows), BATCH):
            answer = client.post(
                path,
                {"cluster": found.cluster, "at": found.as_of, "rows": rows[begin : begin + BATCH]},
            )
            kept += answer["data"]["kept"]
        return Recorded(str(found.cluster), iso(found.as_of)[:10], kept, found.unreadable)

    def draw(self, folder: str, kept: Sequence[ShareHistoryRow], *, as_png: bool) -> list[Drawn]:
        """A figure for each cluster into a folder, which is made if need be. Raises Forbidden."""
        drawn = []
        for number, (cluster, picture) in enumerate(figures(kept), start=1):
            plain = cluster.isascii() and cluster.replace("-", "").replace("_", "").isalnum()
            file = written(
                folder, f"fairshare-{cluster if plain else number}", picture, as_png=as_png
            )
            drawn.append(Drawn(file, picture.about))
        return drawn
