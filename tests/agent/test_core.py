"""Small scenes of the core: one question, one answer, in an order that matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.bank.policy import Policy
from fairbank.slurm.agent.faring import SETTLED_SECONDS
from fairbank.slurm.agent.judging import SILENCE, Came, Judgement
from fairbank.slurm.agent.later import EARLY_SECONDS
from fairbank.slurm.agent.letters import State
from fairbank.slurm.agent.metrics import Metrics, status
from fairbank.slurm.agent.silence import FRESH_SECONDS, PartitionTerms, Silence
from fairbank.values.time import Instant
from fairbank.values.trouble import Forbidden, Malformed, Trouble
from tests.agent.bank import InProcessBank
from tests.agent.plugin import BEGAN, HOUR, asks, ends, limits
from tests.agent.world import World

CREDIT = 100 * 60


@pytest.fixture
def bank() -> Iterator[InProcessBank]:
    bank = InProcessBank(CREDIT)
    yield bank
    bank.close()


def world_with(tmp_path: Path, bank: InProcessBank, **terms: object) -> World:
    return World(tmp_path, bank, PartitionTerms(**{"patience": 4, **terms}))  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path, bank: InProcessBank) -> Iterator[World]:
    world = world_with(tmp_path, bank)
    yield world
    world.close()


def state_of(world: World, job: int) -> State | None:
    known = world.core.memory.get(str(asks(job).run))
    return known.state if known else None


def verdict(world: World) -> str:
    world.listen()
    ((_, said),) = world.settled
    world.settled.clear()
    return said.say


def lose_a_request(world: World) -> None:
    assert world.send()
    world.arrive(reaches=False)


def test_a_granted_job_is_told_at_once_without_the_disk(world: World) -> None:
    world.say(asks(1))
    world.send()
    world.arrive()
    assert verdict(world) == "run"


def test_a_refusal_is_written_before_it_is_said(world: World) -> None:
    world.say(asks(1, billing=asks(1).billing * 1_000))
    world.send()
    world.arrive()
    world.listen()
    assert world.settled == []
    world.write()
    assert verdict(world) == "hold"


def test_a_question_that_was_put_off_is_asked_anew_when_the_bank_is_back(world: World) -> None:
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.write()
    assert state_of(world, 1) is State.PUT_OFF
    world.reconnect()  # the verdict was not heard
    world.pass_time(0)
    assert verdict(world) == "hold"
    world.say(ends(2, 60))
    world.send()
    world.arrive()  # so that the bank is known to be back
    world.say(asks(1))
    world.send()
    world.arrive()
    assert verdict(world) == "run"


def test_the_agent_hangs_up_once_some_time_after_the_last_was_put_off(world: World) -> None:
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.say(ends(1, 0, begun=False))
    world.send()
    world.arrive()
    assert world.core.bank.up
    assert not world.core.lost_touch(world.now + SETTLED_SECONDS / 2)
    assert world.core.lost_touch(world.now + SETTLED_SECONDS)
    assert not world.core.lost_touch(world.now + 10 * SETTLED_SECONDS)


def asked_again(world: World, *, by_another_agent: bool) -> tuple[str, str]:
    """What a slurmctld hears that was killed before it had saved that its job is back in the queue."""
    world.write()
    if by_another_agent:
        world.kill()  # and started anew
    world.reconnect()
    world.settled.clear()
    world.say(asks(1))
    world.settle()
    ((_, said),) = [each for each in world.settled if each[0].run == asks(1).run]
    return said.say, said.reason


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_a_run_that_was_put_off_does_not_begin_after_its_end(world: World, by_another_agent: bool) -> None:
    """It is released in the books: were it let run, nobody would pay for it."""
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.say(ends(1, 0, begun=False, state="REQUEUED"))
    world.settle()
    assert asked_again(world, by_another_agent=by_another_agent) == ("hold", SILENCE)
    world.say(asks(2))
    world.settle()
    if not by_another_agent:
        assert world.core.lost_touch(world.now + SETTLED_SECONDS), "the plug-in is to release it"
    assert world.bank.sums() == (0, 60)


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_a_refused_run_is_refused_after_its_end_too(world: World, by_another_agent: bool) -> None:
    world.say(asks(1, billing=asks(1).billing * 1_000))
    world.settle()
    world.say(ends(1, 0, begun=False, state="REQUEUED"))
    world.settle()
    assert asked_again(world, by_another_agent=by_another_agent) == ("hold", "Allocation_exhausted")
    assert world.bank.sums() == (0, 0)


def test_a_run_that_has_ended_is_let_run_when_slurmctld_has_forgotten_its_end(world: World) -> None:
    """It did run, and is charged; put back into the queue, it would run once more."""
    world.say(asks(1))
    world.settle()
    world.say(ends(1, 60))
    world.settle()
    assert asked_again(world, by_another_agent=False)[0] == "run"


def test_a_right_that_is_missing_drops_nothing(world: World) -> None:
    world.say(asks(1))
    world.send()
    (batch,) = world.under_way
    world.under_way.clear()
    world.trouble(batch, Forbidden("you may not report runs of cluster local", field="cluster"))
    assert not world.core.bank.up
    assert len(world.core.queue) == 1
    world.pass_time(1)
    world.settle()
    assert world.bank.sums() == (0, 60)


@pytest.mark.parametrize("trouble", [Malformed("no"), Trouble("a bug of the bank")])
def test_one_report_that_the_bank_cannot_take_spoils_no_other(world: World, trouble: Trouble) -> None:
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
        if not len(world.core.queue):
            break
    assert len(world.core.queue) == 0
    assert world.bank.sums() == (4, 0)


def test_a_limit_without_end_is_noted_and_warned_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.say(limits(1, None))
    world.listen()
    assert world.told == {}
    assert "has no time limit any more" in caplog.text


def test_an_open_partition_goes_on_when_the_bank_refuses_later(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, silence=Silence.OPEN)
    dear = asks(1).billing * 1_000
    world.say(asks(1, billing=dear))
    world.pass_time(5)
    assert verdict(world) == "run"
    world.settle()
    assert state_of(world, 1) is State.UNHELD
    world.say(ends(1, 60, billing=dear))
    world.settle()
    assert bank.sums() == (1_000, 0)
    world.close()


def test_a_restarted_agent_answers_what_was_decided_before(world: World) -> None:
    world.say(asks(1))
    world.send()
    world.arrive()
    world.write()
    world.kill()
    assert verdict(world) == "run"
    assert not world.send(), "the bank is not asked again"


def test_a_job_runs_ahead_of_the_bank_only_where_much_was_left_lately(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, ahead=10)
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


def test_a_job_that_ran_ahead_and_was_refused_is_charged_at_its_end(tmp_path: Path, bank: InProcessBank) -> None:
    world = world_with(tmp_path, bank, ahead=1)
    for job in (1, 2):
        world.say(asks(job, billing=asks(job).billing * 40))
        world.settle()
    world.core.credit.learn({"do": "", "cluster": "local", "account": "chem", "partition": "cpu"}, RICH, world.now)
    world.settled.clear()
    world.say(asks(3, billing=asks(3).billing * 40))
    assert verdict(world) == "run"
    world.settle()
    assert state_of(world, 3) is State.UNHELD
    world.say(ends(3, 60, billing=asks(3).billing * 40))
    world.settle()
    assert bank.sums() == (40, 2 * 40 * 60)
    world.close()


RICH = Judgement(Came.GRANTED, available=10**9, allocation=1)


def test_an_end_that_the_bank_finds_too_early_is_told_again_until_it_counts(tmp_path: Path) -> None:
    """A clock is wrong by an hour. The letter stays on the disk, also for the next agent, and holds up no other."""
    bank = InProcessBank(CREDIT, Policy(clock_tolerance_seconds=0))
    world = world_with(tmp_path, bank)
    world.say(asks(1))
    world.settle()
    world.say(ends(1))
    world.settle()
    assert bank.sums() == (0, 60)
    assert len(world.outbox.left()[1]) == 1
    outbox = status(world.core, world.now, 0)["outbox"]
    assert (outbox["letters"], outbox["later"]) == (0, 1)
    assert b"fairbank_agent_letters_later 1.0" in Metrics(world.core).page(world.now)
    world.pass_time(EARLY_SECONDS)
    world.settle()
    assert bank.sums() == (0, 60)
    bank.clock.at = Instant(BEGAN + HOUR)
    world.pass_time(EARLY_SECONDS)
    assert not world.send()  # it waits longer each time
    assert status(world.core, world.now, 0)["outbox"]["later"] == 1
    world.kill()
    world.settle()
    assert bank.sums() == (60, 0)
    assert world.outbox.left()[1] == []
    world.close()
    bank.close()
