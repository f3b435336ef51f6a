"""Jobs that run before the bank has said so, and what becomes of them when it says no."""

from __future__ import annotations

from pathlib import Path

from fairbank.agent.outage_policy import FRESH_SECONDS, OutagePolicy
from fairbank.agent.reports.results import ReportResult, ResultKind
from fairbank.agent.run_states import AgentRunState
from tests.agent.bank import InProcessBank
from tests.agent.plugin import asks, ends
from tests.agent.scenarios import state_of, verdict, world_with


def test_open_policy_keeps_a_run_that_is_refused_later(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, outage_policy=OutagePolicy.OPEN)
    dear = asks(1).billing * 1_000
    world.say(asks(1, billing=dear))
    world.pass_time(5)
    assert verdict(world) == "run"
    world.settle()
    assert state_of(world, 1) is AgentRunState.WITHOUT_HOLD
    world.say(ends(1, 60, billing=dear))
    world.settle()
    assert bank.sums() == (1_000, 0)
    world.close()


def test_optimistic_start_needs_much_recent_credit(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, optimistic_start=10)
    world.say(asks(1))
    world.listen()
    assert world.settled == [], "nothing is known yet"
    world.settle()
    world.settled.clear()
    world.say(asks(2))
    assert verdict(world) == "run"
    assert bank.sums() == (0, 60), "before the bank has heard of it"
    world.say(asks(3, billing=asks(3).billing * 11))
    world.listen()
    assert world.settled == [], "too dear for what is left"
    world.settle()
    world.settled.clear()
    assert bank.sums() == (0, 13 * 60)
    world.pass_time(FRESH_SECONDS)
    world.say(asks(4))
    world.listen()
    assert world.settled == [], "that was long ago"
    world.settle()
    world.close()


def test_refused_optimistic_start_is_charged_at_its_end(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = world_with(tmp_path, bank, optimistic_start=1)
    for job in (1, 2):
        world.say(asks(job, billing=asks(job).billing * 40))
        world.settle()
    world.engine.credit.learn(
        {"do": "", "cluster": "local", "account": "chem", "partition": "cpu"}, RICH, world.now
    )
    world.settled.clear()
    world.say(asks(3, billing=asks(3).billing * 40))
    assert verdict(world) == "run"
    world.settle()
    assert state_of(world, 3) is AgentRunState.WITHOUT_HOLD
    world.say(ends(3, 60, billing=asks(3).billing * 40))
    world.settle()
    assert bank.sums() == (40, 2 * 40 * 60)
    world.close()


RICH = ReportResult(ResultKind.GRANTED, available=10**9, allocation=1)
