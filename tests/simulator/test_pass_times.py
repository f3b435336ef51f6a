"""Times of the passes, without a queue or a machine."""

from __future__ import annotations

import pytest

from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.snapshot import FOR_EVER
from fairbank.simulator.engine.pass_times import DuePass, PassTimes

PERIOD = 300


def due(times: PassTimes, now: int, *, event: bool = False, start: bool = False) -> list[DuePass]:
    """Make the passes that are due; `start`: each starts a job."""
    made = []
    for pass_ in times.due(now, has_event=event):
        made.append(pass_)
        times.record_pass(pass_, has_started=start)
    return made


def test_event_requests_a_main_pass_and_backfill_waits_for_its_interval() -> None:
    times = PassTimes(SchedulerParameters(bf_interval=30), PERIOD)
    assert due(times, 10, event=True) == [DuePass.MAIN]
    assert due(times, 20) == [], "nothing happened"
    assert times.next_due(20, waiting=1) == 30
    assert due(times, 30) == [DuePass.BACKFILL]
    assert times.next_due(30, waiting=1) == FOR_EVER, "a cycle without a start changed nothing"


def test_start_of_a_main_pass_requests_backfill() -> None:
    times = PassTimes(SchedulerParameters(bf_interval=30, sched_interval=60), PERIOD)
    assert due(times, 60, start=True) == [DuePass.FULL, DuePass.BACKFILL]
    assert due(times, 90) == [DuePass.BACKFILL], "the cycle at 60 started a job, too"
    assert due(times, 120) == [DuePass.FULL]


@pytest.mark.parametrize(
    ("waiting", "next_due"),
    [
        pytest.param(1, FOR_EVER, id="one job has no order"),
        pytest.param(2, 300, id="full passes before the next priorities start nothing"),
        pytest.param(101, 120, id="the event's pass did not reach the last job"),
    ],
)
def test_next_full_pass_follows_from_the_length_of_the_queue(waiting: int, next_due: int) -> None:
    parameters = SchedulerParameters(bf_interval=-1, sched_interval=60, default_queue_depth=100)
    times = PassTimes(parameters, PERIOD)
    assert due(times, 60, event=True) == [DuePass.FULL]
    assert due(times, 70, event=True) == [DuePass.MAIN]
    assert times.next_due(70, waiting) == next_due


def test_full_passes_that_were_left_out_count() -> None:
    times = PassTimes(SchedulerParameters(bf_interval=-1, default_queue_depth=100), PERIOD)
    assert due(times, 60, event=True) == [DuePass.FULL]
    assert times.next_due(60, waiting=101) == 300
    assert due(times, 230, event=True) == [DuePass.MAIN], "full passes were at 120 and 180"
    assert due(times, 240, event=True) == [DuePass.FULL]
