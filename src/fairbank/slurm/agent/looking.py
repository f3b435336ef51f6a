"""Looks at the bank where no report tells how it fares: whether it is there, and takes reports of the cluster that slurmctld greeted with.
When to look and what was found stands here; who looks, in look_rounds.

What a look finds is told and nothing more: jobs are decided, and reports sent, by what reports found. So it is also never a look that
clears what a report found.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from fairbank.core.errors import FairbankError, Forbidden
from fairbank.rest.bodies.answers import Myself
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.faring import Faring
from fairbank.slurm.agent.pool import pause

LOOK_SECONDS = 60.0
"""After so long without a word of a bank that answered it is looked at again."""


class Standing(NamedTuple):
    """How the bank fares as far as is known: `reachable` is None until it was first asked. `since` is of a clock that only goes forward."""

    reachable: bool | None
    since: float
    failures: int = 0
    trouble: FairbankError | None = None


class Looks:
    """What the looks have found so far."""

    def __init__(self) -> None:
        self.at: float | None = None
        """When the last one ended; None until one has."""
        self.clusters: Set[str] = frozenset()
        self._standing = Standing(None, 0.0)

    def found(
        self, trouble: FairbankError | None, clusters: Set[str], bank: Faring, now: float
    ) -> bool:
        """One has ended; `trouble` is why the bank would take no reports of these clusters. Whether that is news."""
        before, reachable = self.standing(bank), trouble is None
        news = before.reachable is not reachable
        self._standing = Standing(
            reachable,
            now if news else before.since,
            0 if reachable else before.failures + 1,
            trouble,
        )
        self.at, self.clusters = now, clusters
        return news

    def standing(self, bank: Faring) -> Standing:
        """How it fares by reports and looks: a trouble that a report found stands until one gets through; else the later word counts."""
        if bank.up and self.at is not None and (bank.heard_at is None or bank.heard_at < self.at):
            return self._standing
        if bank.heard_at is None:
            return Standing(None, bank.since)
        since = bank.since
        if bank.up and self.at is not None:
            since = max(since, self._standing.since if self._standing.reachable else self.at)
        return Standing(bank.up, since, bank.failures, bank.trouble)

    def next_at(self, bank: Faring) -> float:
        """When to look again at a bank of which nobody says anything meanwhile."""
        heard = max(bank.heard_at or 0.0, self.at or 0.0)
        failures = self.standing(bank).failures
        return heard + (pause(failures) if failures else LOOK_SECONDS)


def wants_a_look(core: Core, looks: Looks, clusters: Set[str], now: float) -> bool:
    """Whether to look: at first, at another cluster, after a long silence, and again and again while looks find it away.

    Not while letters wait, which will find out; nor before a plug-in has said for which cluster; nor where only a report can tell.
    """
    if not clusters or core.busy or len(core.queue) or not core.bank.up:
        return False
    asked_at_all = looks.standing(core.bank).reachable is not None
    return not asked_at_all or not clusters <= looks.clusters or now >= looks.next_at(core.bank)


def barred(me: Myself, cluster: str) -> FairbankError | None:
    """What keeps somebody, as the bank's `/whoami` tells them, from reporting runs of this cluster."""
    if cluster in me.clusters or (me.superuser and "write" in me.scopes):
        return None
    return Forbidden(
        f"uid {me.uid} may not report runs of cluster {cluster}",
        field="cluster",
        remedy=f"agents = [{me.uid}] under [clusters.{cluster}] in the bank's settings, or a token with the scope agent:{cluster}",
    )
