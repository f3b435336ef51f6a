"""Shared credit of parents: it is used after a project's own, and a hold is in one allocation."""

from __future__ import annotations

from tests.bank.stories import play_story

FAMILY = """
    project college
    project physics under college
    project optics under physics
    open college/cpu 0..1000 with 100 shared yes
    open physics/cpu 0..1000 with 50
    open optics/cpu 0..1000 with 10
"""


def test_own_credit_is_used_before_shared_credit() -> None:
    play_story(
        FAMILY
        + """
        hold 1 alice optics/cpu 8       -> ok from optics/cpu
        hold 2 alice optics/cpu 8       -> ok from college/cpu         # physics does not share
        hold 3 alice optics/cpu 2       -> ok from optics/cpu remaining 0
        amend physics/cpu shared yes
        hold 4 alice optics/cpu 8       -> ok from physics/cpu         # the nearest parent first
        hold 5 alice optics/cpu 93 -> INSUFFICIENT_CREDIT requested 93 available 0 from optics/cpu
        hold 6 bob college/cpu 8        -> ok from college/cpu
        charge 2 5                      -> ok from college/cpu remaining 87
        # late: the first that can pay all
        charge 8 bob optics/cpu 60 -> ok from college/cpu remaining 27
        charge 9 bob optics/cpu 95      -> ok from optics/cpu remaining 0 written_off 95
        amend college/cpu shared no
        adjust 4 20                     -> ok from physics/cpu
        hold 7 alice optics/cpu 45      -> INSUFFICIENT_CREDIT
        """
    )


def test_hold_is_never_split_over_two_allocations() -> None:
    play_story(
        FAMILY + "amend physics/cpu shared yes\n"
        "hold 1 alice optics/cpu 120 -> INSUFFICIENT_CREDIT available"
        " 10 shortfall 110 from optics/cpu"
    )


def test_project_without_credit_of_its_own_draws_on_its_parents() -> None:
    play_story("""
        project college
        project physics under college
        open college/cpu 0..1000 with 100 shared yes
        cap alice college/cpu 10
        hold 1 alice physics/cpu 11     -> CAPPED available 10 from college/cpu
        hold 1 bob physics/cpu 11       -> ok from college/cpu
        charge 2 bob physics/cpu 20     -> ok from college/cpu
        """)


def test_parents_do_not_draw_on_their_children() -> None:
    play_story(
        FAMILY + "amend optics/cpu shared yes\n"
        "hold 1 alice physics/cpu 60 -> ok from college/cpu\n remaining"
        " optics/cpu 10"
    )
