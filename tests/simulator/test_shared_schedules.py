"""Schedules of real traces: the figures that their collection states for first come, first served
and EASY, and the table in docs/performance.md, which is computed again where this machine has the
traces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from benchmarks.results import RESULTS, load_claim
from benchmarks.schedule import DIGITS, Schedule
from benchmarks.traces import POLICIES, TRACES
from fairbank.service.simulation.trace_files import in_file
from fairbank.simulator.comparison import simulate_each
from fairbank.simulator.engine.policies import policy_named
from fairbank.simulator.engine.simulation import SimulationPlan
from tests.support.traces import KTH, LUBLIN, METACENTRUM, UBCCR

Written = Mapping[tuple[str, str], Schedule]

STATED = {
    (KTH, "fcfs"): ("389852.168", "7518.74", "0.69885"),
    (KTH, "easy"): ("6805.173", "90.9416", "0.69924"),
    (METACENTRUM, "fcfs"): ("1385.111", "9.5936", "0.52478"),
    (METACENTRUM, "easy"): ("1381.336", "9.0238", "0.52478"),
    (UBCCR, "fcfs"): ("329336.237", "1477.23", "0.82129"),
    (UBCCR, "easy"): ("254726.589", "1060.62", "0.82068"),
    (LUBLIN, "fcfs"): ("2388443.760", "66502.48", "0.65491"),
    (LUBLIN, "easy"): ("97155.995", "590.05", "0.93634"),
}

LONG = ("conservative", "slurm")
"""Of all but the lightest trace these take many seconds; `make bench ARGS='--only traces'` makes
them again.
"""
QUICK = [
    (trace, policy)
    for trace in TRACES
    for policy in POLICIES
    if policy not in LONG or trace == "MetaCentrum"
]


@pytest.fixture(scope="module")
def written() -> Written:
    """Return the table of the page, by trace and policy."""
    claim = load_claim("traces", RESULTS)
    assert claim is not None
    return {
        (schedule.trace, schedule.policy): schedule
        for table in claim.tables
        for schedule in table.schedules
    }


def assert_stated(figures: tuple[float, float, float], stated: tuple[str, str, str]) -> None:
    """Check mean wait, slowdown and utilisation, rounded to the stated decimals."""
    assert (
        tuple(
            f"{figure:.{len(text.partition('.')[2])}f}"
            for figure, text in zip(figures, stated, strict=True)
        )
        == stated
    )


def test_every_trace_has_its_line_under_every_policy_in_the_table(written: Written) -> None:
    assert set(written) == {(trace, policy) for trace in TRACES for policy in POLICIES}


@pytest.mark.parametrize(("stem", "policy"), STATED)
def test_table_has_the_stated_figures(written: Written, stem: str, policy: str) -> None:
    (trace,) = [name for name, known in TRACES.items() if known == stem]
    row = written[trace, policy]
    assert_stated((row.mean_wait, row.mean_slowdown, row.utilisation), STATED[stem, policy])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("trace", "policy"), QUICK)
def test_schedule_is_the_one_in_the_table(
    written: Written, recorded: Callable[[str], Path], trace: str, policy: str
) -> None:
    [outcome] = simulate_each(
        partial(in_file, recorded(TRACES[trace])), [policy_named(policy)], SimulationPlan()
    )
    assert outcome.figures is not None
    made = Schedule(
        trace=trace,
        policy=policy,
        jobs=outcome.figures.jobs,
        mean_wait=outcome.figures.mean_wait,
        mean_slowdown=outcome.figures.mean_slowdown,
        utilisation=outcome.figures.utilisation,
        took=written[trace, policy].took,
        starts=outcome.starts.fingerprint()[:DIGITS],
    )
    assert made == written[trace, policy]
