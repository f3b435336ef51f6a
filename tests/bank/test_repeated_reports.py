"""Repeated reports without a key: they get their first answer; a contradiction is refused."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.policy import Policy
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Done, apply
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.errors import Corrupt
from fairbank.core.time import Instant
from tests.bank.stories import StoryRunner, play_story

WORLD = """
    project college
    project physics under college
    project optics under college
    open college/cpu 0..1000 with 50 shared yes
    open physics/cpu 0..1000 with 100
    hold 9 bob physics/cpu 10
"""

# What was done, and the report that comes again after it.
LIVES = {
    "a hold": ("", "hold 1 alice physics/cpu 60"),
    "an adjust": ("hold 1 alice physics/cpu 60", "adjust 1 70"),
    "an adjust of its deadline": ("hold 1 alice physics/cpu 60", "adjust 1 60 until 2000"),
    "the second adjust": ("hold 1 alice physics/cpu 60\n adjust 1 70", "adjust 1 20"),
    "a charge": ("hold 1 alice physics/cpu 60", "charge 1 45"),
    "a charge of an adjusted run": ("hold 1 alice physics/cpu 60\n adjust 1 70", "charge 1 45"),
    "a charge that was written off": ("hold 1 alice physics/cpu 60", "charge 1 500"),
    "a charge after a lapse": ("hold 1 alice physics/cpu 60 until 0\n lapse 1", "charge 1 45"),
    "a release": ("hold 1 alice physics/cpu 60", "release 1"),
    "a release after a lapse": ("hold 1 alice physics/cpu 60 until 0\n lapse 1", "release 1"),
    "a charge without a hold": ("", "charge 1 alice physics/cpu 45"),
    "a release without a hold": ("", "release 1 alice physics/cpu"),
}


@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("meanwhile", ["", "deposit physics/cpu 5\n charge 9 7"])
def test_repeated_report_gets_its_first_answer(life: str, meanwhile: str) -> None:
    before, report = LIVES[life]
    story = play_story(f"{WORLD}\n {before}\n {report}")
    first = story.outcome
    assert isinstance(first, Done)
    assert first.entry == story.work.entries[-1].id
    _play(story, meanwhile)
    entries = list(story.work.entries)
    story.play(f"{report} -> again")
    assert story.outcome == msgspec.structs.replace(first, again=True)
    assert story.work.entries == entries


@pytest.mark.parametrize(("key", "answer", "held"), [("", "ok", 20), (" key a", "again", 70)])
def test_repeated_older_change_counts_again_without_key(key: str, answer: str, held: int) -> None:
    """Only the last change of a run is recognised by the run (repeated-requests.md)."""
    play_story(f"""{WORLD}
        hold 1 alice physics/cpu 60
        adjust 1 20{key}
        adjust 1 70
        adjust 1 20{key} -> {answer}
        held physics/cpu {held + 10}
    """)


def _play(story: StoryRunner, lines: str) -> None:
    for line in filter(None, lines.split("\n")):
        story.play(line.strip())


def test_repeated_charge_after_refund_gets_its_first_answer() -> None:
    play_story(
        WORLD
        + """
        hold 1 alice physics/cpu 60
        charge 1 45                             -> ok remaining 45 amount 45
        refund 1 5
        charge 1 45                             -> again remaining 45 amount 45
        """
    )


def test_change_without_effect_returns_entry_of_the_hold() -> None:
    story = play_story(f"{WORLD}\n hold 1 alice physics/cpu 60 until 500")
    first = story.outcome
    story.play("adjust 1 60 until 500 -> again")
    assert isinstance(first, Done)
    assert story.outcome == msgspec.structs.replace(first, again=True)


def test_repeated_refused_start_is_applied_again() -> None:
    story = play_story(
        f"{WORLD}\n hold 1 alice physics/cpu 500 -> INSUFFICIENT_CREDIT\n hold 1 alice physics/cpu"
        " 500 -> INSUFFICIENT_CREDIT"
    )
    assert [entry.kind for entry in story.work.entries[-2:]] == [Kind.REFUSAL, Kind.REFUSAL]
    story.play("deposit physics/cpu 500")
    story.play("hold 1 alice physics/cpu 500 -> ok")


def test_repeated_hold_is_recognised_after_limit_change() -> None:
    play_story(
        WORLD
        + """
        hold 1 alice physics/cpu 60             -> ok remaining 30
        adjust 1 70                             -> ok remaining 20
        hold 1 alice physics/cpu 60             -> again remaining 30 amount 60
        hold 1 alice physics/cpu 70 -> again remaining 30 amount 60     # repeated as it is now
        hold 1 alice physics/cpu 65             -> HOLD_EXISTS
        adjust 1 60                             -> ok remaining 30
        """
    )


@pytest.mark.parametrize(
    "other",
    [
        "hold 1 alice physics/cpu 59 partition std start 5",
        "hold 1 bob physics/cpu 60 partition std start 5",
        "hold 1 alice physics/cpu 60 partition std start 6",
        "hold 1 alice physics/cpu 60 partition gpu start 5",
        "hold 1 alice physics/cpu 60 start 5",
        "hold 1 alice college/cpu 60 partition std start 5",
        "hold 1 alice physics/gpu 60 partition std start 5",
    ],
)
@pytest.mark.parametrize("report", ["", " report b"])
def test_another_start_of_the_same_run_contradicts_its_hold(other: str, report: str) -> None:
    story = play_story(
        f"{WORLD}\n hold 1 alice physics/cpu 60 partition std start 5 until 70 report a"
    )
    before = list(story.work.entries)
    story.play(f"{other}{report} -> HOLD_EXISTS")
    assert story.work.entries == before
    story.play(f"hold 1 alice physics/cpu 60 partition std start 5 until 90{report} -> again")


def test_repeated_hold_on_credit_of_parent_is_recognised() -> None:
    play_story(
        WORLD
        + """
        hold 1 alice optics/cpu 20              -> ok from college/cpu
        hold 1 alice optics/cpu 20              -> again from college/cpu
        hold 1 alice physics/cpu 20             -> HOLD_EXISTS
        hold 1 alice college/cpu 20             -> HOLD_EXISTS
        """
    )


def test_repeated_report_is_recognised_after_price_change() -> None:
    """Prices, free states or the grace period of holds change before the same reports are
    repeated.
    """
    play_story(
        WORLD
        + """
        hold 1 alice physics/cpu 60 until 500 report start          -> ok remaining 30
        hold 1 alice physics/cpu 40 until 600 report start          -> again remaining 30 amount 60
        adjust 1 70 until 500 report change                         -> ok remaining 20
        adjust 1 50 until 600 report change                         -> again remaining 20 amount 10
        hold 1 alice physics/cpu 40 until 600 report start          -> again remaining 30
        adjust 1 80 until 500 report later                          -> ok remaining 10
        adjust 1 50 until 500 report change -> ok remaining 40      # back to what it was before
        charge 1 45 report end                                      -> ok remaining 45
        charge 1 30 report end                                      -> again remaining 45 amount 45
        release 1 report end                                        -> again remaining 45 amount 45
        charge 1 30 report other                                    -> RUN_CLOSED
        charge 1 30                                                 -> RUN_CLOSED
        charge 1 45                                                 -> again remaining 45
        """
    )


def test_repeated_report_is_recognised_with_or_without_key() -> None:
    play_story(
        WORLD
        + """
        hold 1 alice physics/cpu 60 report start key h              -> ok
        hold 1 alice physics/cpu 40 report start                    -> again amount 60
        hold 1 alice physics/cpu 40 report start key other          -> again amount 60
        hold 1 alice physics/cpu 40 report start note other         -> again amount 60
        charge 1 45 report end note why                             -> ok
        charge 1 30 report end key c                                -> again amount 45
        """
    )


def test_closed_run_does_not_start_again() -> None:
    play_story(
        WORLD
        + """
        hold 1 alice physics/cpu 60 report start
        charge 1 45
        hold 1 alice physics/cpu 60 report start                    -> RUN_CLOSED
        adjust 1 60 report start                                    -> RUN_CLOSED
        """
    )


def test_row_of_run_names_its_entry() -> None:
    story = play_story(WORLD)
    for line, kind in (
        ("hold 1 alice physics/cpu 60 until 500", Kind.HOLD),
        ("adjust 1 70 until 500", Kind.ADJUST),
        ("lapse 1", Kind.LAPSE),
        ("charge 1 45", Kind.CHARGE),
    ):
        story.now = Instant(500 if kind is Kind.LAPSE else 0)
        story.play(line)
        (record,) = [run for run in story.work.runs.values() if run.reported.run.job_id == 1]
        assert story.work.entries[-1].kind is kind
        assert record.set_by == story.work.entries[-1].id
    story.play("refund 1 5")
    assert story.work.runs[record.reported.run] == msgspec.structs.replace(record, refunded=5 * 60)


def test_missing_entry_of_a_run_is_an_error() -> None:
    story = play_story(f"{WORLD}\n hold 1 alice physics/cpu 60")
    rows = story.work
    work = TransactionData(allocations=rows.allocations.values(), runs=rows.runs.values())
    with pytest.raises(
        Corrupt, match=f"entry {rows.entries[-1].id}, which the row of a run names, is missing"
    ):
        apply(
            work,
            SubmittedRequest(
                story.names.request("hold 1 alice physics/cpu 60", Instant(0)), Instant(0), 0
            ),
            Policy(),
        )
