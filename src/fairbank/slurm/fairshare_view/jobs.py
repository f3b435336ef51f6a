"""What sprio told, as rows to be shown, and the weights of the factors."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.settings import PrioritySettings
from fairbank.priority.multifactor.settings import PriorityWeights as Weighed
from fairbank.report.sprio import PriorityRow, WeightRow
from fairbank.slurm.parsers.sprio import FACTOR_DIGITS, TRES_DIGITS, Factors, unrounded
from fairbank.slurm.parsers.values import QueuedOwner


def demand_factors(settings: PrioritySettings) -> None:
    """Raises InvalidInput where jobs start in their order, as under priority/basic."""
    if not settings.by_factors:
        remedy = "it is priority/multifactor that has factors"
        raise InvalidInput(
            "this Slurm starts jobs in their order, without factors",
            field="PriorityType",
            remedy=remedy,
        )


def weights_of(weights: Weighed, tres_text: str) -> WeightRow:
    """`tres_text`: PriorityWeightTRES as the settings have it."""
    return WeightRow(
        age=weights.age,
        association=weights.association,
        fair_share=weights.fairshare,
        job_size=weights.job_size,
        partition=weights.partition,
        qos=weights.qos,
        tres=weights.tres,
        tres_text=tres_text,
    )


def priority_rows(
    told: Sequence[Factors],
    weights: WeightRow,
    waiting: Sequence[QueuedOwner] | None,
    *,
    running_too: bool = False,
) -> list[PriorityRow]:
    """All that sprio told, in its order, and what squeue told of the same jobs; None: it was not asked. `running_too`: sprio has jobs that
    run as well (CALCULATE_RUNNING), and squeue, who was asked for those that wait, has not."""
    by_number = {job.job_id: job for job in waiting or ()}
    known = running_too and waiting is not None
    return [
        priority_row(row, weights, by_number.get(row.job))._replace(
            runs=known and row.job not in by_number
        )
        for row in told
    ]


def priority_row(
    row: Factors, weights: WeightRow, waiting: QueuedOwner | None = None
) -> PriorityRow:
    """The job with factors that are printed in both columns as sprio printed them."""

    def factor(letter: str, weight: int) -> float:
        return unrounded(row.weighted[letter], row.normal[letter], weight, FACTOR_DIGITS)

    return PriorityRow(
        job=row.job,
        partition_name=row.partition,
        user=row.user,
        account=row.account or (waiting.account if waiting else ""),
        qos_name=row.qos_name or (waiting.qos if waiting else ""),
        short_zeros=bool(
            row.account
        ),  # an sprio that tells accounts tells those zeros, too: both seen with 24.11, neither with 22.05
        cluster=row.cluster,
        age=factor("a", weights.age),
        association=factor("b", weights.association),
        fair_share=factor("f", weights.fair_share),
        job_size=factor("j", weights.job_size),
        partition=factor("p", weights.partition),
        qos=factor("q", weights.qos),
        tres={
            name: unrounded(
                value, row.tres_normal.get(name, 0.0), weights.tres.get(name, 0.0), TRES_DIGITS
            )
            for name, value in row.tres.items()
        },
        site=row.site,
        nice=row.nice,
        direct=row.priority if row.given else None,
        total=row.total,
        submitted=waiting.submitted if waiting else None,
    )
