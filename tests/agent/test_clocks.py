"""slurmctld's clock is set while a run lasts: charged is the difference of two looks at it, as in accounting, and never less than 0."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairbank.agent.protocol.messages import EpilogEvent
from fairbank.agent.reports.report import OVERTIME_SECONDS, clock_warning
from fairbank.agent.reports.send_queue import FIRST_RETRY_SECONDS
from fairbank.bank.policy import Policy
from fairbank.bank.run import RunState
from fairbank.core.time import Instant
from tests.agent.bank import InProcessBank
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, BEGAN, HOUR, Plugin, asks, ends
from tests.agent.running_agent import RunningAgent
from tests.agent.scenarios import CREDIT, world_with
from tests.agent.world import World

BACK, FORWARD = HOUR // 2, 11 * HOUR


def ends_before_it_began() -> EpilogEvent:
    """As the plug-in tells it: its elapsed time is never below 0."""
    return msgspec.structs.replace(ends(1, -BACK), elapsed_seconds=0)


def ran_for(world: World, told: EpilogEvent) -> None:
    world.say(asks(1))
    world.settle()
    assert world.bank.sums() == (0, 60)
    world.say(told)
    world.settle()


# --- back ---


def test_run_that_ended_before_its_start_costs_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    ran_for(world, ends_before_it_began())
    assert world.bank.sums() == (0, 0)
    (run,) = world.bank.runs()
    assert (run.state, run.outcome, run.elapsed_seconds, run.ended) == (
        RunState.RELEASED,
        "COMPLETED",
        0,
        BEGAN - BACK,
    )
    assert world.outbox.content()[1] == []
    assert world.bank.is_sound()
    assert (
        f"ended {BACK} s before it began: slurmctld's clock was set back. It costs nothing"
        in caplog.text
    )
    assert "fairbank doctor --slurm" in caplog.text


def test_run_without_hold_that_ended_before_its_start_costs_nothing(world: World) -> None:
    world.say(ends_before_it_began())
    world.settle()
    assert world.bank.sums() == (0, 0)
    assert [run.charged for run in world.bank.runs()] == [0]


@pytest.mark.slow
def test_clock_set_back_with_agent_and_bank(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, 100 * SU)
    assert plugin.verdict(asks(1)).action == "run"
    plugin.settle(ends_before_it_began())
    agent.wait_until_empty()
    assert centre.sums(allocation) == (0, 0)
    assert centre.job(1)["state"] == "released"
    assert "slurmctld's clock was set back" in agent.said()


# --- forward ---


def test_run_beyond_its_limit_costs_its_elapsed_time_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By the bank's clock, which is right, its end is hours away."""
    bank = InProcessBank(CREDIT, Policy())
    world = world_with(tmp_path, bank)
    ran_for(world, ends(1, FORWARD))
    assert bank.sums() == (0, 60)
    assert (
        f"lasted {FORWARD} s with a limit of {HOUR} s: was slurmctld's clock set forward?"
        in caplog.text
    )
    assert "fairbank refund" in caplog.text
    bank.clock.at = Instant(BEGAN + FORWARD)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.settle()
    assert bank.sums() == (FORWARD // 60, 0)
    world.close()
    bank.close()


def test_run_beyond_its_limit_costs_at_most_the_credit(tmp_path: Path) -> None:
    bank = InProcessBank(90)
    world = world_with(tmp_path, bank)
    ran_for(world, ends(1, FORWARD))
    (run,) = bank.runs()
    assert (run.charged, run.written_off) == (90, FORWARD // 60 - 90)
    assert bank.sums() == (90, 0)
    assert bank.is_sound()
    world.close()
    bank.close()


# --- neither ---


def test_elapsed_beyond_start_and_end_is_left_to_reconciliation(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Set back while it was suspended. Reconciling charges it as accounting has it; until then its hold stays."""
    ran_for(world, ends(1, 600, elapsed_seconds=2 * HOUR))
    assert world.bank.sums() == (0, 60)
    assert world.outbox.content()[1] == []
    assert "elapsed is 7200 s, but start to end is only 600 s" in caplog.text


@pytest.mark.parametrize("elapsed", [0, HOUR, HOUR + OVERTIME_SECONDS])
def test_end_near_the_limit_gives_no_warning(elapsed: int) -> None:
    assert clock_warning(ends(1, elapsed)) is None


def test_run_without_limit_gives_no_warning() -> None:
    assert clock_warning(ends(1, FORWARD, limit_seconds=None)) is None
