"""Time limits that change while a job runs: the hold grows and shrinks with them."""

from __future__ import annotations

from fairbank.bank.entry import REGISTRY, Kind
from fairbank.bank.refusals import Reason, refusal_of, sentence
from tests.bank.stories import play_story
from tests.bank.story_setups import PHYSICS


def test_hold_grows_and_shrinks_with_the_time_limit() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 60
        adjust 1 80 until 2000          -> ok remaining 20 amount 20
        run 1 held held 80
        adjust 1 80 until 2000          -> again remaining 20
        adjust 1 30 until 500           -> ok remaining 70
        used alice physics/cpu 30
        adjust 1 30 until 600           -> ok remaining 70 amount 0   # only its deadline moves
        adjust 1 131 until 600 -> INSUFFICIENT_CREDIT requested 101 available 70 shortfall 31
        kept physics/cpu 1
        run 1 held held 30
        charge 1 25                     -> ok remaining 75
        """
    )


def test_hold_that_shrinks_needs_no_credit() -> None:
    play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 100
        cap alice physics/cpu 10
        freeze physics/cpu
        adjust 1 50                     -> ok remaining 50
        adjust 1 50 until 700 -> ok remaining 50           # nor does one whose deadline moves
        adjust 1 51                     -> FROZEN
        thaw physics/cpu
        adjust 1 51                     -> CAPPED requested 1 available 0
        """
    )


def test_change_for_a_run_without_a_hold_is_refused() -> None:
    story = play_story(
        PHYSICS
        + """
        hold 1 alice physics/cpu 500    -> INSUFFICIENT_CREDIT    # the site let it run all the same
        adjust 1 alice physics/cpu 80 key a     -> NO_HOLD requested 80
        kept registry 1
        deposit physics/cpu 400
        hold 1 alice physics/cpu 500            -> ok
        adjust 1 alice physics/cpu 80 key a     -> ok                   # its key was left free
        """
    )
    kept = [
        refusal_of(entry)
        for entry in story.work.entries
        if entry.kind is Kind.REFUSAL and entry.allocation == REGISTRY
    ]
    assert [(no.reason, no.project, no.resource, no.owner) for no in kept] == [
        (Reason.NO_HOLD, 1, "cpu", 1001)
    ]
    assert (
        sentence(kept[0])
        == "this run has no hold: its time limit changed while it runs without a hold."
    )
