"""Suspension of jobs: rights, states, time limit, hold and charge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import Conflict, Forbidden, Unavailable
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.due_times import SUSPENSION_SECONDS
from fairbank.wlm.core.effects import AgentMessage, ChangeLimit, CoreEffect, Send
from fairbank.wlm.core.jobs import WlmRun
from fairbank.wlm.protocol.messages import SuspendRun
from tests.wlm.core.world import ALICE, OPERATOR, World, named

LIMIT = 600


def suspend(world: World, number: int) -> None:
    assert world.request(ev.SuspendJob(named(number)), OPERATOR) is None


def resume(world: World, number: int) -> None:
    assert world.request(ev.ResumeJob(named(number)), OPERATOR) is None


def run_of(world: World, number: int) -> WlmRun:
    run = world.job(number).run
    assert run is not None
    return run


def to_agent(effects: list[CoreEffect]) -> list[AgentMessage]:
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return [message for message in sent if isinstance(message, AgentMessage)]


def test_only_operators_suspend_and_resume() -> None:
    world = World()
    number = world.run_one()
    assert isinstance(world.request(ev.SuspendJob(named(number)), ALICE), Forbidden)
    suspend(world, number)
    assert isinstance(world.request(ev.ResumeJob(named(number)), ALICE), Forbidden)
    assert world.state(number) == "SUSPENDED"


def test_job_in_another_state_is_refused() -> None:
    world = World()
    number = world.submit()
    assert isinstance(world.request(ev.SuspendJob(named(number)), OPERATOR), Conflict)
    running = world.run_one()
    assert isinstance(world.request(ev.ResumeJob(named(running)), OPERATOR), Conflict)
    for _ in range(2):
        suspend(world, running)  # again, it changes nothing
    assert isinstance(world.request(ev.SendSignal(named(running), 10), ALICE), Conflict)
    assert isinstance(world.step(running), Unavailable)  # srun waits until it goes on


def test_suspended_job_keeps_its_cores() -> None:
    world = World(nodes=1, cpus=4)
    first = world.run_one(cpus=4)
    suspend(world, first)
    second = world.submit(cpus=4)
    world.settle()
    assert world.state(second) == "PENDING"
    assert world.reason(second) == "Resources"


def test_limit_and_warning_stand_still() -> None:
    world = World(kill_wait=0)
    number = world.run_one(limit=LIMIT)
    world.advance(400)
    suspend(world, number)
    world.advance(100_000)
    assert world.state(number) == "SUSPENDED"
    resume(world, number)
    world.advance(LIMIT - 400 - 1)
    assert world.state(number) == "RUNNING"
    world.advance(1)
    assert world.state(number) == "TIMEOUT COMPLETING"
    assert run_of(world, number).elapsed == LIMIT


def test_nodes_get_the_time_that_is_left() -> None:
    world = World()
    number = world.run_one(limit=LIMIT)
    world.advance(100)
    suspend(world, number)
    world.advance(1_000)
    effects = world.event(ev.RequestMade(10_000, OPERATOR, ev.ResumeJob(named(number))))
    run = run_of(world, number)
    assert [effect.message for effect in effects if isinstance(effect, Send)] == [
        SuspendRun(run=run.run, suspended=False),
        ChangeLimit(run.run, LIMIT, world.now.mono - 100),
    ]


def test_limit_that_changes_meanwhile_counts_from_what_has_run() -> None:
    world = World()
    number = world.run_one(limit=LIMIT)
    world.advance(100)
    suspend(world, number)
    world.advance(1_000)
    body = ev.UpdateJob(jobs=named(number), limit=300)
    effects = world.event(ev.RequestMade(10_000, OPERATOR, body))
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    assert sent == [ChangeLimit(run_of(world, number).run, 200, None)]


def test_end_of_a_suspended_job_leaves_the_suspension_out() -> None:
    world = World(socket="agent")
    number = world.run_one(limit=LIMIT)
    world.advance(100)
    suspend(world, number)
    world.advance(1_000)
    world.request(ev.CancelJob(named(number)), ALICE)
    assert world.state(number) == "CANCELLED COMPLETING"
    world.clear(number)
    (record,) = world.accounting.values()
    assert record.run is not None
    assert (record.run.elapsed, record.run.paused_until(world.now)) == (100, 1_000)
    world.check_at_rest()


def test_script_that_ends_while_its_suspension_is_on_the_way_completes() -> None:
    world = World()
    number = world.run_one()
    suspend(world, number)
    world.end(number)
    assert world.state(number) == "COMPLETED"


def test_suspended_job_can_be_requeued() -> None:
    world = World(requeue_wait=0)
    number = world.run_one()
    suspend(world, number)
    world.request(ev.RequeueJob(named(number)), OPERATOR)
    world.clear(number)
    world.advance(1)
    world.settle()
    world.begin_all()
    assert world.state(number) == "RUNNING"
    assert run_of(world, number).paused == 0


def test_step_runs_as_long_as_its_job_during_it() -> None:
    world = World()
    number = world.run_one(cpus=4)
    suspend(world, number)
    world.advance(1_000)
    resume(world, number)
    step = world.step(number)
    world.advance(10)
    suspend(world, number)
    world.advance(500)
    resume(world, number)
    world.advance(20)
    world.end_step(step, step.nodes[0])
    ended = world.ended_steps[step.key]
    assert (ended.elapsed, ended.suspended) == (30, 500)


def test_hold_of_the_bank_moves_with_a_long_suspension() -> None:
    world = World(socket="agent")
    number = world.run_one(limit=LIMIT)
    effects = world.event(ev.RequestMade(10_000, OPERATOR, ev.SuspendJob(named(number))))
    assert to_agent(effects) == []  # nothing has moved yet
    suspended = run_of(world, number).suspended
    world.advance(SUSPENSION_SECONDS)
    run = run_of(world, number)
    assert (run.paused, run.paused_until(world.now)) == (SUSPENSION_SECONDS, SUSPENSION_SECONDS)
    assert suspended is not None
    assert run.suspended is not None
    assert run.suspended.wall == suspended.wall
    world.advance(10)
    effects = world.event(ev.RequestMade(10_001, OPERATOR, ev.ResumeJob(named(number))))
    (message,) = to_agent(effects)
    assert (message.kind, message.run.paused) == ("limit", SUSPENSION_SECONDS + 10)
    world.end(number)
    world.check_at_rest()


@pytest.mark.parametrize("has_bank", [False, True])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["suspend", "resume", "restart", "register", "wait"]),
            st.integers(0, 5_000),
        ),
        max_size=12,
    )
)
def test_run_time_limit_and_charge_leave_out_what_was_suspended(
    has_bank: bool, steps: list[tuple[str, int]]
) -> None:
    """However a run is interrupted, it runs for its limit, and that is what it is charged."""
    limit = 7_200
    world = World(socket="agent" if has_bank else "", return_to_service=2)
    number = world.run_one(limit=limit)
    ran, runs = 0, True
    for action, seconds in steps:
        match action:
            case "suspend" if runs:
                suspend(world, number)
                runs = False
            case "resume" if not runs:
                resume(world, number)
                runs = True
            case "restart":
                world.restart()
            case "register":
                world.event(world.nodes["n0"].registration())
        left = limit - ran
        if runs and seconds >= left:
            break
        world.advance(seconds)
        ran += seconds if runs else 0
        assert run_of(world, number).ran(world.now) == ran
    if not runs:
        resume(world, number)
    world.advance(limit - ran - 1)
    assert world.state(number) == "RUNNING"
    world.advance(1)
    assert world.state(number) == "TIMEOUT COMPLETING"
    world.clear(number)
    (record,) = world.accounting.values()
    assert record.run is not None
    assert record.run.elapsed == limit
    assert record.run.ended is not None
    assert record.run.started is not None
    assert record.run.ended.mono - record.run.started.mono == limit + record.run.paused
    world.check_at_rest()
