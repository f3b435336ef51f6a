"""Text of docs/performance.md, written from the results."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path

from benchmarks.measure import Figure, Table, Target
from benchmarks.results import Claim, Machine
from benchmarks.schedule import lines
from fairbank.report.plots.canvas import render
from fairbank.report.plots.figures import Axis, Caption, LineFigure, Panel, Series

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
FIGURES = PAGE.parent / "figures"

HEAD = """# Performance

<!-- Written by `make bench`; do not edit. -->

Every published speed is measured by `make bench`, beside an alternative in the same run. Rounds
alternate, so that a machine whose speed drifts favours none. Trust the ratios: the absolute
figures are those of one small, shared machine. A figure is the median of its rounds, with their
range; a ratio is the median of the ratios of the rounds.
"""


def page(claims: Iterable[Claim], remarks: Mapping[str, str]) -> str:
    """Return the page. `remarks` says what limits a claim, by its name."""
    claim_list = list(claims)
    return "\n".join(
        [
            HEAD,
            *_summary(claim_list),
            *(line for claim in claim_list for line in _claim(claim, remarks.get(claim.name, ""))),
        ]
    )


def _summary(claims: list[Claim]) -> Iterator[str]:
    yield "## Targets\n"
    yield "| What | Where | Measured | Target | |\n| --- | --- | ---: | ---: | --- |"
    for claim in claims:
        for table in claim.tables:
            for target in table.targets:
                yield (
                    f"| {target.name} | {table.title} | {amount(target.value, target.unit)} |"
                    f" {bound_text(target)} | {_emphasised(target)} |"
                )
    yield ""


def drawings(claims: Iterable[Claim]) -> dict[str, bytes]:
    """Return the figures of the page, as SVG by the names of their files."""
    return {
        _file(table): render(drawing(table, claim), "svg")
        for claim in claims
        for table in claim.tables
        if table.curves
    }


def drawing(table: Table, claim: Claim) -> LineFigure:
    """Return the figure of a table with curves. Both axes are logarithmic, so that linear growth is
    a straight line.
    """
    medians = {figure.name: figure.median for figure in table.figures}
    series = [
        Series(curve.name, [(size, medians[name]) for size, name in curve.by_size], number)
        for number, curve in enumerate(table.curves)
    ]
    names = ", ".join(curve.name for curve in table.curves)
    machine = claim.machine
    caption = Caption(
        table.title,
        f"Milliseconds by the number of {table.sizes}: {names}",
        f"medians measured on {machine.on}, {machine.cores} cores of {machine.processor}",
        f"make bench ARGS='--only {claim.name}'",
    )
    points = [point for line in series for point in line.points]
    across = _powers_axis(f"{table.sizes} (number, logarithmic)", [size for size, _ in points])
    up = _powers_axis("time (ms, logarithmic)", [value for _, value in points])
    return LineFigure(caption, across, [Panel(up, series, dotted=True)])


def _powers_axis(label: str, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis between the powers of ten around some positive values."""
    low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
    high = max(high, low + 1)
    ticks = [(10.0**power, f"{10.0**power:,.10g}") for power in range(low, high + 1)]
    return Axis(label, 10.0**low, 10.0**high, "log", ticks=ticks)


def _file(table: Table) -> str:
    return f"{'-'.join(re.findall('[a-z]+', table.title.lower()))}.svg"


def _claim(claim: Claim, remark: str) -> Iterator[str]:
    for table in claim.tables:
        yield from _table(table)
    if remark:
        yield remark.strip() + "\n"
    yield _wrapped(f"`make bench ARGS='--only {claim.name}'` on {_machine(claim.machine)}.") + "\n"


def _wrapped(text: str) -> str:
    """Return the paragraphs of a text with at most 100 columns."""
    return "\n\n".join(
        textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)
        for paragraph in text.split("\n\n")
    )


def _table(table: Table) -> Iterator[str]:
    yield f"## {table.title}\n\n{_wrapped(table.about)}\n"
    if table.schedules:
        yield from lines(table.schedules)
    else:
        yield "| | Median | Range |\n| --- | ---: | ---: |"
        yield from map(_figure, table.figures)
    yield ""
    if table.curves:
        yield (
            f"![{table.title}: milliseconds by the number of"
            f" {table.sizes}](figures/{_file(table)})\n"
        )
    if table.targets:
        yield "| | Median | Range | Target | |\n| --- | ---: | ---: | ---: | --- |"
        for target in table.targets:
            reach = _range(target.low, target.high, target.unit)
            yield (
                f"| {target.name} | {amount(target.value, target.unit)} | {reach} |"
                f" {bound_text(target)} | {_emphasised(target)} |"
            )
        yield ""


def _figure(seen: Figure) -> str:
    return (
        f"| {seen.name} | {amount(seen.median, seen.unit)} |"
        f" {_range(min(seen.rounds), max(seen.rounds), seen.unit)} |"
    )


def bound_text(target: Target) -> str:
    """Return the target in words."""
    if target.bound is None:
        return "none"
    return f"{'at most' if target.at_most else 'at least'} {amount(target.bound, target.unit)}"


def verdict(target: Target) -> str:
    """Return whether the target was met, in a word; empty without a target."""
    if target.bound is None:
        return ""
    return "met" if target.is_met else "missed"


def _emphasised(target: Target) -> str:
    return verdict(target) if target.is_met else f"**{verdict(target)}**"


def _range(low: float, high: float, unit: str) -> str:
    return f"{_number(low, unit)} to {_number(high, unit)}"


def amount(value: float, unit: str) -> str:
    """Return a number with its unit, rounded for people."""
    return f"{_number(value, unit)}{'' if unit == 'x' else ' '}{unit}"


def _number(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _machine(machine: Machine) -> str:
    return (
        f"{machine.on}: {machine.cores} cores of {machine.processor}, {machine.memory_gib} GiB,"
        f" {machine.system}, Python {machine.python}, SQLite {machine.sqlite}, PostgreSQL"
        f" {machine.postgresql}; load {machine.busy} before the run"
    )
