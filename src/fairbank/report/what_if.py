"""Comparison of a recorded workload with a changed one."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import NamedTuple

from fairbank.report.columns import Column, Row, text
from fairbank.report.simulations import MEASURES, OPTIONAL, Measure

COLUMNS = (
    Column("MEASURE", text("measure")),
    Column("AS-RECORDED", text("recorded"), right=True),
    Column("CHANGED", text("changed"), right=True),
    Column("DIFFERENCE", text("difference"), right=True),
)
_SIDES, _SIGNED = ("recorded", "changed", "difference"), (False, False, True)


class MeasuredPair(NamedTuple):
    """Measures of a workload, and of the changed one."""

    recorded: Row
    changed: Row

    def of(self, field: str) -> tuple[float, float, float] | None:
        """Return a measure of both, and the difference; None if one lacks it."""
        one, other = self.recorded.get(field), self.changed.get(field)
        return None if one is None or other is None else (one, other, other - one)


def measure_rows(plain: MeasuredPair, copies: Sequence[MeasuredPair]) -> list[Row]:
    """Return a row per measure in its own unit (seconds, fractions).

    With perturbed copies the row also has the mean over them and its 95 % confidence interval.
    Differences are taken copy by copy.
    """
    rows: list[Row] = []
    for measure in _measured(plain):
        row: dict[str, object] = {"measure": measure.field}
        row |= dict(zip(_SIDES, plain.of(measure.field) or (None, None, None), strict=True))
        found = _intervals(measure, copies)
        row["shaken"] = found and {
            side: _ends(each) for side, each in zip(_SIDES, found, strict=True)
        }
        rows.append(row)
    return rows


def table_rows(plain: MeasuredPair, copies: Sequence[MeasuredPair]) -> list[Row]:
    """Return the table: with copies the means over them and their uncertainty."""
    rows: list[Row] = []
    for measure in _measured(plain):
        said = _of_copies(measure, copies) if copies else _of_one(measure, plain)
        unit = "" if copies and measure.unit == "0 to 1" else f" ({measure.unit})"
        rows.append(
            {"measure": measure.name + unit, **dict(zip(_SIDES, said or "---", strict=True))}
        )
    return rows


def _of_one(measure: Measure, plain: MeasuredPair) -> list[str]:
    return [
        _said(measure, each, signed=signed)
        for each, signed in zip(plain.of(measure.field) or (), _SIGNED, strict=False)
    ]


def _of_copies(measure: Measure, copies: Sequence[MeasuredPair]) -> list[str]:
    return [
        _with_half(measure, each, signed=signed)
        for each, signed in zip(_intervals(measure, copies) or (), _SIGNED, strict=False)
    ]


def _measured(plain: MeasuredPair) -> list[Measure]:
    return [
        measure
        for measure in MEASURES
        if measure.field not in OPTIONAL or plain.of(measure.field) is not None
    ]


def _intervals(measure: Measure, copies: Sequence[MeasuredPair]) -> list[Interval] | None:
    """Return the intervals of both and of the difference; None if a copy lacks the measure."""
    found = [each.of(measure.field) for each in copies]
    if not found or None in found:
        return None
    intervals = [
        interval(values)
        for values in zip(*(each for each in found if each is not None), strict=True)
    ]
    return [each for each in intervals if each is not None] or None


def _ends(each: Interval) -> Row:
    return {"mean": each.mean, "low": each.mean - each.half, "high": each.mean + each.half}


def _said(measure: Measure, value: float, *, signed: bool) -> str:
    shown = (
        round(value / measure.divisor, measure.decimals) + 0.0
    )  # what rounds to nothing has no minus
    return f"{shown:{'+' if signed else ''},.{measure.decimals}f}"


def _with_half(measure: Measure, each: Interval, *, signed: bool) -> str:
    return f"{_said(measure, each.mean, signed=signed)} ±{_said(measure, each.half, signed=False)}"


_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""97.5 % quantiles for 1 to 30 degrees of freedom, from a table of Student's t."""
_NORMAL = 1.959964


class Interval(NamedTuple):
    """Mean, and half the width of its 95 % confidence interval."""

    mean: float
    half: float


def interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % confidence interval of the mean, or None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    mean = fsum(values) / count
    variance = fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Interval(mean, quantile(count - 1) * sqrt(variance / count))


def quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t.

    Beyond the table by an expansion in 1 / freedom, correct to four digits (R. A. Fisher and E. A.
    Cornish, 1960).
    """
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
