"""Fair share from day to day: recorded from what Slurm says, read from the bank's store (cli.standings.History)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import NamedTuple

from fairbank.cluster.share_figure import ShareFigure, ShareQuery, in_order
from fairbank.compose.figures import Drawn, written
from fairbank.compose.settings import books_of
from fairbank.compose.standing import Shares, Standings
from fairbank.report.fairshare import figures
from fairbank.report.plots.days import day_name
from fairbank.report.share_tree import level_of
from fairbank.report.shares import ShareRow
from fairbank.service.clock import SystemClock
from fairbank.values.time import DAY, Instant
from fairbank.values.trouble import Malformed


class Recorded(NamedTuple):
    """What came of recording: `kept` is False where that day was recorded before."""

    cluster: str
    day: str
    rows: int
    kept: bool
    unreadable: Sequence[str]


class History:
    """The daily figures in the store of a bank on this host."""

    def record(self, config: str | None, folder: str | None) -> Recorded:
        """Keep how everybody stands now, or as a Slurm said before, once a day and cluster. Raises what asking Slurm raises, and Malformed
        where a cluster has no name or figures are none."""
        found = Standings().shares(folder)
        rows = figures_of(found, Instant(SystemClock().now() if found.as_of is None else found.as_of))
        with books_of(config) as store:
            kept = store.keep_shares(rows)
        return Recorded(rows[0].cluster, day_name(rows[0].day), len(rows), kept, found.unreadable)

    def kept(self, config: str | None, *, cluster: str | None, accounts: Sequence[str] | None, days: int, users: bool) -> list[ShareFigure]:
        """The figures of so many days up to today."""
        today = SystemClock().now() // DAY
        named = None if accounts is None else frozenset(accounts)
        with books_of(config) as store, store.reading() as reader:
            return reader.share_figures(ShareQuery(max(today + 1 - days, 0), today + 1, cluster, named, users))

    def draw(self, folder: str, kept: Sequence[ShareFigure], *, as_png: bool) -> list[Drawn]:
        """A figure for each cluster into a folder, which is made if need be. Raises Forbidden."""
        drawn = []
        for number, (cluster, picture) in enumerate(figures(kept), start=1):
            plain = cluster.isascii() and cluster.replace("-", "").replace("_", "").isalnum()
            file = written(folder, f"fairshare-{cluster if plain else number}", picture, as_png=as_png)
            drawn.append(Drawn(file, picture.about))
        return drawn


def figures_of(found: Shares, at: Instant) -> list[ShareFigure]:
    """As they are kept. Raises Malformed for what would be no history: no name, no rows, figures that are not finite."""
    if not found.cluster:
        raise Malformed("this Slurm has no name", field="ClusterName", remedy="set it in slurm.conf")
    if not found.rows:
        raise Malformed("there is nobody whose fair share could be kept", field="sshare", remedy="look at what it prints: sshare -a")
    kept = []
    for row in found.rows:
        level = level_of(row, found.rule)
        _check(row)
        kept.append(
            ShareFigure(
                found.cluster,
                at // DAY,
                row.account,
                row.user,
                row.partition,
                at,
                row.shares,
                float(row.norm_shares),
                float(row.usage),
                row.effective,
                None if level is None or level == inf else level,
                row.factor,
            )
        )
    if len({in_order(each) for each in kept}) < len(kept):
        raise Malformed("an association is there twice", field="sshare", remedy="ask one cluster, without -M")
    return kept


def _check(row: ShareRow) -> None:
    read = {"NormShares": row.norm_shares, "RawUsage": row.usage, "EffectvUsage": row.effective, "FairShare": row.factor}
    for name, figure in read.items():
        if figure is not None and not isfinite(figure):
            who = f"user {row.user} of account {row.account}" if row.user else f"account {row.account}"
            raise Malformed(f"{who} has {figure}", field=name, remedy="a finite number is wanted; look at what sshare prints")
