"""Fair share and priorities as Slurm tells them, as the rows that `share` and `prio` print (cli.standings.Standings)."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Sequence
from typing import NamedTuple

from fairbank.cli.zone import Local
from fairbank.report.forecasts import Back
from fairbank.report.priorities import PriorityRow, Weights
from fairbank.report.rule import Rule
from fairbank.report.shares import ShareRow
from fairbank.slurm.answers.priority import TRES
from fairbank.slurm.answers.shares import Share
from fairbank.slurm.answers.sprio import NAMED_SINCE, Factors
from fairbank.slurm.answers.values import Answer, Waiting
from fairbank.slurm.commands import Slurm
from fairbank.slurm.ranking.backs import backs_of
from fairbank.slurm.ranking.jobs import priority_row, weights_of
from fairbank.slurm.ranking.shares import rule_of, share_rows
from fairbank.slurm.said import Said
from fairbank.values.trouble import Malformed


class Shares(NamedTuple):
    cluster: str | None
    as_of: int | None
    rule: Rule
    rows: Sequence[ShareRow]
    unreadable: Sequence[str]

    @property
    def backs(self) -> Sequence[Back]:
        """Computed when it is asked for: most forms show nothing of it."""
        return backs_of(self.rows, self.rule, oblivious=self.rule.depth_oblivious)


class Priorities(NamedTuple):
    cluster: str | None
    as_of: int | None
    weights: Weights
    rows: Sequence[PriorityRow]
    named: bool
    unreadable: Sequence[str]


class Standings:
    """The Slurm of this host, or what one said before."""

    def shares(self, folder: str | None) -> Shares:
        """slurmctld's local time is taken to be that of this host."""
        source = Said(folder) if folder else Slurm()
        answer, settings = source.shares(), source.priority()
        as_of = _as_of(source)
        rule = rule_of(settings.fair_share, int(time.time()) if as_of is None else as_of, Local())
        rows = share_rows(answer.rows, fair_tree=rule.fair_tree)
        return Shares(source.cluster or None, as_of, rule, rows, _told(answer))

    def priorities(self, folder: str | None) -> Priorities:
        """Raises Malformed where jobs are not ranked by factors."""
        source = Said(folder) if folder else Slurm()
        settings = source.priority()
        if not settings.by_factors:
            remedy = "it is priority/multifactor that has factors"
            raise Malformed("this Slurm starts jobs in their order, without factors", field="PriorityType", remedy=remedy)
        answer, waiting, weights = source.factors(), source.waiting(), weights_of(settings.factors.weights, source.config.get(TRES, ""))
        whose = {job.job_id: (job.account, job.qos) for job in waiting.rows}
        rows = [priority_row(row, weights, whose) for row in answer.rows]
        unreadable = (*_told(answer), *_told(waiting))
        return Priorities(source.cluster or None, _as_of(source), weights, rows, source.version >= NAMED_SINCE, unreadable)

    def me(self) -> str:
        """Who asks; a number where this host has no name for them."""
        uid = os.geteuid()
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)


def _as_of(source: Said | Slurm) -> int | None:
    return source.clock() if isinstance(source, Said) else None


def _told(answer: Answer[Share] | Answer[Factors] | Answer[Waiting]) -> tuple[str, ...]:
    return tuple(map(str, answer.unreadable))
