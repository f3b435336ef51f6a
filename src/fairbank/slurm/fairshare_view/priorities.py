"""Priorities of pending jobs: rows of sprio to show, and computed again by `priority`.

A row whose columns of a factor contradict each other is unreadable: either could be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.core.tres import parse_counts
from fairbank.jobqueue.factors import FactorCluster, FactorJob, FactorPartition
from fairbank.priority.associations import AssociationKey
from fairbank.priority.multifactor.combination import sum_as_shown, weigh_factors
from fairbank.priority.settings import (
    WORDS,
    Flag,
    MultifactorSettings,
    PrioritySettings,
    PriorityWeights,
)
from fairbank.report.slurm.sprio import PriorityRow, WeightRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.sprio import (
    COMMAND,
    FACTOR_DIGITS,
    FACTORS,
    TRES_DIGITS,
    SprioLine,
    unrounded,
)
from fairbank.slurm.parsers.values import (
    AssociationPriority,
    ParsedRows,
    PendingOwner,
    SlurmNode,
    SlurmPartition,
    SlurmQos,
)

_NAMES = {
    "a": "age",
    "b": "association",
    "f": "fairshare",
    "j": "job_size",
    "p": "partition",
    "q": "qos",
}
"""Weights and terms of `priority` by the columns of sprio."""
_RAW = {"b": Flag.NO_NORMAL_ASSOC, "p": Flag.NO_NORMAL_PART, "q": Flag.NO_NORMAL_QOS}
"""Flags with which these factors are not between 0 and 1."""
_DOUBLES = 1 + 1e-6
"""Tolerance for doubles, which lose far less than printing does."""


def consistent_rows(
    answer: ParsedRows[SprioLine], settings: MultifactorSettings
) -> ParsedRows[SprioLine]:
    """Return the rows that can be right. Each other one is reported with its line and column."""
    first = {row.line: next(_contradictions(row, settings), None) for row in answer.rows}
    contradictions = {line: contradiction for line, contradiction in first.items() if contradiction}
    unreadable = sorted((*answer.unreadable, *contradictions.values()), key=lambda line: line.line)
    return ParsedRows(
        tuple(row for row in answer.rows if row.line not in contradictions), tuple(unreadable)
    )


def _contradictions(line: SprioLine, settings: MultifactorSettings) -> Iterator[UnreadableLine]:
    for letter, normal in line.normal.items():
        name = _NAMES[letter]
        if normal < 0 or (normal > 1 and _RAW.get(letter) not in settings.flags):
            yield UnreadableLine(
                COMMAND, line.line, letter, f"{normal:.12g} is not a figure from 0 to 1"
            )
        weight, weighted = getattr(settings.weights, name), getattr(line.row, FACTORS[letter])
        if not _is_same_part(weighted, normal, weight, FACTOR_DIGITS):
            why = (
                f"{normal:.12g} of PriorityWeight{WORDS[name]}={weight} is not {weighted:.0f}, as"
                f" column {letter.upper()} says"
            )
            yield UnreadableLine(COMMAND, line.line, letter, why)
    for name, value in line.row.tres.items():
        by, part = settings.weights.tres.get(name, 0.0), line.tres_normal.get(name, 0.0)
        if not _is_same_part(value, part, by, TRES_DIGITS):
            why = (
                f"{part:.12g} of {name}={by:.12g} in PriorityWeightTRES is not {value:.12g}, as"
                " column T says"
            )
            yield UnreadableLine(COMMAND, line.line, "t", why)


def _is_same_part(weighted: float, normal: float, weight: float, digits: int) -> bool:
    """Return True if one factor can print as both: rounded, and by its weight with `digits`."""
    if not weight:
        return weighted == normal == 0
    lost = 0.5 + weight * 0.5 * 0.1**digits
    return abs(normal * weight - weighted) <= lost * _DOUBLES


class NoFactors(InvalidInput):
    """Jobs start in their order, without factors, as under priority/basic."""


def require_multifactor(settings: PrioritySettings) -> None:
    """Raise NoFactors if jobs start in their order, as under priority/basic."""
    if not settings.by_factors:
        remedy = "it is priority/multifactor that has factors"
        raise NoFactors(
            "this Slurm starts jobs in their order, without factors",
            field="PriorityType",
            remedy=remedy,
        )


def weights_of(weights: PriorityWeights, tres_text: str) -> WeightRow:
    """Return the weights; `tres_text` is PriorityWeightTRES as the settings have it."""
    factors = {FACTORS[letter]: getattr(weights, name) for letter, name in _NAMES.items()}
    return WeightRow(**factors, tres=weights.tres, tres_text=tres_text)


def priority_rows(
    lines: Sequence[SprioLine],
    weights: WeightRow,
    waiting: Sequence[PendingOwner] | None,
    *,
    running_too: bool = False,
) -> list[PriorityRow]:
    """Return all rows of sprio in its order, with the owners that squeue prints.

    Args:
        waiting: owners of pending jobs; None if squeue was not asked.
        running_too: sprio also lists running jobs (CALCULATE_RUNNING), squeue does not.
    """
    by_number = {job.job_id: job for job in waiting or ()}
    known = running_too and waiting is not None
    return [
        priority_row(line, weights, by_number.get(line.row.job))._replace(
            runs=known and line.row.job not in by_number
        )
        for line in lines
    ]


def priority_row(
    line: SprioLine, weights: WeightRow, waiting: PendingOwner | None = None
) -> PriorityRow:
    """Return the job, with factors that print in both columns as sprio printed them.

    Args:
        line: the job with its weighted and its normalised factors, both rounded by sprio.
        weights: weights of the factors, with which a factor is found that prints as both.
        waiting: the job as squeue prints it, with account, QOS and time of submission; None if it
            is not in squeue's list.
    """
    row = line.row
    factors: dict[str, Any] = {
        field: unrounded(
            getattr(row, field), line.normal[letter], getattr(weights, field), FACTOR_DIGITS
        )
        for letter, field in FACTORS.items()
    }
    row = row._replace(
        tres={
            name: unrounded(
                value, line.tres_normal.get(name, 0.0), weights.tres.get(name, 0.0), TRES_DIGITS
            )
            for name, value in row.tres.items()
        },
        **factors,
    )
    if waiting is None:
        return row
    return row._replace(
        account=row.account or waiting.account,
        qos_name=row.qos_name or waiting.qos,
        submitted=waiting.submitted,
    )


# --- computed again ---


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


def merge_factors(
    reported: Sequence[ShareRow], computed: Sequence[ShareRow]
) -> dict[AssociationKey, float]:
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
    factors: Mapping[AssociationKey, float],
    now: int | None = None,
) -> list[PriorityRow]:
    """Compute every factor of the rows, in their order.

    The site factor is Slurm's, because scontrol does not print it. Jobs with a fixed priority and
    those no longer pending are left out.

    Args:
        factors: fair-share factors by association.
        now: time of slurmctld's computation; None to derive it from the ages of the jobs.

    Raises:
        InvalidInput: a value that Slurm could not hold.
    """
    by_number = {job.job_id: job for job in inputs.jobs}
    cluster = _cluster(inputs)
    pending = [
        row
        for row in rows
        if row.direct is None and row.job in by_number and row.partition_name in cluster.partitions
    ]
    jobs = [_factor_job(row, by_number[row.job], inputs) for row in pending]
    factor_scale = cluster.scale()
    columns = cluster.columns(jobs, factor_scale, factors)
    if now is None:
        now = _time_of(pending, jobs, inputs.settings)
    terms = weigh_factors(columns, factor_scale, inputs.settings, now)
    sums = sum_as_shown(terms)
    computed: dict[str, Any] = {
        FACTORS[letter]: getattr(terms, name) for letter, name in _NAMES.items()
    }
    return [
        row._replace(
            tres={
                name: float(column[at])
                for name, column in zip(factor_scale.tres, terms.tres, strict=True)
                if column[at]
            },
            nice=jobs[at].nice,
            total=float(sums[at]),
            **_at(at, computed),
        )
        for at, row in enumerate(pending)
    ]


def _cluster(inputs: PriorityInputs) -> FactorCluster:
    return FactorCluster(
        nodes=len(inputs.nodes),
        cpus=sum(node.cpus for node in inputs.nodes),
        tres=[name for name in inputs.tres.lower().split(",") if name != "billing"],
        partitions={
            partition.name: FactorPartition(
                partition.factor, partition.max_minutes, _counts(partition.tres)
            )
            for partition in inputs.places
        },
        qos={qos.name: qos.priority for qos in inputs.qualities},
        associations={
            (record.account, record.user, record.partition): record.priority
            for record in inputs.priorities
        },
    )


def _factor_job(row: PriorityRow, job: PendingFactors, inputs: PriorityInputs) -> FactorJob:
    return FactorJob(
        account=job.account,
        user=job.user,
        partition=row.partition_name,
        # A job has a row for each QOS; sprio prints it since 23.02.
        qos=row.qos_name if row.qos_name in job.qos else job.qos[0],
        accrued_at=_accrued(job, inputs),
        nodes=job.nodes,
        cpus=inputs.tested.get(job.job_id, job.cpus),
        limit_minutes=job.limit_minutes,
        nice=job.nice,
        site=row.site,
        tres=_counts(job.tres),
    )


def _time_of(
    rows: Sequence[PriorityRow], jobs: Sequence[FactorJob], settings: MultifactorSettings
) -> int:
    """Return when slurmctld computed the priorities: the oldest age shows it; 0 if no job ages."""
    weight, maximum = settings.counted.age, settings.max_age_seconds
    ticks = [
        round(row.age / weight * maximum) + job.accrued_at
        for row, job in zip(rows, jobs, strict=True)
        if weight and row.age
    ]
    return max(ticks, default=0)


def _at(position: int, columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(values[position]) for name, values in columns.items()}


def _counts(tres: str) -> dict[str, float]:
    counts = parse_counts(tres) if tres else {}
    return {name: float(count) for name, count in counts.items()}


def _accrued(job: PendingFactors, inputs: PriorityInputs) -> int:
    """Return since when the job ages; 0 if it does not yet."""
    if job.accrued is None:
        return 0
    return job.submitted if Flag.ACCRUE_ALWAYS in inputs.settings.flags else job.accrued
