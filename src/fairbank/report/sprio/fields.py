"""Columns of sprio by their format characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import PRIORITY_MAX
from fairbank.report.sprio.row import PriorityRow, WeightRow


class PriorityField(NamedTuple):
    """Column of sprio: header, cell of a job, cell of the line of weights, sort key."""

    head: str
    show: Callable[[PriorityRow, WeightRow], str]
    weight: Callable[[WeightRow], str]
    key: Callable[[PriorityRow, WeightRow], str | float]


def _blank(weights: WeightRow) -> str:
    return ""


def _factor(
    head: str, value: Callable[[PriorityRow], float], weight: Callable[[WeightRow], int]
) -> tuple[PriorityField, PriorityField]:
    """Return the columns of a factor: weighted and normalised."""

    def normal(row: PriorityRow, weights: WeightRow) -> float:
        return value(row) / weight(weights) if weight(weights) else 0.0

    def told(weights: WeightRow) -> str:
        return str(weight(weights))

    return (
        PriorityField(
            head, lambda row, weights: f"{value(row):.0f}", told, lambda row, weights: value(row)
        ),
        PriorityField(head, lambda row, weights: _digits(row, normal(row, weights)), told, normal),
    )


def _digits(row: PriorityRow, normal: float) -> str:
    return "0" if row.short_zeros and row.direct is not None else f"{normal:.7f}"


def _plain(head: str, value: Callable[[PriorityRow], str | int], weight: str = "") -> PriorityField:
    return PriorityField(
        head,
        lambda row, weights: str(value(row)),
        lambda weights: weight,
        lambda row, weights: value(row),
    )


def _share_of_tres(row: PriorityRow, weights: WeightRow) -> dict[str, float]:
    return {
        name: value / weights.tres[name] if weights.tres.get(name) else 0.0
        for name, value in row.tres.items()
    }


def _pairs(values: Mapping[str, float], decimals: int) -> str:
    return ",".join(f"{name}={value:.{decimals}f}" for name, value in values.items())


def _normal_priority(row: PriorityRow) -> float:
    return (
        row.priority if row.direct is not None else row.priority / PRIORITY_MAX
    )  # sprio leaves a given one as it is


_A, _a = _factor("AGE", lambda row: row.age, lambda weights: weights.age)
_B, _b = _factor("ASSOC", lambda row: row.association, lambda weights: weights.association)
_F, _f = _factor("FAIRSHARE", lambda row: row.fair_share, lambda weights: weights.fair_share)
_J, _j = _factor("JOBSIZE", lambda row: row.job_size, lambda weights: weights.job_size)
_P, _p = _factor("PARTITION", lambda row: row.partition, lambda weights: weights.partition)
_Q, _q = _factor("QOS", lambda row: row.qos, lambda weights: weights.qos)

FIELDS: Mapping[str, PriorityField] = {
    "i": _plain("JOBID", lambda row: row.job, "Weights"),
    "r": _plain("PARTITION", lambda row: row.partition_name),
    "c": _plain("CLUSTER", lambda row: "(null)" if row.cluster is None else row.cluster),
    "u": _plain("USER", lambda row: row.user),
    "o": _plain("ACCOUNT", lambda row: row.account),
    "n": _plain("QOSNAME", lambda row: row.qos_name),
    "Y": PriorityField(
        "PRIORITY",
        lambda row, weights: str(int(row.priority)),
        _blank,
        lambda row, weights: row.priority,
    ),
    "y": PriorityField(
        "PRIORITY",
        lambda row, weights: f"{_normal_priority(row):16.14f}",
        _blank,
        lambda row, weights: row.priority,
    ),
    "S": _plain("SITE", lambda row: row.site, "1"),
    "A": _A,
    "a": _a,
    "B": _B,
    "b": _b,
    "F": _F,
    "f": _f,
    "J": _J,
    "j": _j,
    "P": _P,
    "p": _p,
    "Q": _Q,
    "q": _q,
    "N": _plain("NICE", lambda row: row.nice),
    "T": PriorityField(
        "TRES",
        lambda row, _: _pairs(row.tres, 0),
        lambda weights: weights.tres_text or "(null)",
        lambda row, _: sum(row.tres.values()),
    ),
    "t": PriorityField(
        "TRES",
        lambda row, weights: _pairs(_share_of_tres(row, weights), 2),
        _blank,
        lambda row, weights: sum(_share_of_tres(row, weights).values()),
    ),
}
"""By the letters of -o."""


def sort_rows(
    rows: Sequence[PriorityRow], weights: WeightRow, keys: str = "i"
) -> list[PriorityRow]:
    """Sort by format characters separated by commas, the first counting most; `-` reverses. Raises
    InvalidInput.
    """
    found = list(rows)
    for key in reversed(keys.split(",")):
        letter = key.lstrip("+-")
        if letter not in FIELDS or len(key) - len(letter) > 1:
            raise InvalidInput(
                f"{key[:40]!r} is nothing to sort by",
                field="--sort",
                remedy=f"the letters are {', '.join(FIELDS)}, as in u,-y",
            )
        found.sort(key=partial(_place, FIELDS[letter], weights), reverse=key.startswith("-"))
    return found


def _place(field: PriorityField, weights: WeightRow, row: PriorityRow) -> Any:
    """Return the sort key of a row, a text or a number, the same type for all rows of a field."""
    return field.key(row, weights)
