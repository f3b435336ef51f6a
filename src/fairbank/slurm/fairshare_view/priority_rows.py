"""Rows of sprio to show, weights of the factors, and a check that both columns of a factor agree.

Of two columns that contradict each other, nobody could say which is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairbank.core.errors import InvalidInput
from fairbank.priority.settings import WORDS, Flag, MultifactorSettings, PrioritySettings
from fairbank.priority.settings import PriorityWeights as Weighed
from fairbank.report.sprio import PriorityRow, WeightRow
from fairbank.slurm.parsers.sprio import COMMAND, FACTOR_DIGITS, TRES_DIGITS, SprioLine, unrounded
from fairbank.slurm.parsers.values import ParsedRows, PendingOwner, UnreadableLine

_NAMES = {
    "a": "age",
    "b": "association",
    "f": "fairshare",
    "j": "job_size",
    "p": "partition",
    "q": "qos",
}
"""Weights by the columns of sprio."""
_RAW = {"b": Flag.NO_NORMAL_ASSOC, "p": Flag.NO_NORMAL_PART, "q": Flag.NO_NORMAL_QOS}
"""Flags with which these factors are not between 0 and 1."""
_DOUBLES = 1 + 1e-6
"""Tolerance for doubles, which lose far less than printing does."""


def consistent_rows(
    answer: ParsedRows[SprioLine], settings: MultifactorSettings
) -> ParsedRows[SprioLine]:
    """Return the rows that can be right. Each other one is reported with its line and column."""
    contradictions = {
        row.line: contradiction
        for row in answer.rows
        if (contradiction := next(_contradictions(row, settings), None))
    }
    unreadable = sorted((*answer.unreadable, *contradictions.values()), key=lambda line: line.line)
    return ParsedRows(
        tuple(row for row in answer.rows if row.line not in contradictions), tuple(unreadable)
    )


def _contradictions(row: SprioLine, settings: MultifactorSettings) -> Iterator[UnreadableLine]:
    for letter, normal in row.normal.items():
        name = _NAMES[letter]
        if normal < 0 or (normal > 1 and _RAW.get(letter) not in settings.flags):
            yield UnreadableLine(
                COMMAND, row.line, letter, f"{normal:.12g} is not a figure from 0 to 1"
            )
        weight, weighted = getattr(settings.weights, name), row.weighted[letter]
        if not _agree(weighted, normal, weight, FACTOR_DIGITS):
            why = (
                f"{normal:.12g} of PriorityWeight{WORDS[name]}={weight} is not {weighted}, as"
                f" column {letter.upper()} says"
            )
            yield UnreadableLine(COMMAND, row.line, letter, why)
    for name, value in row.tres.items():
        by, part = settings.weights.tres.get(name, 0.0), row.tres_normal.get(name, 0.0)
        if not _agree(value, part, by, TRES_DIGITS):
            why = (
                f"{part:.12g} of {name}={by:.12g} in PriorityWeightTRES is not {value:.12g}, as"
                " column T says"
            )
            yield UnreadableLine(COMMAND, row.line, "t", why)


def _agree(weighted: float, normal: float, weight: float, digits: int) -> bool:
    """Return True if one factor can be printed as both: rounded, and by its weight with these
    `digits`.
    """
    if not weight:
        return weighted == normal == 0
    lost = 0.5 + weight * 0.5 * 0.1**digits
    return abs(normal * weight - weighted) <= lost * _DOUBLES


def require_multifactor(settings: PrioritySettings) -> None:
    """Raise InvalidInput if jobs start in their order, as under priority/basic."""
    if not settings.by_factors:
        remedy = "it is priority/multifactor that has factors"
        raise InvalidInput(
            "this Slurm starts jobs in their order, without factors",
            field="PriorityType",
            remedy=remedy,
        )


def weights_of(weights: Weighed, tres_text: str) -> WeightRow:
    """Return the weights; `tres_text` is PriorityWeightTRES as the settings have it."""
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
    lines: Sequence[SprioLine],
    weights: WeightRow,
    waiting: Sequence[PendingOwner] | None,
    *,
    running_too: bool = False,
) -> list[PriorityRow]:
    """Return all rows of sprio in its order, with the owners that squeue prints.

    Args:
        lines: of sprio.
        weights: of the factors.
        waiting: owners of pending jobs; None if squeue was not asked.
        running_too: sprio also lists running jobs (CALCULATE_RUNNING), squeue does not.
    """
    by_number = {job.job_id: job for job in waiting or ()}
    known = running_too and waiting is not None
    return [
        priority_row(row, weights, by_number.get(row.job))._replace(
            runs=known and row.job not in by_number
        )
        for row in lines
    ]


def priority_row(
    row: SprioLine, weights: WeightRow, waiting: PendingOwner | None = None
) -> PriorityRow:
    """Return the job, with factors that print in both columns as sprio printed them."""

    def factor(letter: str, weight: int) -> float:
        return unrounded(row.weighted[letter], row.normal[letter], weight, FACTOR_DIGITS)

    return PriorityRow(
        job=row.job,
        partition_name=row.partition,
        user=row.user,
        account=row.account or (waiting.account if waiting else ""),
        qos_name=row.qos_name or (waiting.qos if waiting else ""),
        # An sprio that prints accounts shortens zeros, too: 24.11 does both, 22.05 neither.
        short_zeros=bool(row.account),
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
        direct=row.priority if row.is_fixed else None,
        total=row.total,
        submitted=waiting.submitted if waiting else None,
    )
