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
from fairbank.slurm.parsers.job_lines import PendingFactors
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


def merge_factors(reported: Sequence[ShareRow], computed: Sequence[ShareRow]) -> dict[Payer, float]:
    """Return the fair-share factor of each user's association.

    A computed factor counts, with all its digits, if it prints as sshare's does; else sshare's.
    sshare rounds usage down, and with the classic rule accounts are ranked without the usage of the
    last tick.
    """
    rows = [
        (
            computed_row
            if computed_row.factor is not None
            and reported_row.factor is not None
            and f"{computed_row.factor:f}" == f"{reported_row.factor:f}"
            else reported_row
        )
        for reported_row, computed_row in zip(reported, computed, strict=True)
    ]
    return {(row.account, row.user, row.partition): row.factor or 0.0 for row in rows if row.user}


def compute_priorities(
    rows: Sequence[PriorityRow],
    inputs: PriorityInputs,
    factors: Mapping[Payer, float],
    now: int | None = None,
) -> list[PriorityRow]:
    """Compute every factor of the rows, in their order.

    The site factor is Slurm's, because scontrol does not print it. Jobs with a fixed priority and
    those no longer pending are left out.

    Args:
        rows: of sprio.
        inputs: of priorities.
        factors: fair-share factors by association.
        now: time of slurmctld's computation; None to derive it from the ages of the jobs.

    Raises:
        InvalidInput: a value that Slurm could not hold.
    """
    queries = _queries(rows, inputs)
    names = [name for name in inputs.tres.lower().split(",") if name != "billing"]
    factor_scale = _scale(inputs, names)
    terms = weighted(
        _columns(queries, inputs, factors, factor_scale),
        factor_scale,
        inputs.settings,
        _last_computed_at(queries, inputs) if now is None else now,
    )
    totals = shown(terms)
    return [
        _row(query, terms, factor_scale, position, float(totals[position]))
        for position, query in enumerate(queries)
    ]


def _queries(rows: Sequence[PriorityRow], inputs: PriorityInputs) -> list[PriorityQuery]:
    jobs, places = (
        {job.job_id: job for job in inputs.jobs},
        {place.name: place for place in inputs.places},
    )
    return [
        PriorityQuery(row, jobs[row.job], places[row.partition_name])
        for row in rows
        if row.direct is None and row.job in jobs and row.partition_name in places
    ]


def _last_computed_at(queries: Sequence[PriorityQuery], inputs: PriorityInputs) -> int:
    weight, maximum = inputs.settings.counted.age, inputs.settings.max_age_seconds
    return max(
        (
            round(query.row.age / weight * maximum) + _accrued(query.job, inputs)
            for query in queries
            if weight and query.row.age
        ),
        default=0,
    )


def _scale(inputs: PriorityInputs, names: Sequence[str]) -> FactorScale:
    tres_counts = [parse_counts(place.tres) if place.tres else {} for place in inputs.places]
    return scale(
        nodes=len(inputs.nodes),
        cpus=sum(node.cpus for node in inputs.nodes),
        partition_factors=[place.factor for place in inputs.places],
        qos_priorities=[qos.priority for qos in inputs.qualities],
        association_max=max((record.priority for record in inputs.priorities), default=0),
        totals={name: [float(counts.get(name, 0)) for counts in tres_counts] for name in names},
    )


def _columns(
    queries: Sequence[PriorityQuery],
    inputs: PriorityInputs,
    factors: Mapping[Payer, float],
    factor_scale: FactorScale,
) -> Columns:
    own = {
        (record.account, record.user, record.partition): record.priority
        for record in inputs.priorities
    }
    places, qualities = (
        [place.name for place in inputs.places],
        [qos.name for qos in inputs.qualities],
    )
    counts = [parse_counts(query.job.tres) if query.job.tres else {} for query in queries]
    return pending(
        factor_scale,
        len(queries),
        accrued_at=[_accrued(query.job, inputs) for query in queries],
        association=[_association_value(own, query) for query in queries],
        fairshare=[_association_value(factors, query) for query in queries],
        nodes=[query.job.nodes for query in queries],
        cpus=[inputs.tested.get(query.job.job_id, query.job.cpus) for query in queries],
        limit_minutes=[
            query.job.limit_minutes or query.place.max_minutes or U32_MAX for query in queries
        ],
        nice=[query.job.nice for query in queries],
        site=[query.row.site for query in queries],
        partition=[places.index(query.place.name) for query in queries],
        qos=[
            qualities.index(name) if (name := _qos(query)) in qualities else NO_QOS
            for query in queries
        ],
        tres={name: [float(tres.get(name, 0)) for tres in counts] for name in factor_scale.tres},
    )


def _accrued(job: PendingFactors, inputs: PriorityInputs) -> int:
    """Return since when the job ages; 0 if it does not yet."""
    if job.accrued is None:
        return 0
    return job.submitted if Flag.ACCRUE_ALWAYS in inputs.settings.flags else job.accrued


def _association_value(figures: Mapping[Payer, float], query: PriorityQuery) -> float:
    """Return the value of the association that pays: the partition's own, if there is one."""
    account, user = query.job.account, query.job.user
    return figures.get((account, user, query.place.name), figures.get((account, user, ""), 0))


def _qos(query: PriorityQuery) -> str:
    """Return the QOS of the row. A job has a row for each QOS; sprio prints it since 23.02."""
    return query.row.qos_name if query.row.qos_name in query.job.qos else query.job.qos[0]


def _row(
    query: PriorityQuery,
    terms: PriorityTerms,
    factor_scale: FactorScale,
    position: int,
    total: float,
) -> PriorityRow:
    return query.row._replace(
        age=float(terms.age[position]),
        association=float(terms.association[position]),
        fair_share=float(terms.fairshare[position]),
        job_size=float(terms.job_size[position]),
        partition=float(terms.partition[position]),
        qos=float(terms.qos[position]),
        tres={
            name: float(column[position])
            for name, column in zip(factor_scale.tres, terms.tres, strict=True)
            if column[position]
        },
        nice=query.job.nice,
        total=total,
    )
