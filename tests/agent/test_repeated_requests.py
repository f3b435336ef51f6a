"""Repeated prolog requests: after a deferral, after the end of the run, from another slurmctld, to
another agent.
"""

from __future__ import annotations

import pytest

from fairbank.agent.outage_policy import DEFERRED_REASON
from fairbank.agent.reports.bank_status import STABLE_SECONDS
from fairbank.agent.run_states import AgentRunState
from tests.agent.plugin import HOUR, epilog_event, limit_event, prolog_request
from tests.agent.scenarios import lose_request, state_of, verdict
from tests.agent.world import World


def test_deferred_request_is_sent_again_when_the_bank_is_back(world: World) -> None:
    world.deliver(prolog_request(1))
    lose_request(world)
    world.pass_time(5)
    world.write()
    assert state_of(world, 1) is AgentRunState.DEFERRED
    world.reconnect()  # the verdict was lost
    world.pass_time(0)
    assert verdict(world) == "hold"
    world.deliver(epilog_event(2, 60))
    world.send()
    world.finish_request()  # the agent sees that the bank is back
    world.deliver(prolog_request(1))
    world.send()
    world.finish_request()
    assert verdict(world) == "run"


def test_reconnect_once_after_the_last_deferral(world: World) -> None:
    world.deliver(prolog_request(1))
    lose_request(world)
    world.pass_time(5)
    world.deliver(epilog_event(1, 0, begun=False))
    world.send()
    world.finish_request()
    assert world.engine.flow.bank.is_up
    assert not world.engine.take_reconnect(world.now + STABLE_SECONDS / 2)
    assert world.engine.take_reconnect(world.now + STABLE_SECONDS)
    assert not world.engine.take_reconnect(world.now + 10 * STABLE_SECONDS)


def test_no_reconnect_while_the_bank_does_not_answer(world: World) -> None:
    """Do not release deferred jobs for a bank that accepts requests but answers none: they would be
    deferred again and again.
    """
    world.deliver(prolog_request(1))
    world.send()
    world.pass_time(5)
    assert state_of(world, 1) is AgentRunState.DEFERRED
    assert world.engine.flow.bank.is_up
    world.pass_time(10 * STABLE_SECONDS)
    assert not world.engine.take_reconnect(world.now)
    world.finish_request()
    assert world.engine.take_reconnect(world.now)


def verdict_on_repeat(world: World, *, by_another_agent: bool) -> tuple[str, str]:
    """Return the verdict for a slurmctld that was killed before it saved that its job is back in
    the queue.
    """
    world.write()
    if by_another_agent:
        world.kill()  # and start another one
    world.reconnect()
    world.verdicts.clear()
    world.deliver(prolog_request(1))
    world.run_until_idle()
    ((_, verdict),) = [
        verdict for verdict in world.verdicts if verdict[0].run == prolog_request(1).run
    ]
    return verdict.action, verdict.reason


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_deferred_run_does_not_start_after_its_end(world: World, by_another_agent: bool) -> None:
    """Keep a released run from starting: its cost could not be charged."""
    world.deliver(prolog_request(1))
    lose_request(world)
    world.pass_time(5)
    world.deliver(epilog_event(1, 0, begun=False, state="REQUEUED"))
    world.run_until_idle()
    assert verdict_on_repeat(world, by_another_agent=by_another_agent) == ("hold", DEFERRED_REASON)
    world.deliver(prolog_request(2))
    world.run_until_idle()
    if not by_another_agent:
        assert world.engine.take_reconnect(world.now + STABLE_SECONDS), (
            "the plug-in is to release it"
        )
    assert world.bank.sums() == (0, 60)


def test_lost_outbox_defers_a_run_that_never_started(world: World) -> None:
    world.deliver(prolog_request(1))
    world.run_until_idle()
    world.deliver(epilog_event(1, 0, begun=False, state="REQUEUED"))
    world.run_until_idle()
    world.lose_outbox()
    assert verdict_on_repeat(world, by_another_agent=False) == ("hold", DEFERRED_REASON)
    assert state_of(world, 1) is AgentRunState.REFUSED
    assert world.engine.take_reconnect(world.now + STABLE_SECONDS), (
        "the plug-in is to release it, so that it comes as another run"
    )
    assert verdict_on_repeat(world, by_another_agent=True) == ("hold", DEFERRED_REASON)
    assert world.bank.sums() == (0, 0)


def test_lost_outbox_lets_a_charged_run_start(world: World) -> None:
    world.deliver(prolog_request(1))
    world.deliver(epilog_event(1))
    world.run_until_idle()
    world.lose_outbox()
    assert verdict_on_repeat(world, by_another_agent=False) == ("run", "")
    assert state_of(world, 1) is AgentRunState.ENDED
    assert world.bank.sums() == (60, 0)


def test_running_run_continues_though_released_as_never_started(world: World) -> None:
    world.deliver(epilog_event(1, 0, begun=False))
    world.run_until_idle()
    world.lose_outbox()
    world.deliver(limit_event(1, HOUR))
    world.run_until_idle()
    assert (world.unanswered, state_of(world, 1), world.bank.sums()) == (
        {},
        AgentRunState.WITHOUT_HOLD,
        (0, 0),
    )


@pytest.mark.parametrize("by_another_agent", [False, True])
def test_refused_run_is_refused_after_its_end(world: World, by_another_agent: bool) -> None:
    world.deliver(prolog_request(1, billing=prolog_request(1).billing * 1_000))
    world.run_until_idle()
    world.deliver(epilog_event(1, 0, begun=False, state="REQUEUED"))
    world.run_until_idle()
    assert verdict_on_repeat(world, by_another_agent=by_another_agent) == (
        "hold",
        "Allocation_exhausted",
    )
    assert world.bank.sums() == (0, 0)


def test_ended_run_may_start_when_slurmctld_lost_its_end(world: World) -> None:
    """Let a charged run start: in the queue again, it would run once more."""
    world.deliver(prolog_request(1))
    world.run_until_idle()
    world.deliver(epilog_event(1, 60))
    world.run_until_idle()
    assert verdict_on_repeat(world, by_another_agent=False)[0] == "run"


def test_restarted_agent_repeats_its_verdict(world: World) -> None:
    world.deliver(prolog_request(1))
    world.send()
    world.finish_request()
    world.write()
    world.kill()
    assert verdict(world) == "run"
    assert not world.send(), "the bank is not asked again"
