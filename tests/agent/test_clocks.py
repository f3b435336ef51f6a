"""Runs during which slurmctld's clock is set: the charge is the difference of its readings, as in
accounting, and at least 0.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairbank.agent.protocol import EpilogEvent
from fairbank.agent.reports.report import OVERTIME_SECONDS, clock_warning
from fairbank.agent.reports.send_queue import FIRST_RETRY_SECONDS
from fairbank.bank.policy import Policy
from fairbank.bank.run import RunEnd, RunState
from fairbank.core.time import Instant
from tests.agent.bank import InProcessBank
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, HOUR, START, Plugin, epilog_event, prolog_request
from tests.agent.running_agent import RunningAgent
from tests.agent.scenarios import CREDIT, world_with
from tests.agent.world import World

BACK, FORWARD = HOUR // 2, 11 * HOUR


def early_epilog() -> EpilogEvent:
    """Return the end of a run before its start. The plug-in reports no negative elapsed time."""
    return msgspec.structs.replace(epilog_event(1, -BACK), elapsed_seconds=0)


def finish_run(world: World, epilog: EpilogEvent) -> None:
    world.deliver(prolog_request(1))
    world.run_until_idle()
    assert world.bank.sums() == (0, 60)
    world.deliver(epilog)
    world.run_until_idle()


# --- back ---


def test_run_that_ended_before_its_start_costs_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    finish_run(world, early_epilog())
    assert world.bank.sums() == (0, 0)
    (run,) = world.bank.runs()
    assert (run.state, run.end) == (
        RunState.RELEASED,
        RunEnd("COMPLETED", 0, Instant(START - BACK)),
    )
    assert world.outbox.content()[1] == []
    assert world.bank.is_sound()
    assert (
        f"ended {BACK} s before it began: slurmctld's clock was set back. It costs nothing"
        in caplog.text
    )
    assert "fairbank doctor --slurm" in caplog.text


def test_run_measured_on_another_clock_costs_its_seconds(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    finish_run(world, msgspec.structs.replace(early_epilog(), elapsed_seconds=120))
    assert world.bank.sums() == (2, 0)
    assert "It costs its 120 s, as in accounting" in caplog.text


def test_run_without_hold_that_ended_before_its_start_costs_nothing(world: World) -> None:
    world.deliver(early_epilog())
    world.run_until_idle()
    assert world.bank.sums() == (0, 0)
    assert [run.charged for run in world.bank.runs()] == [0]


@pytest.mark.slow
def test_clock_set_back_with_agent_and_bank(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, 100 * SU)
    assert plugin.verdict(prolog_request(1)).action == "run"
    plugin.exchange(early_epilog())
    agent.wait_until_empty()
    assert site.sums(allocation) == (0, 0)
    assert site.job(1)["state"] == "released"
    assert "slurmctld's clock was set back" in agent.log_text()


# --- forward ---


def test_run_beyond_its_limit_costs_its_elapsed_time_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Charge the end when the bank's clock has reached it."""
    bank = InProcessBank(CREDIT, Policy())
    world = world_with(tmp_path, bank)
    finish_run(world, epilog_event(1, FORWARD))
    assert bank.sums() == (0, 60)
    assert (
        f"lasted {FORWARD} s with a limit of {HOUR} s: was slurmctld's clock set forward?"
        in caplog.text
    )
    assert "fairbank refund" in caplog.text
    bank.clock.at = Instant(START + FORWARD)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.run_until_idle()
    assert bank.sums() == (FORWARD // 60, 0)
    world.close()
    bank.close()


def test_run_beyond_its_limit_costs_at_most_the_credit(tmp_path: Path) -> None:
    bank = InProcessBank(90)
    world = world_with(tmp_path, bank)
    finish_run(world, epilog_event(1, FORWARD))
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
    """Keep the hold of a run whose clock was set back while it was suspended, until reconciliation
    charges it.
    """
    finish_run(world, epilog_event(1, 600, elapsed_seconds=2 * HOUR))
    assert world.bank.sums() == (0, 60)
    assert world.outbox.content()[1] == []
    assert "elapsed is 7200 s, but start to end is only 600 s" in caplog.text


@pytest.mark.parametrize("elapsed", [0, HOUR, HOUR + OVERTIME_SECONDS])
def test_end_near_the_limit_gives_no_warning(elapsed: int) -> None:
    assert clock_warning(epilog_event(1, elapsed)) is None


def test_run_without_limit_gives_no_warning() -> None:
    assert clock_warning(epilog_event(1, FORWARD, limit_seconds=None)) is None
