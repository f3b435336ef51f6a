"""Comparison of a recorded workload with a changed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairbank.report.columns import Column, Row, text
from fairbank.report.confidence import Interval, interval
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
