"""Fair share and priorities as Slurm tells them, as the rows that `share` and `prio` print (cli.slurm_says.SlurmSays)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.cli.slurm_says import Shares as Found
from fairbank.cli.zone import Local
from fairbank.priority.multifactor.settings import Flag
from fairbank.report.forecasts import Recovery
from fairbank.report.ranking_rule import RankingRule
from fairbank.report.sprio import PriorityRow, WeightRow
from fairbank.report.sshare import ShareRow
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.fairshare_view import recomputed_shares
from fairbank.slurm.fairshare_view.consistency import agreeing
from fairbank.slurm.fairshare_view.jobs import demand_factors, priority_rows, weights_of
from fairbank.slurm.fairshare_view.recomputed_priorities import PriorityInputs, computed, factors_of
from fairbank.slurm.fairshare_view.recovery_times import backs_of
from fairbank.slurm.fairshare_view.shares import rule_of, share_rows
from fairbank.slurm.offline import Said
from fairbank.slurm.parsers.priority import TRES, read_tracked
from fairbank.slurm.parsers.sprio import NAMED_SINCE
from fairbank.slurm.parsers.values import ParsedRows

Source = Said | SlurmCommands


class Shares(NamedTuple):
    cluster: str | None
    as_of: int
    rule: RankingRule
    rows: Sequence[ShareRow]
    unreadable: Sequence[str]

    @property
    def backs(self) -> Sequence[Recovery]:
        """Computed when it is asked for: most forms show nothing of it."""
        return backs_of(self.rows, self.rule)


class Priorities(NamedTuple):
    cluster: str | None
    as_of: int
    weights: WeightRow
    rows: Sequence[PriorityRow]
    named: bool
    unreadable: Sequence[str]


class PrioritiesAnew(NamedTuple):
    said: Priorities
    grounds: PriorityInputs
    shares: Sequence[ShareRow]
    rule: RankingRule
    unreadable: Sequence[str]

    @property
    def rows(self) -> Sequence[PriorityRow]:
        """Computed once everything is known to be whole."""
        return computed(
            self.said.rows,
            self.grounds,
            factors_of(self.shares, recomputed_shares.computed(self.shares, self.rule)),
        )


class SlurmSays:
    """The Slurm of this host, or what one said before."""

    def shares(self, folder: str | None, now: int) -> Shares:
        return self._shares(_source(folder), now)

    def _shares(self, source: Source, now: int) -> Shares:
        """slurmctld's local time is taken to be that of this host."""
        answer, settings = source.shares(), source.priority()
        as_of = _as_of(source, now)
        rule = rule_of(settings.fair_share, as_of, Local())
        rows = share_rows(answer.rows, fair_tree=rule.fair_tree)
        return Shares(source.cluster or None, as_of, rule, rows, _told(answer))

    def reckoned(self, found: Found, shares: Mapping[str, int]) -> Shares:
        """Fair share as it would be with other shares of some accounts."""
        rows = recomputed_shares.computed(recomputed_shares.changed(found.rows, shares), found.rule)
        return Shares(found.cluster, found.as_of, found.rule, rows, found.unreadable)

    def priorities(self, folder: str | None, now: int) -> Priorities:
        """Raises Malformed where jobs are not ranked by factors."""
        return self._priorities(_source(folder), now)

    def priorities_anew(self, folder: str | None, now: int) -> PrioritiesAnew:
        source = _source(folder)
        said, shares, settings = (
            self._priorities(source, now),
            self._shares(source, now),
            source.priority().factors,
        )
        answers = (
            source.pending(),
            source.places(),
            source.nodes(),
            source.qualities(),
            source.association_priorities(),
        )
        jobs, places, nodes, qualities, priorities = answers
        grounds = PriorityInputs(
            settings,
            read_tracked(source.config),
            jobs.rows,
            places.rows,
            nodes.rows,
            qualities.rows,
            priorities.rows,
        )
        unreadable = (
            *said.unreadable,
            *shares.unreadable,
            *(line for answer in answers for line in _told(answer)),
        )
        return PrioritiesAnew(said, grounds, shares.rows, shares.rule, unreadable)

    def _priorities(self, source: Source, now: int) -> Priorities:
        settings = source.priority()
        demand_factors(settings)
        answer, waiting = agreeing(source.factors(), settings.factors), source.waiting()
        weights = weights_of(settings.factors.weights, source.config.get(TRES, ""))
        running_too = Flag.CALCULATE_RUNNING in settings.factors.flags
        rows = priority_rows(
            answer.rows, weights, None if waiting is None else waiting.rows, running_too=running_too
        )
        unreadable = (*_told(answer), *(() if waiting is None else _told(waiting)))
        return Priorities(
            source.cluster or None,
            _as_of(source, now),
            weights,
            rows,
            source.version >= NAMED_SINCE,
            unreadable,
        )

    def me(self) -> str:
        """Who asks; a number where this host has no name for them."""
        uid = os.geteuid()
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)


def _source(folder: str | None) -> Source:
    return Said(folder) if folder else SlurmCommands()


def _as_of(source: Source, now: int) -> int:
    return source.clock() if isinstance(source, Said) else now


def _told(answer: ParsedRows[Any]) -> tuple[str, ...]:
    return tuple(map(str, answer.unreadable))
