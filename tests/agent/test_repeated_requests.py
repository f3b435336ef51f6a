"""A question that comes again: after silence, after the end of its run, from another slurmctld or to another agent."""

from __future__ import annotations

import pytest

from fairbank.agent.refusal_messages import BANK_DOWN
from fairbank.agent.reports.bank_status import STABLE_SECONDS
from fairbank.agent.run_states import AgentRunState
from tests.agent.plugin import HOUR, asks, ends, limits
from tests.agent.scenarios import lose_a_request, state_of, verdict
from tests.agent.world import World


def test_deferred_request_is_sent_again_when_the_bank_is_back(world: World) -> None:
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.write()
    assert state_of(world, 1) is AgentRunState.DEFERRED
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


def test_reconnect_once_after_the_last_deferral(world: World) -> None:
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.say(ends(1, 0, begun=False))
    world.send()
    world.arrive()
    assert world.engine.flow.bank.up
    assert not world.engine.take_reconnect(world.now + STABLE_SECONDS / 2)
    assert world.engine.take_reconnect(world.now + STABLE_SECONDS)
    assert not world.engine.take_reconnect(world.now + 10 * STABLE_SECONDS)


def test_no_reconnect_while_the_bank_does_not_answer(world: World) -> None:
    """Until the first request has failed it does not count as away either. Released, the job would be put off again, and so on."""
    world.say(asks(1))
    world.send()
    world.pass_time(5)
    assert state_of(world, 1) is AgentRunState.DEFERRED
    assert world.engine.flow.bank.up
    world.pass_time(10 * STABLE_SECONDS)
    assert not world.engine.take_reconnect(world.now)
    world.arrive()
    assert world.engine.take_reconnect(world.now)


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
    return said.action, said.reason


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_deferred_run_does_not_start_after_its_end(world: World, by_another_agent: bool) -> None:
    """It is released in the books: were it let run, nobody would pay for it."""
    world.say(asks(1))
    lose_a_request(world)
    world.pass_time(5)
    world.say(ends(1, 0, begun=False, state="REQUEUED"))
    world.settle()
    assert asked_again(world, by_another_agent=by_another_agent) == ("hold", BANK_DOWN)
    world.say(asks(2))
    world.settle()
    if not by_another_agent:
        assert world.engine.take_reconnect(world.now + STABLE_SECONDS), (
            "the plug-in is to release it"
        )
    assert world.bank.sums() == (0, 60)


def test_lost_outbox_defers_a_run_that_never_started(world: World) -> None:
    world.say(asks(1))
    world.settle()
    world.say(ends(1, 0, begun=False, state="REQUEUED"))
    world.settle()
    world.lose_memory()
    assert asked_again(world, by_another_agent=False) == ("hold", BANK_DOWN)
    assert state_of(world, 1) is AgentRunState.REFUSED
    assert world.engine.take_reconnect(world.now + STABLE_SECONDS), (
        "the plug-in is to release it, so that it comes as another run"
    )
    assert asked_again(world, by_another_agent=True) == ("hold", BANK_DOWN)
    assert world.bank.sums() == (0, 0)


def test_lost_outbox_lets_a_charged_run_start(world: World) -> None:
    world.say(asks(1))
    world.say(ends(1))
    world.settle()
    world.lose_memory()
    assert asked_again(world, by_another_agent=False) == ("run", "")
    assert state_of(world, 1) is AgentRunState.ENDED
    assert world.bank.sums() == (60, 0)


def test_running_run_continues_though_released_as_never_started(world: World) -> None:
    world.say(ends(1, 0, begun=False))
    world.settle()
    world.lose_memory()
    world.say(limits(1, HOUR))
    world.settle()
    assert (world.told, state_of(world, 1), world.bank.sums()) == (
        {},
        AgentRunState.WITHOUT_HOLD,
        (0, 0),
    )


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_refused_run_is_refused_after_its_end(world: World, by_another_agent: bool) -> None:
    world.say(asks(1, billing=asks(1).billing * 1_000))
    world.settle()
    world.say(ends(1, 0, begun=False, state="REQUEUED"))
    world.settle()
    assert asked_again(world, by_another_agent=by_another_agent) == ("hold", "Allocation_exhausted")
    assert world.bank.sums() == (0, 0)


def test_ended_run_may_start_when_slurmctld_lost_its_end(world: World) -> None:
    """It did run, and is charged; put back into the queue, it would run once more."""
    world.say(asks(1))
    world.settle()
    world.say(ends(1, 60))
    world.settle()
    assert asked_again(world, by_another_agent=False)[0] == "run"


def test_restarted_agent_repeats_its_verdict(world: World) -> None:
    world.say(asks(1))
    world.send()
    world.arrive()
    world.write()
    world.kill()
    assert verdict(world) == "run"
    assert not world.send(), "the bank is not asked again"
