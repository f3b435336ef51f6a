"""Jobs that the bank can hold nothing for, where the terms of their partition let them run: what they took is charged if it can be."""

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
from tests.agent.plugin import BEGAN, HOUR, asks, ends
from tests.agent.scenes import CREDIT, state_of, verdict, world_with
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
def test_what_the_bank_does_not_know_runs_and_nothing_is_charged(
    lenient: World,
    bank: InProcessBank,
    caplog: pytest.LogCaptureFixture,
    unknown: dict[str, Any],
    reasons: list[Reason],
) -> None:
    """A partition that is unknown at the end leaves a NO_HOLD among the refusals (tests/agent/test_journey.py looks at it there)."""
    lenient.say(asks(1, **unknown))
    lenient.settle()
    assert verdict(lenient) == "run"
    assert state_of(lenient, 1) is AgentRunState.WITHOUT_HOLD
    assert "runs without a hold, and its end is reported: " in caplog.text
    (told,) = lenient.engine.incidents.status(0)
    assert (told["kind"], told["count"]) == ("without hold", 1)
    assert told["text"].startswith(f"{asks(1).run}: ")
    lenient.say(ends(1, **unknown))
    lenient.settle()
    assert state_of(lenient, 1) is AgentRunState.ENDED
    assert "the bank has not charged it" in caplog.text
    assert (bank.sums(), bank.runs(), bank.refusals()) == ((0, 0), [], reasons)


def test_a_job_without_a_limit_runs_at_once_and_is_charged_what_it_took(
    lenient: World, bank: InProcessBank, caplog: pytest.LogCaptureFixture
) -> None:
    lenient.say(asks(1, limit_seconds=None))
    assert verdict(lenient) == "run"  # no bank was asked
    assert "has no time limit: it runs without a hold, and its end is reported" in caplog.text
    assert lenient.engine.counts["verdicts", "unbillable: run"] == 1
    lenient.settle()
    assert bank.sums() == (0, 0)
    lenient.say(ends(1, limit_seconds=None))
    lenient.settle()
    assert (bank.sums(), bank.refusals()) == ((60, 0), [])


def test_a_bank_that_takes_no_late_charges_charges_nothing(tmp_path: Path) -> None:
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=DAY, late_charges=False))
    world = world_with(tmp_path, bank, unbillable="run")
    world.say(asks(1, limit_seconds=None))
    world.say(ends(1, limit_seconds=None))
    world.settle()
    assert (bank.sums(), bank.runs()) == ((0, 0), [])
    world.close()
    bank.close()


def test_a_start_that_is_too_early_for_the_bank_runs_and_is_charged_when_its_end_counts(
    tmp_path: Path,
) -> None:
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=0))
    world = world_with(tmp_path, bank, unbillable="run")
    world.say(asks(1, start=NOW + 60))
    world.settle()
    assert verdict(world) == "run"
    assert bank.sums() == (0, 0)
    world.say(ends(1, start=NOW + 60))
    world.settle()
    bank.clock.at = Instant(BEGAN + HOUR)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.settle()
    assert bank.sums() == (60, 0)
    world.close()
    bank.close()


def test_refused_where_the_terms_say_so(world: World, bank: InProcessBank) -> None:
    """As usual. Nothing runs, so nothing is told."""
    world.say(asks(1, limit_seconds=None))
    world.settle()
    assert verdict(world) == "hold"
    assert world.engine.counts["verdicts", "unbillable"] == 1
    assert bank.sums() == (0, 0)
