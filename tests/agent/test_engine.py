"""Short scenarios of the engine in which the order of events matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.agent.metrics import AgentMetrics, status
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import ProbeResults
from fairbank.agent.reports.send_queue import FIRST_RETRY_SECONDS
from fairbank.bank.policy import Policy
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, Unavailable
from fairbank.core.time import Instant
from tests.agent.bank import InProcessBank
from tests.agent.plugin import HOUR, START, epilog_event, limit_event, prolog_request
from tests.agent.scenarios import CREDIT, verdict, world_with
from tests.agent.world import World


def test_granted_job_starts_before_the_outbox_is_written(world: World) -> None:
    world.deliver(prolog_request(1))
    world.send()
    world.finish_request()
    assert verdict(world) == "run"


def test_refusal_is_stored_before_it_is_sent(world: World) -> None:
    world.deliver(prolog_request(1, billing=prolog_request(1).billing * 1_000))
    world.send()
    world.finish_request()
    world.read_replies()
    assert world.verdicts == []
    world.write()
    assert verdict(world) == "hold"


def test_missing_right_drops_no_report(world: World) -> None:
    world.deliver(prolog_request(1))
    world.send()
    (batch,) = world.in_flight
    world.in_flight.clear()
    world.fail_request(
        batch, Forbidden("you may not report runs of cluster local", field="cluster")
    )
    assert not world.engine.flow.bank.is_up
    assert len(world.engine.flow.queue) == 1
    world.pass_time(1)
    world.run_until_idle()
    assert world.bank.sums() == (0, 60)


@pytest.mark.parametrize("error", [InvalidInput("no"), FairbankError("a bug of the bank")])
def test_dropped_report_delays_no_other(world: World, error: FairbankError) -> None:
    for job in range(1, 6):
        world.deliver(epilog_event(job, 60))
    for _ in range(200):
        world.pass_time(6)
        while world.send():
            pass
        for batch in list(world.in_flight):
            if any("/3@" in report.run for report in batch):
                world.in_flight.remove(batch)
                world.fail_request(batch, error)
            else:
                world.finish_request(world.in_flight.index(batch))
        world.write()
        if not len(world.engine.flow.queue):
            break
    assert len(world.engine.flow.queue) == 0
    assert world.bank.sums() == (4, 0)
    (incident,) = status(world.engine, ProbeResults(), world.now, 0)["incidents"]
    assert (incident["kind"], incident["count"]) == ("dropped report", 1)
    assert incident["text"] == f"complete of {epilog_event(3).run}: {error.message}"
    assert "fairbank reconcile --fix" in incident["remedy"]
    assert b'fairbank_agent_incidents_total{kind="dropped report"} 1.0' in AgentMetrics(
        world.engine, ProbeResults()
    ).page(world.now)


def test_limit_removed_is_acknowledged_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.deliver(limit_event(1, None))
    world.read_replies()
    assert world.unanswered == {}
    assert "has no time limit any more" in caplog.text


def test_early_end_is_sent_again_until_it_counts(tmp_path: Path) -> None:
    """Keep a report that is too early for the bank's clock in the outbox, without delaying
    others.
    """
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=0))
    world = world_with(tmp_path, bank)
    world.deliver(prolog_request(1))
    world.run_until_idle()
    world.deliver(epilog_event(1))
    world.run_until_idle()
    assert bank.sums() == (0, 60)
    assert len(world.outbox.content()[1]) == 1
    outbox = status(world.engine, ProbeResults(), world.now, 0)["outbox"]
    assert (outbox["reports"], outbox["retry_later"]) == (0, 1)
    assert b"fairbank_agent_reports_retry_later 1.0" in AgentMetrics(
        world.engine, ProbeResults()
    ).page(world.now)
    world.pass_time(FIRST_RETRY_SECONDS)
    world.run_until_idle()
    assert bank.sums() == (0, 60)
    bank.clock.at = Instant(START + HOUR)
    world.pass_time(FIRST_RETRY_SECONDS)
    assert not world.send()  # the pause has grown
    assert status(world.engine, ProbeResults(), world.now, 0)["outbox"]["retry_later"] == 1
    world.kill()
    world.run_until_idle()
    assert bank.sums() == (60, 0)
    assert world.outbox.content()[1] == []
    world.close()
    bank.close()


def questions_of(world: World, first: int, seconds: int) -> None:
    """Ask for one more job each second."""
    for job in range(first, first + seconds):
        world.deliver(prolog_request(job))
        world.send()
        world.write()
        world.read_replies()
        world.pass_time(1)


def test_no_question_waits_after_one_has_waited_in_vain_for_a_silent_bank(world: World) -> None:
    patience = int(world.terms.patience)
    questions_of(world, 1, patience)
    assert world.engine.flow.bank.is_up, "no request has failed yet"
    world.write()
    world.read_replies()
    assert len(world.verdicts) == patience, "the first has waited in vain, so all are decided"
    world.deliver(prolog_request(9))
    world.write()
    world.read_replies()
    assert len(world.verdicts) == patience + 1
    while world.in_flight:
        world.finish_request()
    world.deliver(prolog_request(10))
    world.write()
    world.read_replies()
    assert len(world.verdicts) == patience + 1, "a bank that answers is waited for again"


def test_question_in_an_outage_waits_only_for_the_rest_of_its_time(world: World) -> None:
    world.deliver(prolog_request(1))
    world.send()
    world.fail_request(world.in_flight.pop(), Unavailable("no connection"))
    world.pass_time(world.terms.patience - 1)
    world.deliver(prolog_request(2))
    world.pass_time(1)
    world.write()
    world.read_replies()
    assert [verdict.action for _, verdict in world.verdicts] == ["hold", "hold"]


def test_partition_that_waits_longer_waits_on_in_an_outage(world: World) -> None:
    terms = {"cpu": world.terms, "gpu": PartitionTerms(patience=60)}
    world.engine.terms_of = terms.__getitem__
    world.deliver(prolog_request(1, partition="gpu"))
    world.deliver(prolog_request(2))
    world.pass_time(world.terms.patience)
    world.write()
    world.read_replies()
    assert [request.partition for request, _ in world.verdicts] == ["cpu"]


def test_question_that_waits_in_vain_beside_answered_ones_is_no_outage(world: World) -> None:
    for job in (1, 2):
        world.deliver(prolog_request(job))
        world.send()
        world.pass_time(1)
    world.finish_request(1)
    world.pass_time(world.terms.patience)
    assert world.engine.flow.bank.outage_since is None
