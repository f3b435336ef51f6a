"""Delay of reports that no job waits for, so that several go in one request."""

from __future__ import annotations

from pathlib import Path

from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.agent.reports.report import ReportKind
from fairbank.agent.reports.send_queue import FULL_BATCH
from tests.agent.bank import InProcessBank
from tests.agent.plugin import epilog_event, prolog_request
from tests.agent.world import World

GATHER = 2.0


def gathering_world(folder: Path, bank: InProcessBank, optimistic_start: int = 0) -> World:
    return World(
        folder,
        bank,
        PartitionTerms(patience=10, optimistic_start=optimistic_start),
        senders=SenderSettings(1, 3, 1_000, gather=GATHER),
    )


def reports_in_flight(world: World) -> list[tuple[ReportKind, str]]:
    """Return kind and run of the reports in the request in flight."""
    (batch,) = world.in_flight
    return [(report.kind, report.run) for report in batch]


def run(job: int) -> str:
    return str(prolog_request(job).run)


def test_end_waits_for_others_for_a_limited_time(tmp_path: Path, bank: InProcessBank) -> None:
    world = gathering_world(tmp_path, bank)
    world.deliver(prolog_request(1))
    world.run_until_idle()
    world.deliver(epilog_event(1, 60))
    world.pass_time(GATHER / 2)
    world.deliver(epilog_event(2, 60))
    assert not world.send()
    world.pass_time(GATHER / 2)
    assert world.engine.flow.next_due() == world.now
    assert world.send()
    assert reports_in_flight(world) == [
        (ReportKind.COMPLETE, run(1)),
        (ReportKind.COMPLETE, run(2)),
    ]
    world.close()


def test_prolog_request_goes_at_once_with_all_reports(tmp_path: Path, bank: InProcessBank) -> None:
    world = gathering_world(tmp_path, bank)
    world.deliver(epilog_event(1, 60))
    assert not world.send()
    world.deliver(prolog_request(2))
    assert world.send()
    assert reports_in_flight(world) == [(ReportKind.HOLD, run(2)), (ReportKind.COMPLETE, run(1))]
    world.close()


def test_full_batch_goes_at_once(tmp_path: Path, bank: InProcessBank) -> None:
    world = gathering_world(tmp_path, bank)
    for job in range(1, FULL_BATCH):
        world.deliver(epilog_event(job, 60))
    assert not world.send()
    world.deliver(epilog_event(FULL_BATCH, 60))
    assert world.send()
    assert len(reports_in_flight(world)) == FULL_BATCH
    world.close()


def test_hold_of_an_optimistic_start_can_go_with_its_end(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = gathering_world(tmp_path, bank, optimistic_start=10)
    world.deliver(prolog_request(1))
    world.run_until_idle()
    world.deliver(prolog_request(2))
    assert not world.send(), "it runs already"
    world.deliver(epilog_event(2, 60))
    world.pass_time(GATHER)
    assert world.send()
    assert reports_in_flight(world) == [(ReportKind.HOLD, run(2)), (ReportKind.COMPLETE, run(2))]
    world.run_until_idle()
    assert bank.sums() == (1, 60), "the second's minute is charged, the first's hour is held"
    world.close()


def test_retry_does_not_wait_for_other_reports(tmp_path: Path, bank: InProcessBank) -> None:
    world = gathering_world(tmp_path, bank)
    world.deliver(epilog_event(1, 60))
    world.pass_time(GATHER)
    assert world.send()
    world.finish_request(is_received=False)
    assert not world.send(), "the bank has just failed"
    world.pass_time(world.engine.flow.bank.retry_at - world.now)
    assert world.send()
    world.close()
