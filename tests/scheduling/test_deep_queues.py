"""Work of passes by the number of waiting jobs: executed lines are counted, because times vary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from types import FrameType
from typing import Any

import pytest

from fairbank.scheduling.machines.processors import ProcessorProfile, TimeSlot
from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.engine.policies import POLICIES, SimulationPolicy
from fairbank.simulator.traces.workload import TraceJob
from tests.scheduling.random_workloads import job

SIZE = 1_000


def _unlike_jobs(count: int) -> list[TraceJob]:
    """Return jobs that arrive at once, of any width up to the machine and any limit up to a day."""
    rng = Random(3)
    return [
        job(
            number, 0, rng.randint(1, SIZE), limit := rng.randint(60, 86_400), rng.randint(1, limit)
        )
        for number in range(count)
    ]


def _lines(work: Callable[[], object]) -> int:
    """Return the number of lines that the function executes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _after_first_pass(policy: SimulationPolicy, waiting: int) -> Iterator[JobStarts]:
    clock = SimulationClock(SIZE, policy.scheduler(SIZE))
    starts = clock.run(_unlike_jobs(waiting))
    next(starts)
    return starts


@pytest.mark.parametrize(
    ("policy", "few", "many", "starts"), [("easy", 250, 2_000, None), ("slurm", 1_000, 4_000, 20)]
)
def test_pass_costs_what_it_examines_not_what_waits(
    policy: str, few: int, many: int, starts: int | None
) -> None:
    """A start costs less than twice as many lines if many times as many jobs wait."""

    def lines_per_start(waiting: int) -> float:
        following = islice(_after_first_pass(POLICIES[policy], waiting), starts)
        return _lines(lambda: list(following)) / (starts or waiting)

    assert lines_per_start(many) < 2 * lines_per_start(few)


def test_reservation_costs_little_more_behind_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conservative backfill examines more jobs if more wait, but none costs twice as many lines."""
    search, searched = ProcessorProfile.earliest_slot, 0

    def counting(profile: ProcessorProfile[TraceJob], job: TraceJob) -> TimeSlot:
        nonlocal searched
        searched += 1
        return search(profile, job)

    monkeypatch.setattr(ProcessorProfile, "earliest_slot", counting)

    def lines_per_job(waiting: int) -> float:
        nonlocal searched
        following = islice(_after_first_pass(POLICIES["conservative"], waiting), 20)
        searched = 0
        return _lines(lambda: list(following)) / searched

    assert lines_per_job(1_000) < 2 * lines_per_job(250)
