"""Small scenes of the core: one question, one answer, in an order that matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.agent.metrics import AgentMetrics, status
from fairbank.agent.reports.bank_probe import ProbeResults
from fairbank.agent.reports.send_queue import FIRST_RETRY_SECONDS
from fairbank.bank.policy import Policy
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput
from fairbank.core.time import Instant
from tests.agent.bank import InProcessBank
from tests.agent.plugin import BEGAN, HOUR, asks, ends, limits
from tests.agent.scenarios import CREDIT, verdict, world_with
from tests.agent.world import World


def test_granted_job_starts_before_the_outbox_is_written(world: World) -> None:
    world.say(asks(1))
    world.send()
    world.arrive()
    assert verdict(world) == "run"


def test_refusal_is_stored_before_it_is_sent(world: World) -> None:
    world.say(asks(1, billing=asks(1).billing * 1_000))
    world.send()
    world.arrive()
    world.listen()
    assert world.settled == []
    world.write()
    assert verdict(world) == "hold"


def test_missing_right_drops_no_report(world: World) -> None:
    world.say(asks(1))
    world.send()
    (batch,) = world.under_way
    world.under_way.clear()
    world.trouble(batch, Forbidden("you may not report runs of cluster local", field="cluster"))
    assert not world.engine.flow.bank.up
    assert len(world.engine.flow.queue) == 1
    world.pass_time(1)
    world.settle()
    assert world.bank.sums() == (0, 60)


@pytest.mark.parametrize("trouble", [InvalidInput("no"), FairbankError("a bug of the bank")])
def test_dropped_report_delays_no_other(world: World, trouble: FairbankError) -> None:
    for job in range(1, 6):
        world.say(ends(job, 60))
    for _ in range(200):
        world.pass_time(6)
        while world.send():
            pass
        for batch in list(world.under_way):
            if any("/3@" in letter.run for letter in batch):
                world.under_way.remove(batch)
                world.trouble(batch, trouble)
            else:
                world.arrive(world.under_way.index(batch))
        world.write()
        if not len(world.engine.flow.queue):
            break
    assert len(world.engine.flow.queue) == 0
    assert world.bank.sums() == (4, 0)
    (told,) = status(world.engine, ProbeResults(), world.now, 0)["incidents"]
    assert (told["kind"], told["count"]) == ("dropped report", 1)
    assert told["text"] == f"complete of {ends(3).run}: {trouble.message}"
    assert "fairbank reconcile --fix" in told["remedy"]
    assert b'fairbank_agent_incidents_total{kind="dropped report"} 1.0' in AgentMetrics(
        world.engine, ProbeResults()
    ).page(world.now)


def test_limit_removed_is_acknowledged_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.say(limits(1, None))
    world.listen()
    assert world.told == {}
    assert "has no time limit any more" in caplog.text


def test_early_end_is_sent_again_until_it_counts(tmp_path: Path) -> None:
    """A clock is wrong by an hour. The letter stays on the disk, also for the next agent, and holds up no other."""
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=0))
    world = world_with(tmp_path, bank)
    world.say(asks(1))
    world.settle()
    world.say(ends(1))
    world.settle()
    assert bank.sums() == (0, 60)
    assert len(world.outbox.content()[1]) == 1
    outbox = status(world.engine, ProbeResults(), world.now, 0)["outbox"]
    assert (outbox["reports"], outbox["retry_later"]) == (0, 1)
    assert b"fairbank_agent_reports_retry_later 1.0" in AgentMetrics(
        world.engine, ProbeResults()
    ).page(world.now)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.settle()
    assert bank.sums() == (0, 60)
    bank.clock.at = Instant(BEGAN + HOUR)
    world.pass_time(FIRST_RETRY_SECONDS)
    assert not world.send()  # it waits longer each time
    assert status(world.engine, ProbeResults(), world.now, 0)["outbox"]["retry_later"] == 1
    world.kill()
    world.settle()
    assert bank.sums() == (60, 0)
    assert world.outbox.content()[1] == []
    world.close()
    bank.close()
