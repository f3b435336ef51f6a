"""Idempotency keys: a repeated request gets the same answer and counts once; a reused key is
refused.
"""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import AuditNote, SubmittedRequest, digest
from fairbank.bank.rules import Done, apply
from fairbank.core.errors import RefusalKind
from fairbank.core.time import Instant
from tests.bank.stories import empty_data, play_story
from tests.bank.story_setups import COLLEGE

# Every request there is, each one granted.
GRANTED = [
    "project optics under physics",
    "member physics alice pi",
    "open physics/gpu 0..1000",
    "open physics/gpu 0..1000 with 50 limit 5",
    "deposit physics/cpu 50",
    "withdraw physics/cpu 50",
    "transfer 50 physics/cpu => college/cpu",
    "cap alice physics/cpu 30",
    "freeze physics/cpu",
    "amend physics/cpu limit 10",
    "end physics/cpu",
    "hold 1 alice physics/cpu 60",
    "adjust 9 20",
    "charge 9 5",
    "charge 9 500",
    "release 9",
    "charge 1 alice physics/cpu 200",
    "release 1 alice physics/cpu",
    "refund 8 5",
    "refund 8 all",
]


@pytest.mark.parametrize("line", GRANTED)
def test_repeated_request_is_counted_once(line: str) -> None:
    story = play_story(f"{COLLEGE}\n {line} key k")
    first, entries = story.outcome, list(story.work.entries)
    story.now = Instant(7)
    story.play("deposit college/cpu 1")  # whatever happened since
    story.now = Instant(0)
    story.play(f"{line} key k -> again")
    assert isinstance(first, Done)
    assert story.outcome == msgspec.structs.replace(first, again=True)
    assert story.work.entries[:-1] == entries


@pytest.mark.parametrize("line", GRANTED)
def test_reused_key_is_refused(line: str) -> None:
    story = play_story(f"{COLLEGE}\n {line} key k")
    entries = list(story.work.entries)
    story.play("deposit physics/cpu 51 key k -> KEY_REUSED")
    story.play(f"{line} key k note otherwise -> KEY_REUSED")
    assert story.work.entries == entries
    assert isinstance(story.outcome, Refusal)
    assert story.outcome.kind is RefusalKind.CONFLICT


def test_key_is_known_after_the_end_of_its_run() -> None:
    play_story(
        COLLEGE
        + """
        hold 1 alice physics/cpu 60 key h       -> ok remaining 20
        adjust 1 70 key a                       -> ok remaining 10
        hold 1 alice physics/cpu 60 key h       -> again remaining 20 amount 60
        charge 1 50 key c                       -> ok remaining 30
        hold 1 alice physics/cpu 60 key h       -> again remaining 20
        adjust 1 70 key a                       -> again remaining 10 amount 10
        refund 1 all key r                      -> ok
        charge 1 50 key c                       -> again remaining 30
        refund 1 all key r                      -> again remaining 80 amount 50
        remaining physics/cpu 80
        """
    )


def test_without_a_key_credit_moves_each_time() -> None:
    play_story(
        COLLEGE
        + "deposit physics/cpu 1 -> ok remaining 81\n deposit physics/cpu 1 -> ok remaining 82"
    )


def test_digest_differs_between_requests() -> None:
    story = play_story(COLLEGE)

    def fingerprint(line: str) -> bytes:
        return digest(SubmittedRequest(story.names.request(line, Instant(0)), Instant(0), 0))

    prints = [fingerprint(line) for line in GRANTED]
    assert len(set(prints)) == len(prints)
    assert [fingerprint(line) for line in GRANTED] == prints
    assert fingerprint("release 1") != fingerprint("lapse 1")


def test_repeated_note_is_kept_once() -> None:
    work, submitted = (
        empty_data(),
        SubmittedRequest(AuditNote(details="acted as alice", key="k"), Instant(0), 0),
    )
    first, second = apply(work, submitted, Policy()), apply(work, submitted, Policy())
    assert isinstance(first, Done)
    assert second == msgspec.structs.replace(first, again=True)
    assert [entry.details for entry in work.entries] == ['{"note":"acted as alice"}']


def test_request_without_effect_adds_no_entry_and_no_key() -> None:
    play_story(
        COLLEGE
        + """
        hold 1 alice physics/cpu 20 key a
        hold 1 alice physics/cpu 20 key b       -> again
        deposit physics/cpu 1 key b             -> ok
        """
    )


def test_key_belongs_to_its_actor() -> None:
    play_story(
        COLLEGE
        + """
        deposit physics/cpu 1 key k                 -> ok remaining 81
        deposit physics/cpu 2 key k by alice        -> ok remaining 83
        deposit physics/cpu 1 key k by bob -> ok remaining 84 # of another user, so another request
        deposit physics/cpu 1 key k                 -> again remaining 81
        deposit physics/cpu 2 key k by alice        -> again remaining 83
        deposit physics/cpu 1 key k by alice        -> KEY_REUSED
        withdraw physics/cpu 999 key n by alice     -> NOT_ENOUGH
        withdraw physics/cpu 1 key n                -> ok remaining 83
        """
    )


def test_keys_of_a_user_acting_as_another_are_separate() -> None:
    story = play_story(COLLEGE)
    request = story.names.request("deposit physics/cpu 1 key k", Instant(0))
    submitted = [
        SubmittedRequest(request, Instant(0), actor, acting_as)
        for actor, acting_as in ((7, 1001), (1001, None), (7, 1001), (7, 1002), (7, None))
    ]
    first, of_the_user, again, as_another, as_oneself = (
        apply(story.work, item, Policy()) for item in submitted
    )
    assert isinstance(first, Done)
    assert isinstance(of_the_user, Done)
    assert (of_the_user.again, again) == (False, msgspec.structs.replace(first, again=True))
    assert as_another == as_oneself == Refusal(reason=Reason.KEY_REUSED)


def test_report_with_key_is_recognised_after_price_change() -> None:
    play_story(
        COLLEGE
        + """
        hold 1 alice physics/cpu 60 until 500 key h report start        -> ok remaining 20
        hold 1 alice physics/cpu 40 until 600 key h report start -> again remaining 20 amount 60
        hold 1 alice physics/cpu 60 until 500 key h report other        -> KEY_REUSED
        hold 1 alice physics/cpu 60 until 500 key h report start note x -> KEY_REUSED
        hold 1 alice physics/cpu 60 until 500 key h                     -> KEY_REUSED
        adjust 1 70 until 500 key a report change                       -> ok remaining 10
        adjust 1 50 until 600 key a report change                       -> again remaining 10
        charge 1 50 key c report end                                    -> ok remaining 30
        release 1 key c report end -> again remaining 30 amount 50   # its state costs nothing now
        """
    )
