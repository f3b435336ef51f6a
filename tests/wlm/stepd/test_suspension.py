"""Suspension of a step: its processes are stopped, its time limit stands still, its end works."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from fairbank.wlm.stepd.processes import descendants, process_table
from fairbank.wlm.stepd.step import TIME_LIMIT
from tests.support.conditions import wait_until
from tests.wlm.stepd.conftest import StartStep
from tests.wlm.stepd.steps import StartedStep

COUNT = "while :; do echo tick >> ticks; sleep 0.01; done"


def suspend(step: StartedStep, *, suspended: bool = True) -> None:
    assert step.request({"kind": "suspend", "suspended": suspended}) == {}


def are_stopped(step: StartedStep) -> bool:
    """Return whether all living processes of the step are stopped, and there are some."""
    processes = descendants([step.daemon], process_table())
    living = [process for process in processes if not process.is_zombie]
    return bool(living) and all(process.is_stopped for process in living)


def wait_for_stop(step: StartedStep) -> None:
    wait_until(lambda: are_stopped(step), "a stop of all processes")


def seconds_left(step: StartedStep) -> float:
    left = step.request({"kind": "state"})["seconds_left"]
    assert isinstance(left, float)
    return left


def test_all_processes_are_stopped_and_go_on(start_step: StartStep) -> None:
    step = start_step(f"cd $(dirname $0)\n({COUNT}) & setsid sh -c '{COUNT}' & echo ready; wait")
    step.wait_for_lines(1)
    suspend(step)
    wait_for_stop(step)
    suspend(step)
    suspend(step, suspended=False)
    assert not are_stopped(step)
    ticks = step.directory / "ticks"
    size = ticks.stat().st_size
    wait_until(lambda: ticks.stat().st_size > size, "more ticks")
    step.end()
    assert step.wait().status == signal.SIGTERM


def test_process_that_is_continued_or_forked_meanwhile_is_stopped_again(
    start_step: StartStep,
) -> None:
    program = "import os, time\nwhile os.fork(): time.sleep(0.02)\ntime.sleep(600)"
    fork = f"{sys.executable} -c '{program}'"
    step = start_step(f"{fork} & echo ready; wait")
    step.wait_for_lines(1)
    suspend(step)
    wait_for_stop(step)
    for process in descendants([step.daemon], process_table()):
        os.kill(process.pid, signal.SIGCONT)
    wait_for_stop(step)
    step.end()
    step.wait()


def test_time_limit_stands_still(start_step: StartStep) -> None:
    step = start_step("exec sleep 600", seconds=300)
    suspend(step)
    wait_for_stop(step)
    left = seconds_left(step)
    assert seconds_left(step) == left
    step.end(TIME_LIMIT, seconds=100)  # a new limit
    assert seconds_left(step) == pytest.approx(100)
    suspend(step, suspended=False)
    wait_until(lambda: seconds_left(step) < 100, "the time to go on")


def test_limit_that_is_over_ends_the_step_when_it_goes_on(start_step: StartStep) -> None:
    step = start_step("exec sleep 600", seconds=300)
    suspend(step)
    step.end(TIME_LIMIT, seconds=0)
    wait_for_stop(step)
    suspend(step, suspended=False)
    end = step.wait()
    assert (end.status, end.reason) == (signal.SIGTERM, TIME_LIMIT)


def test_suspended_step_is_ended_by_a_request(start_step: StartStep) -> None:
    step = start_step("trap 'echo term; exit 3' TERM\necho ready\nwhile :; do sleep 0.02; done")
    step.wait_for_lines(1)
    suspend(step)
    wait_for_stop(step)
    step.end("CANCELLED")
    end = step.wait()
    assert (end.status, end.reason) == (3 << 8, "CANCELLED")
    assert "term" in step.lines()


def test_step_that_is_being_ended_is_not_suspended(start_step: StartStep) -> None:
    step = start_step("trap '' TERM\necho ready\nwhile :; do sleep 0.02; done")
    step.wait_for_lines(1)
    step.end("CANCELLED")
    suspend(step)
    assert step.wait().status == signal.SIGKILL


def test_killed_script_of_a_suspended_step_leaves_no_process(start_step: StartStep) -> None:
    step = start_step("sleep 600 & echo $!; wait")
    (child,) = step.wait_for_lines(1)
    suspend(step)
    wait_for_stop(step)
    script = next(
        process.pid
        for process in descendants([step.daemon], process_table())
        if process.pid != int(child)
    )
    os.kill(script, signal.SIGKILL)
    assert step.wait().status == signal.SIGKILL
    assert step.processes() == set()
