"""What nobody waits for waits a moment for others, so that they go in one request."""

from __future__ import annotations

from pathlib import Path

from fairbank.slurm.agent.letters import Kind
from fairbank.slurm.agent.pool import Senders
from fairbank.slurm.agent.queue import CROWD
from fairbank.slurm.agent.silence import PartitionTerms
from tests.agent.bank import InProcessBank
from tests.agent.plugin import asks, ends
from tests.agent.world import World

GATHER = 2.0


def patient(folder: Path, bank: InProcessBank, ahead: int = 0) -> World:
    return World(
        folder,
        bank,
        PartitionTerms(patience=10, ahead=ahead),
        senders=Senders(1, 3, 1_000, gather=GATHER),
    )


def told(world: World) -> list[tuple[Kind, str]]:
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
    assert world.core.next_due() == world.now
    assert world.send()
    assert told(world) == [(Kind.COMPLETE, run(1)), (Kind.COMPLETE, run(2))]
    world.close()


def test_a_question_goes_at_once_and_takes_along_what_waits(
    tmp_path: Path, bank: InProcessBank
) -> None:
    world = patient(tmp_path, bank)
    world.say(ends(1, 60))
    assert not world.send()
    world.say(asks(2))
    assert world.send()
    assert told(world) == [(Kind.HOLD, run(2)), (Kind.COMPLETE, run(1))]
    world.close()


def test_a_crowd_waits_for_nobody(tmp_path: Path, bank: InProcessBank) -> None:
    world = patient(tmp_path, bank)
    for job in range(1, CROWD):
        world.say(ends(job, 60))
    assert not world.send()
    world.say(ends(CROWD, 60))
    assert world.send()
    assert len(told(world)) == CROWD
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
    assert told(world) == [(Kind.HOLD, run(2)), (Kind.COMPLETE, run(2))]
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
    world.pass_time(world.core.bank.retry_at - world.now)
    assert world.send()
    world.close()
