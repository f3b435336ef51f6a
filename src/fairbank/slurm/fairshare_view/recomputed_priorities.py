"""Priorities computed by `priority` from the jobs, partitions, nodes, QOS and settings of Slurm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.core.tres import parse_counts
from fairbank.priority.multifactor.combination import PriorityTerms, shown, weighted
from fairbank.priority.multifactor.pending_jobs import NO_QOS, FactorScale, pending, scale
from fairbank.priority.multifactor.pending_jobs import PendingColumns as Columns
from fairbank.priority.multifactor.settings import Flag, MultifactorSettings
from fairbank.report.sprio import PriorityRow
from fairbank.report.sshare import ShareRow
from fairbank.slurm.parsers.pending_jobs import PendingFactors
from fairbank.slurm.parsers.values import AssociationPriority, SlurmNode, SlurmPartition, SlurmQos

Payer = tuple[str, str, str]
"""Association: account, user, and partition, empty if it is for all."""


class PriorityInputs(NamedTuple):
    """Inputs of priorities. `tres` is AccountingStorageTRES.

    `tested`: CPUs of jobs that the scheduler has tried to place on whole nodes, where they are
    known. slurmctld counts those, but scontrol still prints the CPUs that were requested.
    """

    settings: MultifactorSettings
    tres: str
    jobs: Sequence[PendingFactors]
    places: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode]
    qualities: Sequence[SlurmQos]
    priorities: Sequence[AssociationPriority]
    tested: Mapping[int, int] = {}


class PriorityQuery(NamedTuple):
    """Row of sprio with its job and partition."""

    row: PriorityRow
    job: PendingFactors
    place: SlurmPartition


def merge_factors(said: Sequence[ShareRow], anew: Sequence[ShareRow]) -> dict[Payer, float]:
    """Return the fair-share factor of each user's association.

    A computed factor counts, with all its digits, if it prints as sshare's does; else sshare's.
    sshare rounds usage down, and with the classic rule accounts are ranked without the usage of the
    last tick.
    """
    rows = [
        (
            ours
            if ours.factor is not None
            and theirs.factor is not None
            and f"{ours.factor:f}" == f"{theirs.factor:f}"
            else theirs
        )
        for theirs, ours in zip(said, anew, strict=True)
    ]
    return {(row.account, row.user, row.partition): row.factor or 0.0 for row in rows if row.user}


def compute_priorities(
    rows: Sequence[PriorityRow],
    of: PriorityInputs,
    factors: Mapping[Payer, float],
    now: int | None = None,
) -> list[PriorityRow]:
    """Compute every factor of the rows, in their order.

    The site factor is Slurm's, because scontrol does not print it. Jobs with a fixed priority and
    those no longer pending are left out.

    Args:
        rows: of sprio.
        of: inputs.
        factors: fair-share factors by association.
        now: time of slurmctld's computation; None to derive it from the ages of the jobs.

    Raises:
        InvalidInput: a value that Slurm could not hold.
    """
    asked = _queries(rows, of)
    names = [name for name in of.tres.lower().split(",") if name != "billing"]
    to = _scale(of, names)
    terms = weighted(
        _columns(asked, of, factors, to),
        to,
        of.settings,
        _last_computed_at(asked, of) if now is None else now,
    )
    totals = shown(terms)
    return [_row(each, terms, to, at, float(totals[at])) for at, each in enumerate(asked)]


def _queries(told: Sequence[PriorityRow], of: PriorityInputs) -> list[PriorityQuery]:
    jobs, places = {job.job_id: job for job in of.jobs}, {place.name: place for place in of.places}
    return [
        PriorityQuery(row, jobs[row.job], places[row.partition_name])
        for row in told
        if row.direct is None and row.job in jobs and row.partition_name in places
    ]


def _last_computed_at(asked: Sequence[PriorityQuery], of: PriorityInputs) -> int:
    weight, most = of.settings.counted.age, of.settings.max_age_seconds
    return max(
        (
            round(each.row.age / weight * most) + _accrued(each.job, of)
            for each in asked
            if weight and each.row.age
        ),
        default=0,
    )


def _scale(of: PriorityInputs, names: Sequence[str]) -> FactorScale:
    has = [parse_counts(place.tres) if place.tres else {} for place in of.places]
    return scale(
        nodes=len(of.nodes),
        cpus=sum(node.cpus for node in of.nodes),
        partition_factors=[place.factor for place in of.places],
        qos_priorities=[each.priority for each in of.qualities],
        association_max=max((each.priority for each in of.priorities), default=0),
        totals={name: [float(counts.get(name, 0)) for counts in has] for name in names},
    )


def _columns(
    asked: Sequence[PriorityQuery],
    of: PriorityInputs,
    factors: Mapping[Payer, float],
    to: FactorScale,
) -> Columns:
    own = {(each.account, each.user, each.partition): each.priority for each in of.priorities}
    places, qualities = [place.name for place in of.places], [each.name for each in of.qualities]
    counts = [parse_counts(each.job.tres) if each.job.tres else {} for each in asked]
    return pending(
        to,
        len(asked),
        accrued_at=[_accrued(each.job, of) for each in asked],
        association=[_association_value(own, each) for each in asked],
        fairshare=[_association_value(factors, each) for each in asked],
        nodes=[each.job.nodes for each in asked],
        cpus=[of.tested.get(each.job.job_id, each.job.cpus) for each in asked],
        limit_minutes=[
            each.job.limit_minutes or each.place.max_minutes or U32_MAX for each in asked
        ],
        nice=[each.job.nice for each in asked],
        site=[each.row.site for each in asked],
        partition=[places.index(each.place.name) for each in asked],
        qos=[
            qualities.index(name) if (name := _qos(each)) in qualities else NO_QOS for each in asked
        ],
        tres={name: [float(each.get(name, 0)) for each in counts] for name in to.tres},
    )


def _accrued(job: PendingFactors, of: PriorityInputs) -> int:
    """Return since when the job ages; 0 if it does not yet."""
    if job.accrued is None:
        return 0
    return job.submitted if Flag.ACCRUE_ALWAYS in of.settings.flags else job.accrued


def _association_value(figures: Mapping[Payer, float], each: PriorityQuery) -> float:
    """Return the value of the association that pays: the partition's own, if there is one."""
    account, user = each.job.account, each.job.user
    return figures.get((account, user, each.place.name), figures.get((account, user, ""), 0))


def _qos(each: PriorityQuery) -> str:
    """Return the QOS of the row. A job has a row for each QOS; sprio prints it since 23.02."""
    return each.row.qos_name if each.row.qos_name in each.job.qos else each.job.qos[0]


def _row(
    each: PriorityQuery, terms: PriorityTerms, to: FactorScale, at: int, total: float
) -> PriorityRow:
    return each.row._replace(
        age=float(terms.age[at]),
        association=float(terms.association[at]),
        fair_share=float(terms.fairshare[at]),
        job_size=float(terms.job_size[at]),
        partition=float(terms.partition[at]),
        qos=float(terms.qos[at]),
        tres={
            name: float(column[at])
            for name, column in zip(to.tres, terms.tres, strict=True)
            if column[at]
        },
        nice=each.job.nice,
        total=total,
    )
