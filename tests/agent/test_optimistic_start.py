"""Jobs that start before the bank has answered, and their treatment when it refuses them."""

from __future__ import annotations

from pathlib import Path

from fairbank.agent.outage_policy import FRESH_SECONDS, OutagePolicy
from fairbank.agent.reports.report import ReportResult, ResultKind, hold_facts
from fairbank.agent.run_states import AgentRunState
from tests.agent.bank import InProcessBank
from tests.agent.plugin import epilog_event, prolog_request
from tests.agent.scenarios import state_of, verdict, world_with


def test_open_policy_keeps_a_run_that_is_refused_later(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, outage_policy=OutagePolicy.OPEN)
    dear = prolog_request(1).billing * 1_000
    world.deliver(prolog_request(1, billing=dear))
    world.pass_time(5)
    assert verdict(world) == "run"
    world.run_until_idle()
    assert state_of(world, 1) is AgentRunState.WITHOUT_HOLD
    world.deliver(epilog_event(1, 60, billing=dear))
    world.run_until_idle()
    assert bank.sums() == (1_000, 0)
    world.close()


def test_optimistic_start_needs_much_recent_credit(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, optimistic_start=10)
    world.deliver(prolog_request(1))
    world.read_replies()
    assert world.verdicts == [], "nothing is known yet"
    world.run_until_idle()
    world.verdicts.clear()
    world.deliver(prolog_request(2))
    assert verdict(world) == "run"
    assert bank.sums() == (0, 60), "before the bank has the report"
    world.deliver(prolog_request(3, billing=prolog_request(3).billing * 11))
    world.read_replies()
    assert world.verdicts == [], "too dear for what is left"
    world.run_until_idle()
    world.verdicts.clear()
    assert bank.sums() == (0, 13 * 60)
    world.pass_time(FRESH_SECONDS)
    world.deliver(prolog_request(4))
    world.read_replies()
    assert world.verdicts == [], "that was long ago"
    world.run_until_idle()
    world.close()


def test_refused_optimistic_start_is_charged_at_its_end(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = world_with(tmp_path, bank, optimistic_start=1)
    for job in (1, 2):
        world.deliver(prolog_request(job, billing=prolog_request(job).billing * 40))
        world.run_until_idle()
    world.engine.credit.learn(hold_facts(prolog_request(3)), RICH, world.now)
    world.verdicts.clear()
    world.deliver(prolog_request(3, billing=prolog_request(3).billing * 40))
    assert verdict(world) == "run"
    world.run_until_idle()
    assert state_of(world, 3) is AgentRunState.WITHOUT_HOLD
    world.deliver(epilog_event(3, 60, billing=prolog_request(3).billing * 40))
    world.run_until_idle()
    assert bank.sums() == (40, 2 * 40 * 60)
    world.close()


RICH = ReportResult(ResultKind.GRANTED, available=10**9, allocation=1)
