"""Priorities computed anew, from the jobs, partitions, nodes, QOS, associations and settings that Slurm tells, by the room `priority`."""

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
"""An association: account, user, and the partition, or none where it is for all."""


class PriorityInputs(NamedTuple):
    """What priorities are made of. `tres` is AccountingStorageTRES.

    `tested`: the CPUs of jobs that the scheduler has tried to place on whole nodes, where somebody knows them. slurmctld counts those, but
    scontrol goes on telling the CPUs that a job asked for.
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
    """A row of sprio with the job and the partition that it is about."""

    row: PriorityRow
    job: PendingFactors
    place: SlurmPartition


def factors_of(said: Sequence[ShareRow], anew: Sequence[ShareRow]) -> dict[Payer, float]:
    """The fair-share factor of each user's association: with all digits as computed `anew`, where that is printed as sshare `said`. Else
    what it said: it cuts off usage, and by the classic rule accounts stand as they did before the usage of the last tick was added."""
    rows = [
        ours
        if ours.factor is not None
        and theirs.factor is not None
        and f"{ours.factor:f}" == f"{theirs.factor:f}"
        else theirs
        for theirs, ours in zip(said, anew, strict=True)
    ]
    return {(row.account, row.user, row.partition): row.factor or 0.0 for row in rows if row.user}


def computed(
    told: Sequence[PriorityRow],
    of: PriorityInputs,
    factors: Mapping[Payer, float],
    now: int | None = None,
) -> list[PriorityRow]:
    """The rows with every factor computed, in the order in which they were told; only the site factor is as Slurm says, for scontrol does
    not tell it. Left out are jobs whose priority was given and those that wait no more. `now` is when slurmctld counted, where that is
    known, else as the ages of the jobs say. Raises InvalidInput for what Slurm could not hold."""
    asked = _asked(told, of)
    names = [name for name in of.tres.lower().split(",") if name != "billing"]
    to = _scale(of, names)
    terms = weighted(
        _columns(asked, of, factors, to),
        to,
        of.settings,
        _counted_at(asked, of) if now is None else now,
    )
    totals = shown(terms)
    return [_row(each, terms, to, at, float(totals[at])) for at, each in enumerate(asked)]


def _asked(told: Sequence[PriorityRow], of: PriorityInputs) -> list[PriorityQuery]:
    jobs, places = {job.job_id: job for job in of.jobs}, {place.name: place for place in of.places}
    return [
        PriorityQuery(row, jobs[row.job], places[row.partition_name])
        for row in told
        if row.direct is None and row.job in jobs and row.partition_name in places
    ]


def _counted_at(asked: Sequence[PriorityQuery], of: PriorityInputs) -> int:
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
        association=[_of_payer(own, each) for each in asked],
        fairshare=[_of_payer(factors, each) for each in asked],
        nodes=[each.job.nodes for each in asked],
        cpus=[of.tested.get(each.job.job_id, each.job.cpus) for each in asked],
        limit_minutes=[
            each.job.limit_minutes or each.place.most_minutes or U32_MAX for each in asked
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
    """Since when it ages; 0 where it does not yet."""
    if job.accrued is None:
        return 0
    return job.submitted if Flag.ACCRUE_ALWAYS in of.settings.flags else job.accrued


def _of_payer(figures: Mapping[Payer, float], each: PriorityQuery) -> float:
    """Of the association that pays: the partition's own, where there is one."""
    account, user = each.job.account, each.job.user
    return figures.get((account, user, each.place.name), figures.get((account, user, ""), 0))


def _qos(each: PriorityQuery) -> str:
    """Of several that a job asked for each has a row; sprio names it from 23.02 on."""
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
