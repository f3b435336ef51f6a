"""Comparison of simulations: a line per measure for people, a row per policy for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from fairbank.report.cells import csv_line
from fairbank.report.columns import Column, Look, Row, Show, text


class Measure(NamedTuple):
    """Measure of a simulation: its field, name, unit, and the divisor for display."""

    field: str
    name: str
    unit: str
    divisor: float = 1.0
    decimals: int = 2

    def said(self, row: Row) -> str:
        value = row.get(self.field)
        return "-" if value is None else f"{value / self.divisor:,.{self.decimals}f}"

    def change(self, before: Row, after: Row) -> str:
        """Return the change in percent; for percentages the difference."""
        one, other = before.get(self.field), after.get(self.field)
        if one is None or other is None:
            return "-"
        if self.unit == "%":
            return f"{(other - one) / self.divisor:+.{self.decimals}f}"
        return f"{(other - one) / one * 100:+.1f}%" if one else "-"


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
    Measure("unfair_starts", "starts later than fair", "%", 0.01),
    Measure("mean_miss_seconds", "mean miss of those", "h", HOUR),
    Measure("astray", "delivered beyond shares", "%", 0.01),
    Measure("refused_part", "jobs refused for want of credit", "%", 0.01),
    Measure("unpaid_part", "jobs that ran for nothing", "%", 0.01),
    Measure("expired_part", "credit that expired unused", "%", 0.01),
    Measure("jain_of_shares", "Jain's index of delivered by shares", "0 to 1", decimals=3),
)
OPTIONAL = frozenset(
    {
        "unfair_starts",
        "mean_miss_seconds",
        "astray",
        "jain_of_shares",
        "refused_part",
        "unpaid_part",
        "expired_part",
    }
)
"""Measures that are shown only if they were measured."""


def _figure(field: str, decimals: int) -> Show:
    return lambda row, look: "" if row.get(field) is None else f"{row[field]:.{decimals}f}"


COLUMNS = (
    Column("POLICY", text("policy")),
    Column("JOBS", text("jobs"), right=True),
    Column("LEFT-OUT", text("left_out"), right=True),
    Column("MEAN-WAIT-SECONDS", _figure("mean_wait_seconds", 3), right=True),
    Column("MEAN-BSLD", _figure("mean_bounded_slowdown", 4), right=True),
    Column("UTILISATION", _figure("utilisation", 5), right=True),
    Column("LOSS-OF-CAPACITY", _figure("loss_of_capacity", 5), right=True),
    Column("MEDIAN-WAIT-SECONDS", text("median_wait_seconds"), right=True, extra=True),
    Column("WAIT-95-SECONDS", text("wait_95_seconds"), right=True, extra=True),
    Column("LONGEST-WAIT-SECONDS", text("longest_wait_seconds"), right=True, extra=True),
    Column(
        "MEAN-TURNAROUND-SECONDS", _figure("mean_turnaround_seconds", 3), right=True, extra=True
    ),
    Column("MAKESPAN-SECONDS", text("makespan_seconds"), right=True, extra=True),
    Column("JAIN", _figure("jain", 5), right=True, extra=True),
    Column("UNFAIR-STARTS", _figure("unfair_starts", 5), right=True, extra=True),
    Column("MEAN-MISS-SECONDS", _figure("mean_miss_seconds", 1), right=True, extra=True),
    Column("ASTRAY", _figure("astray", 5), right=True, extra=True),
    Column("JAIN-OF-SHARES", _figure("jain_of_shares", 5), right=True, extra=True),
    Column("REFUSED-JOBS", text("refused_jobs"), right=True, extra=True),
    Column("UNPAID-JOBS", text("unpaid_jobs"), right=True, extra=True),
    Column("EXPIRED-MINUTES", text("expired_minutes"), right=True, extra=True),
    Column("FINGERPRINT", text("fingerprint"), extra=True),
)


class MeasureTable(NamedTuple):
    """Table with a line per measure and a column per policy; with two policies also the change."""

    columns: Sequence[Column]
    rows: Sequence[Row]


def measure_table(outcomes: Sequence[Row]) -> MeasureTable:
    """Return the table. `outcomes` are rows, one per policy, in order."""
    columns = [
        Column("MEASURE", text("measure")),
        *(_column(str(place), row["policy"]) for place, row in enumerate(outcomes)),
    ]
    changed = len(outcomes) == 2
    if changed:
        columns.append(_column("change", "change"))
    rows = []
    for measure in MEASURES:
        if measure.field in OPTIONAL and all(row.get(measure.field) is None for row in outcomes):
            continue
        line: dict[str, Any] = {"measure": f"{measure.name} ({measure.unit})"}
        line |= {str(place): measure.said(row) for place, row in enumerate(outcomes)}
        if changed:
            line["change"] = measure.change(*outcomes)
        rows.append(line)
    return MeasureTable(columns, rows)


def _column(field: str, name: str) -> Column:
    """Return the column of a policy. Its field is its position, since a policy can have any
    name.
    """

    def show(row: Row, look: Look) -> str:
        return str(row[field])

    return Column(name.upper(), show, right=True)


LINES = 4_096


class SimulatedJobRow(NamedTuple):
    """Job that ran. Times are in seconds of the trace. An unknown user or group is empty."""

    job: int
    user: str
    group: str
    submitted: int
    started: int
    ended: int
    processors: int


HEADS = ("policy", *SimulatedJobRow._fields, "wait_seconds")


def schedules_csv(schedules: Iterable[tuple[str, Iterable[SimulatedJobRow]]]) -> Iterator[str]:
    """Yield the header, then the jobs of each policy in the given order, in blocks of lines."""
    yield csv_line(HEADS) + "\n"
    for policy, rows in schedules:
        lines: list[str] = []
        for row in rows:
            lines.append(
                csv_line((policy, *map(str, row), str(row.started - row.submitted))) + "\n"
            )
            if len(lines) == LINES:
                yield "".join(lines)
                lines.clear()
        yield "".join(lines)
