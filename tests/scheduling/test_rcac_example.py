"""Example of RCAC on main and backfill scheduling: a job of 8 nodes, 6 of them idle, 2 free in 3
hours. Jobs of less than 3 hours run on the 6, others wait. The explanations are in
tests/golden/why/nodes-*.txt.
"""

from __future__ import annotations

import pytest

from fairbank.core.errors import NotFound
from fairbank.report.columns import DisplayFormat
from fairbank.report.explanation import JobExplanation, lines
from fairbank.scheduling.explain.answer import EarlierStart, EarlierStartAdvice, StartRange
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.scheduling.explain.run_times import RunTimeHistory
from fairbank.scheduling.explain.start_range import SimulatedRuns
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene
from tests.support.golden import GOLDEN, kept

MINUTE = 60


def example() -> Scene:
    scene = (
        Scene(rack(8))
        .runs(1, "n[7-8]", 180, user="ann")
        .waits(2, 8, minutes=600, priority=9, user="bob", age=30)
    )
    return (
        scene.waits(3, 3, minutes=240, user="bob", age=20)
        .waits(4, 3, minutes=179, user="eve", age=10)
        .waits(5, 3, minutes=60, user="eve", age=5)
    )


def seen() -> RunTimeHistory[str]:
    """Return the history: Ann's jobs end early, Bob's jobs use their limit."""
    history: RunTimeHistory[str] = RunTimeHistory()
    for _ in range(10):
        history.add("ann", 50, 100)
        history.add("bob", 100, 100)
    return history


def test_jobs_of_less_than_three_hours_run_on_the_six_and_others_wait() -> None:
    output = example().both()
    assert output.starts == {4: "n[1-3]", 5: "n[4-6]"}
    assert output.planned == {2: (180, "n[1-8]"), 3: (780, "n[1-3]")}
    for number in (4, 5):
        with pytest.raises(NotFound, match="does not wait"):
            explain_on_nodes(
                example().snapshot, SchedulerParameters(), number, NOW, runs=SimulatedRuns(seen())
            )


@pytest.mark.parametrize("number", [2, 3])
def test_waiting_jobs_get_reason_and_start_time(number: int) -> None:
    explanation = explain_on_nodes(
        example().snapshot, SchedulerParameters(), number, NOW, runs=SimulatedRuns(seen())
    )
    job = next(job for job in example().pending if job.number == number)
    ahead = [str(job_ahead) for job_ahead in explanation.ahead]
    row = JobExplanation(
        job.name,
        {"user": job.user, "nodes": job.wanted.nodes},
        job.submitted,
        NOW,
        explanation,
        ahead,
    )
    output = "".join(f"{line}\n" for line in lines(row, DisplayFormat(), 80))
    assert output == kept(GOLDEN / "why" / f"nodes-{number}.txt", output)


def test_large_job_may_start_before_its_plan_unless_short_jobs_delay_it() -> None:
    """Ann's job has run for 10 of 190 minutes and uses half of its limit, so 85 are left. Eve's
    first job is expected to use its limit of 179 minutes, because she has no history.
    """
    snapshot = example().snapshot
    explanation = explain_on_nodes(
        snapshot, SchedulerParameters(), 2, NOW, runs=SimulatedRuns(seen())
    )
    assert explanation.expected == NOW + 180 * MINUTE
    assert explanation.likely is not None
    assert explanation.likely.earliest is not None
    assert explanation.likely.earliest >= NOW + 85 * MINUTE
    assert explanation.advice == EarlierStartAdvice(
        EarlierStart("-N 6 -n 6", NOW),
        ("--mem=1000M", "without --exclusive", "a shorter -t", "fewer nodes"),
    )


def test_other_would_start_now_with_a_minute_less_than_three_hours() -> None:
    explanation = explain_on_nodes(example().snapshot, SchedulerParameters(), 3, NOW)
    assert explanation.advice is not None
    assert explanation.advice.suggestion == EarlierStart("-t 02:59:00", NOW)
    assert explanation.likely is None


def test_without_short_jobs_the_range_is_when_the_nodes_come_free() -> None:
    scene = example()
    scene.pending = scene.pending[:2]
    history: RunTimeHistory[str] = RunTimeHistory()
    for ratio in range(1, 101):
        history.add("ann", ratio, 100)
    explanation = explain_on_nodes(
        scene.snapshot, SchedulerParameters(), 2, NOW, runs=SimulatedRuns(history)
    )
    assert explanation.likely is not None
    assert isinstance(explanation.likely, StartRange)
    earliest, latest = explanation.likely.earliest, explanation.likely.latest
    assert NOW < earliest < latest <= NOW + 180 * MINUTE  # type: ignore[operator]
