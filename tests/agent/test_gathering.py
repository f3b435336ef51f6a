"""What nobody waits for waits a moment for others, so that they go in one request."""

from __future__ import annotations

from pathlib import Path

from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.agent.reports.report import ReportKind
from fairbank.agent.reports.send_queue import FULL_BATCH
from tests.agent.bank import InProcessBank
from tests.agent.plugin import asks, ends
from tests.agent.world import World

GATHER = 2.0


def patient(folder: Path, bank: InProcessBank, ahead: int = 0) -> World:
    return World(
        folder,
        bank,
        PartitionTerms(patience=10, optimistic_start=ahead),
        senders=SenderSettings(1, 3, 1_000, gather=GATHER),
    )


def told(world: World) -> list[tuple[ReportKind, str]]:
    """What the request under way tells."""
    (batch,) = world.under_way
    return [(each.kind, each.run) for each in batch]


def run(job: int) -> str:
    return str(asks(job).run)


def test_an_end_waits_for_others_but_not_for_long(tmp_path: Path, bank: InProcessBank) -> None:
    world = patient(tmp_path, bank)
    world.say(asks(1))
    world.settle()
    world.say(ends(1, 60))
    world.pass_time(GATHER / 2)
    world.say(ends(2, 60))
    assert not world.send()
    world.pass_time(GATHER / 2)
    assert world.engine.flow.next_due() == world.now
    assert world.send()
    assert told(world) == [(ReportKind.COMPLETE, run(1)), (ReportKind.COMPLETE, run(2))]
    world.close()


def test_a_question_goes_at_once_and_takes_along_what_waits(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = patient(tmp_path, bank)
    world.say(ends(1, 60))
    assert not world.send()
    world.say(asks(2))
    assert world.send()
    assert told(world) == [(ReportKind.HOLD, run(2)), (ReportKind.COMPLETE, run(1))]
    world.close()


def test_a_crowd_waits_for_nobody(tmp_path: Path, bank: InProcessBank) -> None:
    world = patient(tmp_path, bank)
    for job in range(1, FULL_BATCH):
        world.say(ends(job, 60))
    assert not world.send()
    world.say(ends(FULL_BATCH, 60))
    assert world.send()
    assert len(told(world)) == FULL_BATCH
    world.close()


def test_the_hold_of_a_job_that_ran_ahead_may_go_with_its_end(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = patient(tmp_path, bank, ahead=10)
    world.say(asks(1))
    world.settle()
    world.say(asks(2))
    assert not world.send(), "it runs already"
    world.say(ends(2, 60))
    world.pass_time(GATHER)
    assert world.send()
    assert told(world) == [(ReportKind.HOLD, run(2)), (ReportKind.COMPLETE, run(2))]
    world.settle()
    assert bank.sums() == (1, 60), "the second's minute is charged, the first's hour is held"
    world.close()


def test_what_did_not_reach_the_bank_is_told_again_without_waiting_for_others(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = patient(tmp_path, bank)
    world.say(ends(1, 60))
    world.pass_time(GATHER)
    assert world.send()
    world.arrive(reaches=False)
    assert not world.send(), "the bank has just failed"
    world.pass_time(world.engine.flow.bank.retry_at - world.now)
    assert world.send()
    world.close()
