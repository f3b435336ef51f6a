"""Resized runs: the hold follows the change, and each piece is charged once by its own price."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.agent.protocol import EpilogEvent, LimitEvent
from fairbank.agent.run_memory import KnownRun
from fairbank.agent.run_states import AgentRunState
from fairbank.bank.run import RunRecord
from fairbank.cluster.job import UNKNOWN_CPUS, UNKNOWN_TRES, JobDetails
from tests.agent.plugin import HOUR, START, epilog_event, limit_event, prolog_request
from tests.agent.world import World

EIGHT, ONE = Fraction(8), Fraction(1)
HALF = HOUR // 2


def shrink(at: int = HALF) -> LimitEvent:
    return limit_event(1, HOUR, billing=ONE, resized=START + at)


def end(elapsed: int = HOUR, resized: int = HALF) -> EpilogEvent:
    return epilog_event(1, elapsed, billing=ONE, resized=START + resized)


def test_hold_follows_a_resize(world: World) -> None:
    world.deliver(prolog_request(1, billing=EIGHT))
    world.run_until_idle()
    assert world.bank.sums() == (0, 480)
    world.deliver(shrink())
    world.run_until_idle()
    assert world.bank.sums() == (0, 30 * 8 + 30)
    world.deliver(shrink())
    world.deliver(end())
    world.run_until_idle()
    assert world.bank.sums() == (30 * 8 + 30, 0)


def test_resize_just_before_the_end_changes_no_earlier_price(world: World) -> None:
    """The plug-in has not reported the change yet: the end has its time."""
    world.deliver(prolog_request(1, billing=EIGHT))
    world.run_until_idle()
    world.deliver(end(elapsed=HOUR, resized=HOUR - 60))
    world.run_until_idle()
    assert world.bank.sums() == (59 * 8 + 1, 0)


@pytest.mark.parametrize("reported", [True, False])
def test_pieces_survive_a_kill_of_the_agent(world: World, reported: bool) -> None:
    world.deliver(prolog_request(1, billing=EIGHT))
    world.run_until_idle()
    if reported:
        world.deliver(shrink())
        world.run_until_idle()
    world.kill()
    world.deliver(end())
    world.run_until_idle()
    assert world.bank.sums() == (30 * 8 + 30, 0)


def test_price_of_another_time_without_a_resize_is_no_piece(world: World) -> None:
    world.deliver(prolog_request(1, billing=EIGHT))
    world.run_until_idle()
    world.deliver(epilog_event(1, HOUR, billing=ONE))
    world.run_until_idle()
    assert world.bank.sums() == (60, 0)


def test_suspended_time_before_a_resize_is_not_charged(world: World) -> None:
    world.deliver(prolog_request(1, billing=EIGHT))
    world.run_until_idle()
    world.deliver(
        epilog_event(
            1,
            HALF,
            end=START + HOUR,
            billing=ONE,
            resized=START + HALF,
            suspended_seconds=HALF - 60,
        )
    )
    world.run_until_idle()
    assert world.bank.sums() == (8 + 29, 0)


def test_resize_at_the_same_price_changes_no_amount_and_leaves_no_hours(world: World) -> None:
    """The hours of the last size for the whole time would be wrong, so none are counted."""
    world.deliver(prolog_request(1, billing=EIGHT, tres="cpu=8,mem=64G"))
    world.run_until_idle()
    (before,) = world.bank.runs()
    assert details_of(before).cpus == 8
    smaller: dict[str, Any] = {"billing": EIGHT, "tres": "cpu=2,mem=64G", "resized": START + HALF}
    for _ in range(2):
        world.deliver(limit_event(1, HOUR, **smaller))
        world.run_until_idle()
    assert world.bank.runs() == [before], "the hold is right already, so there is no entry"
    world.deliver(epilog_event(1, **smaller))
    world.run_until_idle()
    assert world.bank.sums() == (480, 0)
    (after,) = world.bank.runs()
    assert (details_of(after).cpus, details_of(after).tres) == (UNKNOWN_CPUS, UNKNOWN_TRES)
    assert world.bank.is_sound()


def test_resized_run_of_a_lost_outbox_has_no_hours(world: World) -> None:
    """The billing before the change is unknown, so that at the end stands for it."""
    world.deliver(prolog_request(1, billing=EIGHT, tres="cpu=8"))
    world.run_until_idle()
    world.lose_outbox()
    world.deliver(epilog_event(1, billing=ONE, tres="cpu=1", resized=START + HALF))
    world.run_until_idle()
    assert world.bank.sums() == (60, 0)
    (run,) = world.bank.runs()
    assert details_of(run).cpus == UNKNOWN_CPUS


def details_of(run: RunRecord) -> JobDetails:
    assert run.reported.job_details is not None
    return run.reported.job_details


RESIZES = st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 64)), max_size=6)


@given(st.integers(1, 64), RESIZES)
def test_pieces_add_up_to_the_time_of_the_last_resize(
    first: int, resizes: list[tuple[int, int]]
) -> None:
    """Each second before it is in one piece, with the billing of that second."""
    known, at, minutes, billing = KnownRun(AgentRunState.HELD, billing=str(first)), 0, 0, first
    for seconds, size in resizes:
        minutes, at = minutes + seconds * billing, at + seconds
        message = limit_event(1, HOUR, billing=Fraction(size), resized=START + at)
        for _ in range(2):  # the plug-in may repeat it
            pieces = known.pieces_of(message)
            known = KnownRun(AgentRunState.HELD, billing=str(size), pieces=pieces)
        billing = size
    assert sum(piece.seconds for piece in known.pieces) == at
    assert sum(piece.seconds * int(piece.billing or 0) for piece in known.pieces) == minutes
