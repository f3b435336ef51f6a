"""Fair share and priorities as Slurm reports them, or as they would be with other shares.

They are read from the Slurm of this host, or from a directory of files with its earlier output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from fairbank.priority.fairshare.regimes import RankingRule
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.settings import Flag
from fairbank.report.share_forecast import LevelAfter, Recovery
from fairbank.report.slurm.sprio import PriorityRow, WeightRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.commands import output_of
from fairbank.slurm.fairshare_view import shares as share_view
from fairbank.slurm.fairshare_view.factor_notes import FactorInputs, FactorNotes
from fairbank.slurm.fairshare_view.priorities import (
    PriorityInputs,
    compute_priorities,
    consistent_rows,
    merge_factors,
    priority_rows,
    require_multifactor,
    weights_of,
)
from fairbank.slurm.fairshare_view.shares import ranking_rule, recovery_times, share_rows
from fairbank.slurm.output import RecordedOutput, SlurmOutput
from fairbank.slurm.parsers.config import TRES, Version, read_tracked_tres
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.sprio import NAMED_SINCE
from fairbank.slurm.parsers.values import AssociationFactors, ParsedRows, QosFactors

ALL_OF_QOS_SINCE = Version(23, 2, 0)
"""First release of Slurm in which all limits of a QOS on the age of jobs count, not only one."""
_OF_SHARES = ("sshare", "config")
_OF_FACTORS = ("partitions", "nodes", "qos", "associations")
"""Files of output that priorities are computed from, beside the shares."""


class Shares(NamedTuple):
    """Associations of a cluster in Slurm's order, and the lines that could not be read."""

    cluster: str | None
    as_of: int
    rule: RankingRule
    rows: Sequence[ShareRow]
    unreadable: Sequence[str]

    @property
    def recoveries(self) -> Sequence[Recovery]:
        """Times at which each is back at its share.

        Computed on use, since most output does not show them.
        """
        return recovery_times(self.rows, self.rule)

    def levels_after(self, pause: int, run: int) -> Sequence[LevelAfter]:
        """Return the levels after a pause (seconds) and then a run (billing-seconds)."""
        return share_view.levels_after(self.rows, self.rule, pause, run)


class Priorities(NamedTuple):
    """Pending jobs, once for each of their partitions.

    `named`: accounts and QOS are known, as newer versions of Slurm report them.
    """

    cluster: str | None
    as_of: int
    weights: WeightRow
    rows: Sequence[PriorityRow]
    named: bool
    unreadable: Sequence[str]


class RecomputedPriorities(NamedTuple):
    """Priorities as sprio reports them, with all that is needed to compute the factors again."""

    reported: Priorities
    inputs: PriorityInputs
    shares: Sequence[ShareRow]
    rule: RankingRule
    unreadable: Sequence[str]

    @property
    def rows(self) -> Sequence[PriorityRow]:
        """Computed rows, without jobs of a fixed priority and those no longer pending.

        Raises InvalidInput.
        """
        return compute_priorities(
            self.reported.rows,
            self.inputs,
            merge_factors(self.shares, share_view.compute_shares(self.shares, self.rule)),
        )


def read_shares(directory: str | None, now: int, zone: tzinfo) -> Shares:
    """Return every association with its shares and usage.

    Args:
        directory: directory with Slurm's earlier output; None to run Slurm's commands.
        now: time of the output of Slurm's commands.
        zone: local time of slurmctld, which decides when usage is reset.
    """
    source = output_of(directory)
    source.require(_OF_SHARES)
    return _shares(source, now, zone)


def with_shares(current: Shares, changes: Mapping[str, int]) -> Shares:
    """Return fair share as it would be with other shares of some accounts. Raises NotFound."""
    rows = share_view.compute_shares(share_view.with_changes(current.rows, changes), current.rule)
    return current._replace(rows=rows)


def read_priorities(directory: str | None, now: int) -> Priorities:
    """Return the priorities of pending jobs.

    Raises NoFactors if Slurm does not use multifactor, NotFound for a missing file.
    """
    source = output_of(directory)
    source.require(("config", "sprio"))
    return _priorities(source, now)


def read_recomputed_priorities(
    directory: str | None, now: int, zone: tzinfo
) -> RecomputedPriorities:
    """Return the priorities with what every factor is computed from (arguments: `read_shares`)."""
    source = output_of(directory)
    source.require(("config", "sprio", "sshare", "jobs", *_OF_FACTORS))
    reported, shares = _priorities(source, now), _shares(source, now, zone)
    settings = source.priority_settings().factors
    answers = (source.pending_jobs(), *_factor_answers(source))
    rows: list[Any] = [answer.rows for answer in answers]
    inputs = PriorityInputs(settings, read_tracked_tres(source.config), *rows)
    unreadable = (
        *reported.unreadable,
        *shares.unreadable,
        *(line for answer in answers for line in _unreadable(answer)),
    )
    return RecomputedPriorities(reported, inputs, shares.rows, shares.rule, unreadable)


def read_factor_notes(directory: str | None) -> tuple[FactorNotes, Sequence[str]]:
    """Return what explains factors, and the lines that could not be read.

    Raises NotFound for a missing file, Unavailable if Slurm does not answer.
    """
    source = output_of(directory)
    settings, jobs = source.priority_settings(), source.pending_jobs()
    qos: ParsedRows[QosFactors] = ParsedRows(())
    associations: ParsedRows[AssociationFactors] = ParsedRows(())
    if settings.factors.accounted:  # without slurmdbd sacctmgr answers nothing
        qos, associations = source.qos_factors(), source.association_factors()
    inputs = FactorInputs(
        settings.factors,
        settings.fair_share,
        Enforced.parse(source.config.get("AccountingStorageEnforce", "")).limits,
        jobs.rows,
        qos.rows,
        associations.rows,
        first_of_qos=source.version < ALL_OF_QOS_SINCE,
    )
    unreadable = (*_unreadable(jobs), *_unreadable(qos), *_unreadable(associations))
    return FactorNotes(inputs), unreadable


def new_job_priority(
    source: SlurmOutput, job: PendingFactors, now: int, zone: tzinfo
) -> tuple[int, Sequence[str]]:
    """Return the priority that a job would have just after its submission: the highest of its
    partitions. Under priority/basic it comes behind all others. Also return the lines that could
    not be read.

    Args:
        source: output of Slurm.
        job: the job; its age is 0.
        now: time of the output.
        zone: local time of slurmctld, which decides when usage is reset.
    """
    settings = source.priority_settings()
    if not settings.by_factors:
        return 1, ()
    source.require((*_OF_SHARES, *_OF_FACTORS))
    shares = _shares(source, now, zone)
    answers = _factor_answers(source)
    rows: list[Any] = [answer.rows for answer in answers]
    inputs = PriorityInputs(settings.factors, read_tracked_tres(source.config), [job], *rows)
    computed = compute_priorities(
        [PriorityRow(job.job_id, name, user=job.user) for name in job.partitions],
        inputs,
        merge_factors(shares.rows, share_view.compute_shares(shares.rows, shares.rule)),
        now,
    )
    unreadable = (*shares.unreadable, *(line for answer in answers for line in _unreadable(answer)))
    return max((round(row.priority) for row in computed), default=1), unreadable


def _factor_answers(source: SlurmOutput) -> tuple[ParsedRows[Any], ...]:
    return (source.partitions(), source.nodes(), source.qos(), source.association_priorities())


def _shares(source: SlurmOutput, now: int, zone: tzinfo) -> Shares:
    answer, settings = source.shares(), source.priority_settings()
    as_of = _as_of(source, now)
    factors = settings.factors if settings.by_factors else None
    rule = ranking_rule(settings.fair_share, as_of, zone, factors)
    rows = share_rows(answer.rows, fair_tree=rule.fair_tree)
    return Shares(source.cluster or None, as_of, rule, rows, _unreadable(answer))


def _priorities(source: SlurmOutput, now: int) -> Priorities:
    settings = source.priority_settings()
    require_multifactor(settings)
    answer, waiting = consistent_rows(source.factors(), settings.factors), source.pending_owners()
    weights = weights_of(settings.factors.weights, source.config.get(TRES, ""))
    running_too = Flag.CALCULATE_RUNNING in settings.factors.flags
    rows = priority_rows(
        answer.rows, weights, None if waiting is None else waiting.rows, running_too=running_too
    )
    unreadable = (*_unreadable(answer), *(() if waiting is None else _unreadable(waiting)))
    return Priorities(
        source.cluster or None,
        _as_of(source, now),
        weights,
        rows,
        source.version >= NAMED_SINCE,
        unreadable,
    )


def _as_of(source: SlurmOutput, now: int) -> int:
    return source.clock() if isinstance(source, RecordedOutput) else now


def _unreadable(answer: ParsedRows[Any]) -> tuple[str, ...]:
    return tuple(map(str, answer.unreadable))
