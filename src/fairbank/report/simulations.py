"""Comparison of simulations, and of a recorded workload with a changed one.

For people a line per measure, for programs a row per policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import fsum, sqrt
from typing import Any, NamedTuple

from fairbank.report.cells import csv_line
from fairbank.report.columns import Column, Row, Show, decimal, text


class Measure(NamedTuple):
    """Measure of a simulation: its field, name, unit, and the divisor for display.

    An `optional` one is shown only if it was measured. One with a `resource` is about its credit.
    """

    field: str
    name: str
    unit: str
    divisor: float = 1.0
    decimals: int = 2
    optional: bool = False
    resource: str | None = None

    def of(self, row: Row) -> float | None:
        """Return the value of a row, or None if it was not measured."""
        return (row if self.resource is None else _of_resource(row, self.resource)).get(self.field)

    def cell(self, row: Row) -> str:
        value = self.of(row)
        return "-" if value is None else f"{value / self.divisor:,.{self.decimals}f}"

    def change(self, before: Row, after: Row) -> str:
        """Return the change in percent; for percentages the difference."""
        one, other = self.of(before), self.of(after)
        if one is None or other is None:
            return "-"
        if self.unit == "%":
            return f"{(other - one) / self.divisor:+.{self.decimals}f}"
        return f"{(other - one) / one * 100:+.1f}%" if one else "-"


def _of_resource(row: Row, resource: str) -> Row:
    """Return the use of credit for a resource; empty if no account had any."""
    return next((use for use in row.get("resources", ()) if use["resource"] == resource), {})


HOUR = 3_600.0
MEASURES = (
    Measure("mean_wait_seconds", "mean wait", "h", HOUR),
    Measure("median_wait_seconds", "median wait", "h", HOUR),
    Measure("wait_95_seconds", "95th percentile wait", "h", HOUR),
    Measure("longest_wait_seconds", "longest wait", "h", HOUR),
    Measure("mean_turnaround_seconds", "mean turnaround", "h", HOUR),
    Measure("mean_bounded_slowdown", "mean bounded slowdown", "x"),
    Measure("utilisation", "utilisation", "%", 0.01),
    Measure("loss_of_capacity", "loss of capacity", "%", 0.01),
    Measure("makespan_seconds", "makespan", "h", HOUR),
    Measure("jain", "Jain's index of users' slowdowns", "0 to 1", decimals=3),
    Measure("unfair_starts", "starts later than fair", "%", 0.01, optional=True),
    Measure("mean_late_seconds", "mean delay of those", "h", HOUR, optional=True),
    Measure("share_error", "delivered beyond shares", "%", 0.01, optional=True),
    Measure("refused_part", "jobs refused for lack of credit", "%", 0.01, optional=True),
    Measure("unpaid_part", "jobs that ran without charge", "%", 0.01, optional=True),
    *(
        Measure(
            "expired_part",
            f"{resource} credit that expired unused",
            "%",
            0.01,
            optional=True,
            resource=resource,
        )
        for resource in ("cpu", "gpu")
    ),
    Measure(
        "jain_of_shares", "Jain's index of delivered by shares", "0 to 1", decimals=3, optional=True
    ),
)


def _expired(resource: str) -> Show:
    cell = text("expired_minutes")
    return lambda row, form: cell(_of_resource(row, resource), form)


COLUMNS = (
    Column("POLICY", text("policy")),
    Column("JOBS", text("jobs"), right=True),
    Column("LEFT-OUT", text("left_out"), right=True),
    Column("MEAN-WAIT-SECONDS", decimal("mean_wait_seconds", 3), right=True),
    Column("MEAN-BSLD", decimal("mean_bounded_slowdown", 4), right=True),
    Column("UTILISATION", decimal("utilisation", 5), right=True),
    Column("LOSS-OF-CAPACITY", decimal("loss_of_capacity", 5), right=True),
    Column("MEDIAN-WAIT-SECONDS", text("median_wait_seconds"), right=True, extra=True),
    Column("WAIT-95-SECONDS", text("wait_95_seconds"), right=True, extra=True),
    Column("LONGEST-WAIT-SECONDS", text("longest_wait_seconds"), right=True, extra=True),
    Column(
        "MEAN-TURNAROUND-SECONDS", decimal("mean_turnaround_seconds", 3), right=True, extra=True
    ),
    Column("MAKESPAN-SECONDS", text("makespan_seconds"), right=True, extra=True),
    Column("JAIN", decimal("jain", 5), right=True, extra=True),
    Column("UNFAIR-STARTS", decimal("unfair_starts", 5), right=True, extra=True),
    Column("MEAN-LATE-SECONDS", decimal("mean_late_seconds", 1), right=True, extra=True),
    Column("SHARE-ERROR", decimal("share_error", 5), right=True, extra=True),
    Column("JAIN-OF-SHARES", decimal("jain_of_shares", 5), right=True, extra=True),
    Column("REFUSED-JOBS", text("refused_jobs"), right=True, extra=True),
    Column("UNPAID-JOBS", text("unpaid_jobs"), right=True, extra=True),
    Column("EXPIRED-CPU-MINUTES", _expired("cpu"), right=True, extra=True),
    Column("EXPIRED-GPU-MINUTES", _expired("gpu"), right=True, extra=True),
    Column("FINGERPRINT", text("fingerprint"), extra=True),
)


MEASURE_COLUMNS = (Column("MEASURE", text("measure")), Column("CHANGE", text("change"), right=True))
"""Columns of the table of measures beside those that are named after policies."""


def measure_table(outcomes: Sequence[Row]) -> tuple[list[Column], list[Row]]:
    """Return a line per measure with a column per policy, and the change if there are two."""
    # A column's field is its position, since a policy can have any name.
    names = {str(place): row["policy"] for place, row in enumerate(outcomes)}
    changed = len(outcomes) == 2
    first, *last = MEASURE_COLUMNS if changed else MEASURE_COLUMNS[:1]
    rows: list[Row] = []
    for measure in MEASURES:
        if measure.optional and all(measure.of(row) is None for row in outcomes):
            continue
        line: dict[str, Any] = {"measure": f"{measure.name} ({measure.unit})"}
        line |= {str(place): measure.cell(row) for place, row in enumerate(outcomes)}
        if changed:
            line["change"] = measure.change(*outcomes)
        rows.append(line)
    columns = [Column(name.upper(), text(field), right=True) for field, name in names.items()]
    return [first, *columns, *last], rows


SCHEDULE_HEADER = (
    *("policy", "job", "user", "group", "submitted", "started", "ended", "processors"),
    "wait_seconds",
)
LINES = 4_096
"""Lines of a block."""


def schedules_csv(
    schedules: Iterable[tuple[str, Iterable[tuple[int | str, ...]]]],
) -> Iterator[str]:
    """Yield the header, then the jobs of each policy in the given order, in blocks of lines.

    `schedules` has each policy with its jobs: their cells after the policy, in the order of
    SCHEDULE_HEADER, times in seconds of the trace.
    """
    yield csv_line(SCHEDULE_HEADER) + "\n"
    for policy, jobs in schedules:
        lines = (csv_line((policy, *map(str, cells))) + "\n" for cells in jobs)
        while block := "".join(islice(lines, LINES)):
            yield block


# --- a recorded workload and a changed one ---

WHAT_IF_COLUMNS = (
    Column("MEASURE", text("measure")),
    Column("AS-RECORDED", text("recorded"), right=True),
    Column("CHANGED", text("changed"), right=True),
    Column("DIFFERENCE", text("difference"), right=True),
)
_SIDES, _SIGNS = ("recorded", "changed", "difference"), ("", "", "+")


class MeasuredPair(NamedTuple):
    """Measures of a workload, and of the changed one."""

    recorded: Row
    changed: Row

    def of(self, measure: Measure) -> tuple[float, float, float] | None:
        """Return a measure of both, and the difference; None if one lacks it."""
        one, other = measure.of(self.recorded), measure.of(self.changed)
        return None if one is None or other is None else (one, other, other - one)


def measure_rows(plain: MeasuredPair, copies: Sequence[MeasuredPair]) -> list[Row]:
    """Return a row per measure in its own unit (seconds, fractions).

    With perturbed copies the row also has the mean over them and its 95 % confidence interval.
    Differences are taken copy by copy.
    """
    rows: list[Row] = []
    for measure in _measured(plain):
        row: dict[str, object] = {"measure": measure.field, "resource": measure.resource}
        row |= dict(zip(_SIDES, plain.of(measure) or (None, None, None), strict=True))
        intervals = _intervals(measure, copies)
        row["perturbed"] = intervals and {
            side: {"mean": mean, "low": mean - half, "high": mean + half}
            for side, (mean, half) in zip(_SIDES, intervals, strict=True)
        }
        rows.append(row)
    return rows


def table_rows(plain: MeasuredPair, copies: Sequence[MeasuredPair]) -> list[Row]:
    """Return the table: with copies the means over them and their uncertainty."""
    rows: list[Row] = []
    for measure in _measured(plain):
        if copies:
            intervals = _intervals(measure, copies) or ()
            cells = [
                f"{_show_value(measure, mean, sign)} ±{_show_value(measure, half)}"
                for (mean, half), sign in zip(intervals, _SIGNS, strict=False)
            ]
        else:
            values = plain.of(measure) or ()
            cells = [
                _show_value(measure, value, sign)
                for value, sign in zip(values, _SIGNS, strict=False)
            ]
        unit = "" if copies and measure.unit == "0 to 1" else f" ({measure.unit})"
        rows.append(
            {"measure": measure.name + unit, **dict(zip(_SIDES, cells or "---", strict=True))}
        )
    return rows


def _measured(plain: MeasuredPair) -> list[Measure]:
    return [
        measure for measure in MEASURES if not measure.optional or plain.of(measure) is not None
    ]


def _intervals(measure: Measure, copies: Sequence[MeasuredPair]) -> list[Interval] | None:
    """Return the intervals of both and of the difference; None if a copy lacks the measure."""
    values = [pair.of(measure) for pair in copies]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    intervals = [interval(side) for side in zip(*known, strict=True)]
    return [bounds for bounds in intervals if bounds is not None] or None


def _show_value(measure: Measure, value: float, sign: str = "") -> str:
    # Adding 0.0 takes the minus from what rounds to nothing.
    shown = round(value / measure.divisor, measure.decimals) + 0.0
    return f"{shown:{sign},.{measure.decimals}f}"


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
