"""Jobs that the bank cannot hold credit for, where the partition's terms let them run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbank.agent.reports.send_queue import FIRST_RETRY_SECONDS
from fairbank.agent.run_states import AgentRunState
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason
from fairbank.core.time import DAY, Instant
from tests.agent.bank import NOW, InProcessBank
from tests.agent.plugin import HOUR, START, epilog_event, prolog_request
from tests.agent.scenarios import CREDIT, state_of, verdict, world_with
from tests.agent.world import World


@pytest.fixture
def lenient(tmp_path: Path, bank: InProcessBank) -> Iterator[World]:
    world = world_with(tmp_path, bank, unbillable="run")
    yield world
    world.close()


@pytest.mark.parametrize(
    ("unknown", "reasons"),
    [({"account": "nobody"}, [Reason.UNKNOWN_PROJECT] * 2), ({"partition": "moon"}, [])],
    ids=["account", "partition"],
)
def test_unknown_account_or_partition_runs_and_is_not_charged(
    lenient: World,
    bank: InProcessBank,
    caplog: pytest.LogCaptureFixture,
    unknown: dict[str, Any],
    reasons: list[Reason],
) -> None:
    """Charge nothing. An unknown partition at the end leaves a NO_HOLD refusal
    (tests/agent/test_job_cycle.py).
    """
    lenient.deliver(prolog_request(1, **unknown))
    lenient.run_until_idle()
    assert verdict(lenient) == "run"
    assert state_of(lenient, 1) is AgentRunState.WITHOUT_HOLD
    assert "runs without a hold, and its end is reported: " in caplog.text
    (incident,) = lenient.engine.incidents.status(0)
    assert (incident["kind"], incident["count"]) == ("without hold", 1)
    assert incident["text"].startswith(f"{prolog_request(1).run}: ")
    lenient.deliver(epilog_event(1, **unknown))
    lenient.run_until_idle()
    assert state_of(lenient, 1) is AgentRunState.ENDED
    assert "the bank has not charged it" in caplog.text
    assert (bank.sums(), bank.runs(), bank.refusals()) == ((0, 0), [], reasons)


def test_job_without_limit_runs_and_is_charged(
    lenient: World, bank: InProcessBank, caplog: pytest.LogCaptureFixture
) -> None:
    lenient.deliver(prolog_request(1, limit_seconds=None))
    assert verdict(lenient) == "run"  # without a request to the bank
    assert "has no time limit: it runs without a hold, and its end is reported" in caplog.text
    assert lenient.engine.counts["verdicts", "unbillable: run"] == 1
    lenient.run_until_idle()
    assert bank.sums() == (0, 0)
    lenient.deliver(epilog_event(1, limit_seconds=None))
    lenient.run_until_idle()
    assert (bank.sums(), bank.refusals()) == ((60, 0), [])


def test_bank_without_late_charges_charges_nothing(tmp_path: Path) -> None:
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=DAY, late_charges=False))
    world = world_with(tmp_path, bank, unbillable="run")
    world.deliver(prolog_request(1, limit_seconds=None))
    world.deliver(epilog_event(1, limit_seconds=None))
    world.run_until_idle()
    assert (bank.sums(), bank.runs()) == ((0, 0), [])
    world.close()
    bank.close()


def test_early_start_runs_and_is_charged_later(tmp_path: Path) -> None:
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=0))
    world = world_with(tmp_path, bank, unbillable="run")
    world.deliver(prolog_request(1, start=NOW + 60))
    world.run_until_idle()
    assert verdict(world) == "run"
    assert bank.sums() == (0, 0)
    world.deliver(epilog_event(1, start=NOW + 60))
    world.run_until_idle()
    bank.clock.at = Instant(START + HOUR)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.run_until_idle()
    assert bank.sums() == (60, 0)
    world.close()
    bank.close()


def test_unbillable_job_is_refused_by_default(world: World, bank: InProcessBank) -> None:
    """Refuse it; it does not run, so nothing is reported."""
    world.deliver(prolog_request(1, limit_seconds=None))
    world.run_until_idle()
    assert verdict(world) == "hold"
    assert world.engine.counts["verdicts", "unbillable"] == 1
    assert bank.sums() == (0, 0)
