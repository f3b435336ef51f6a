"""Comparisons and what-if questions over a source: no trace, policy or share is in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.simulator.comparison import simulate_each
from fairbank.simulator.engine.policies import POLICIES
from fairbank.simulator.engine.simulation import SimulationPlan
from fairbank.simulator.traces.fast_reader import Extent, FastTrace
from fairbank.simulator.traces.synthetic import SyntheticSite, SyntheticWorkload
from fairbank.simulator.traces.workload_edits import WorkloadEdits
from fairbank.simulator.what_if import MachineChange, Question, what_if

MONTH = SyntheticWorkload(SyntheticSite(jobs=200, days=2), seed=5)
FCFS, EASY = POLICIES["fcfs"], POLICIES["easy"]
QUESTION = Question(FCFS, EASY, WorkloadEdits(), MachineChange(processors=64))


@contextmanager
def pipe() -> Iterator[tuple[FastTrace, Extent]]:
    with MONTH.opened() as (trace, extent):
        yield trace, extent._replace(once=True)


def test_what_if_gives_the_results_that_comparisons_give() -> None:
    """The recorded workload under one policy, and the changed machine under the other."""
    answer = what_if(MONTH.opened, QUESTION, SimulationPlan())
    [recorded] = simulate_each(MONTH.opened, [FCFS], SimulationPlan())
    [changed] = simulate_each(MONTH.opened, [EASY], SimulationPlan(recorded.processors + 64))
    assert answer.plain.recorded.figures == recorded.figures
    assert answer.plain.changed.figures == changed.figures


def test_workload_that_can_be_read_once_is_refused_if_it_is_read_again() -> None:
    assert len(simulate_each(pipe, [EASY], SimulationPlan())) == 1
    with pytest.raises(InvalidInput, match="a pipe can be read only once"):
        simulate_each(pipe, [FCFS, EASY], SimulationPlan())
    with pytest.raises(InvalidInput, match="a pipe can be read only once"):
        what_if(pipe, QUESTION, SimulationPlan())
