"""Messages of refusals, their figures and remedies."""

from __future__ import annotations

import re
from typing import cast

import msgspec
import pytest

from fairbank.bank.allocation import Allocation, AllocationTerms
from fairbank.bank.refusals import (
    Alternative,
    Detail,
    Facts,
    Reason,
    Refusal,
    RemedyFacts,
    remedies,
    sentence,
)
from fairbank.core.errors import RefusalKind
from fairbank.core.time import Instant
from tests.bank.stories import play_story
from tests.bank.story_setups import REFUSALS


def refused(line: str) -> Refusal:
    story = play_story(REFUSALS + "policy no_late")
    story.apply_line(line)
    assert isinstance(story.outcome, Refusal)
    return story.outcome


@pytest.mark.parametrize(
    ("line", "expected", "remedy", "kind"),
    [
        (
            "hold 1 alice physics/cpu 160 billing 4 seconds 144000",
            (
                "not enough credit: requested 160 SU, available 95 SU, short by 65 SU. Of 100 SU 5"
                " are used, 0 held."
            ),
            (
                "a shorter time limit: -t 23:45:00",
                "more credit, by staff: fairbank deposit 1 65 --reason '...'",
            ),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "hold 1 bob physics/cpu 12 billing 3/2 seconds 28800",
            (
                "the user's cap in this allocation is reached: requested 12 SU, available 10 SU,"
                " short by 2 SU."
            ),
            (
                "a shorter time limit: -t 06:40:00",
                "a higher cap, by the PI, a coordinator or staff: fairbank alloc cap 1 1002 12",
            ),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "hold 1 alice physics/gpu 1",
            (
                "the project has no allocation of this resource at this time: the start of the"
                " job is 1970-01-01T00:00:00Z."
            ),
            (
                (
                    "an allocation, by staff: fairbank alloc create -A 1 -r gpu --start"
                    " 1970-01-01T00:00:00Z --end ... --reason '...'"
                ),
            ),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "hold 1 alice optics/cpu 1",
            "the allocation is frozen: requested 1 SU, available 0 SU.",
            ("have it thawed, by staff: fairbank alloc thaw 3 --reason '...'",),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "charge 1 alice physics/cpu 1",
            "this run has no hold.",
            (
                (
                    "send the hold first; the end of a run without a hold is charged only with"
                    " policy.late_charges = true"
                ),
            ),
            RefusalKind.NOT_FOUND,
        ),
        (
            "refund 9 6",
            (
                "the refund is larger than the charge of the run: requested 6 SU, "
                "left of its charge 5 SU."
            ),
            ("refund at most 5 SU",),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "open physics/cpu:x 1500..1600",
            (
                "the project has an allocation of this resource at the same time: end is"
                " 1970-01-01T00:26:40Z, and allocation 2 is for 1970-01-01T00:16:40Z to"
                " 1970-01-01T00:33:20Z."
            ),
            ("end or move allocation 2, or choose another period",),
            RefusalKind.CONFLICT,
        ),
        (
            "withdraw physics/cpu 96",
            "not enough unused credit: requested 96 SU, unused 95 SU, short by 1 SU.",
            ("withdraw at most 95 SU",),
            RefusalKind.PAYMENT_REQUIRED,
        ),
        (
            "transfer 1 physics/cpu => physics/cpu",
            "an allocation cannot transfer credit to itself.",
            ("name another allocation as the target",),
            RefusalKind.CONFLICT,
        ),
        ("lapse 6", "it is not due yet.", ("wait until it is due",), RefusalKind.CONFLICT),
        (
            "expire physics/cpu",
            "it is not due yet.",
            ("wait until it is due",),
            RefusalKind.CONFLICT,
        ),
        (
            "amend optics/gpu limit 4",
            "more of the credit limit is used already.",
            ("first deposit the used part of the limit: fairbank deposit 4 AMOUNT --reason '...'",),
            RefusalKind.CONFLICT,
        ),
        (
            "deposit physics/cpu 2 key k",
            "this idempotency key belongs to another request.",
            ("use a new key for a new request",),
            RefusalKind.CONFLICT,
        ),
        (
            "deposit chemistry/cpu 1",
            "there is no such allocation.",
            ("list them: fairbank alloc list",),
            RefusalKind.NOT_FOUND,
        ),
        (
            "open chemistry/cpu 0..1",
            "there is no such project.",
            ("list them: fairbank project list",),
            RefusalKind.NOT_FOUND,
        ),
        (
            "thaw physics/cpu",
            "its state does not allow this: allocation 1 is active already.",
            ("check its state: fairbank alloc show 1",),
            RefusalKind.CONFLICT,
        ),
        (
            "open physics/cpu:x 9..9",
            (
                "an allocation must end after its start: start 1970-01-01T00:00:09Z, end"
                " 1970-01-01T00:00:09Z."
            ),
            ("choose an end after the start",),
            RefusalKind.CONFLICT,
        ),
        (
            "revoke laptop by bob",
            "there is no such valid token.",
            ("list them: fairbank token list",),
            RefusalKind.NOT_FOUND,
        ),
        (
            "token laptop bob",
            "this secret belongs to another token.",
            ("make a new secret",),
            RefusalKind.CONFLICT,
        ),
        (
            "member physics alice none by bob",
            "users manage only roles below their own, and cap only users with such roles.",
            ("ask a superuser",),
            RefusalKind.FORBIDDEN,
        ),
        (
            "transfer 1 physics/cpu => optics/gpu",
            "credit moves only between allocations of one resource.",
            ("name two allocations of one resource: fairbank alloc list",),
            RefusalKind.CONFLICT,
        ),
        (
            "project optics under physics",
            (
                "a project with this group, gid or account exists with other content: "
                "project 2 has gname optics, gid 5658, account optics, but another parent."
            ),
            ("check the project that has it: fairbank project list",),
            RefusalKind.CONFLICT,
        ),
        (
            "hold 9 carol physics/cpu 10",
            "this run is already closed: it was charged 5 SU.",
            ("check what it cost: fairbank jobs -j 9; a correction is a refund, by staff",),
            RefusalKind.CONFLICT,
        ),
    ],
)
def test_message_and_remedy_of_each_refusal(
    line: str, expected: str, remedy: tuple[str, ...], kind: RefusalKind
) -> None:
    no = refused(line)
    assert sentence(no) == expected
    assert remedies(no) == remedy
    assert no.kind is kind


@pytest.mark.parametrize(
    "line", ["charge 9 7", "release 9", "adjust 9 7", "hold 6 carol optics/gpu 7"]
)
def test_refusal_without_credit_has_no_credit_figures(line: str) -> None:
    no = refused(line)
    assert (
        no.reason in (Reason.RUN_CLOSED, Reason.HOLD_EXISTS),
        no.requested,
        no.available,
        no.shortfall,
    ) == (True, 0, 0, 0)
    assert sentence(no).endswith((": it was charged 5 SU.", ": its hold is 5 SU."))


def test_facts_of_an_insufficient_credit_refusal() -> None:
    no = refused("hold 1@7 alice physics/cpu 160 billing 4 seconds 144000")
    assert no.entry is not None
    assert no == Refusal(
        reason=Reason.INSUFFICIENT_CREDIT,
        requested=9_600,
        available=5_700,
        allocation=1,
        project=1,
        resource="cpu",
        owner=1001,
        run="darwin/1@7.0",
        billing="4",
        limit_seconds=144_000,
        facts={"granted": 6_000, "charged": 300, "held": 0},
        entry=no.entry,
    )
    assert no.shortfall == 3_900


def test_other_projects_of_the_same_user_are_named() -> None:
    no = refused("hold 1 alice physics/cpu 160")
    others = (Alternative("optics", 12_000), Alternative("dept bio", 9_615))
    assert remedies(no, RemedyFacts(alternatives=others))[:2] == (
        "another project: -A optics (200 SU available)",
        "another project: -A 'dept bio' (160.25 SU available)",
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_message_and_fields_and_its_code_is_its_name(reason: Reason) -> None:
    assert reason.value == reason.name
    assert sentence(Refusal(reason=reason)).startswith(reason.info.message)
    assert reason.info.request_fields
    assert "{" not in reason.info.general_remedy


FACTS: Facts = {
    "field": "end",
    "reported": 1,
    "recorded": 2,
    "reported_time": 3,
    "now": 4,
    "tolerance": 5,
    "cause": "cause",
    "granted": 20,
    "held": 6,
    "charged": 7,
    "written_off": 8,
    "refunded": 9,
    "state": "active",
    "allowed": "frozen",
    "event": "thaw",
    "near_start": 10,
    "near_end": 11,
    "of_entry": 12,
    "by_entry": 13,
    "by_user": "14",
    "kind": "hold",
    "names": "gid 15",
    "projects": "16 (chem)",
    "more": 17,
    "parent": 18,
    "child": 19,
    "category": "research",
    "lowest": 21,
    "highest": 22,
    "days": 23,
    "run_id": 24,
    "remaining": 25,
    "missing_credit": 26,
    "needed_cap": 27,
}
NEAREST = Allocation(
    id=5,
    terms=AllocationTerms(
        project=1, resource="cpu", category="x", start=Instant(0), end=Instant(9)
    ),
)


@pytest.mark.parametrize("reason", Reason)
def test_every_template_can_be_formatted(reason: Reason) -> None:
    assert set(FACTS) == set(Facts.__annotations__)
    for detail in {Detail.NONE, *reason.info.details}:
        refusal = Refusal(reason=reason, detail=detail, facts=FACTS, start=7, account="chem")
        known = RemedyFacts(nearest=NEAREST)
        for text in (sentence(refusal, known), *remedies(refusal, known)):
            assert "{" not in text
            assert "}" not in text


@pytest.mark.parametrize("reason", Reason)
def test_thousands_are_separated_in_every_message_and_remedy(reason: Reason) -> None:
    amounts = ("granted", "held", "charged", "written_off", "refunded", "lowest", "highest")
    facts = cast("Facts", {**FACTS, **dict.fromkeys(amounts, 60 * 12_345)})
    for detail in {Detail.NONE, *reason.info.details}:
        refusal = Refusal(
            reason=reason,
            detail=detail,
            facts=facts,
            requested=60 * 54_321,
            available=60 * 12_345,
            start=7,
        )
        known = RemedyFacts(nearest=NEAREST)
        for text in (sentence(refusal, known), *remedies(refusal, known)):
            # An amount that a command takes has no commas.
            spoken = re.sub(r"(fairbank (?:deposit|withdraw|alloc cap) [\S ]+) \d+", r"\1", text)
            assert re.findall(r"\d{5}", spoken) == []


def test_refused_job_that_the_credit_pays_by_now_is_submitted_again() -> None:
    no = refused("hold 1 alice physics/cpu 160 billing 4 seconds 144000")
    paid = msgspec.structs.replace(no, detail=Detail.PAID_NOW, available=160 * 60)
    others = (Alternative("bio", 200 * 60),)
    assert remedies(no, RemedyFacts(present=paid, alternatives=others)) == (
        "submit the job again: 160 SU are available now",
    )
    assert remedies(no, RemedyFacts(present=no)) == remedies(no)


def test_unknown_account_is_named() -> None:
    no = refused("hold 1 alice nosuch/cpu 1")
    assert sentence(no) == "there is no such project: no project has the account 'nosuch'."
    assert remedies(no) == (
        (
            "use the right account, or have its project created, by staff: fairbank project create"
            " GROUP -A nosuch"
        ),
    )
    assert no.kind is RefusalKind.NOT_FOUND


def test_observed_refusal_says_that_the_job_ran() -> None:
    no = Refusal(reason=Reason.FROZEN, allocation=3, observed=True)
    assert (
        sentence(no) == "the allocation is frozen: requested 0 SU, available 0 SU. "
        "The bank only observes: the job ran."
    )


def test_overdrawn_allocation_is_shown() -> None:
    no = Refusal(reason=Reason.INSUFFICIENT_CREDIT, requested=60, available=-90)
    assert (
        sentence(no) == "not enough credit: requested 1 SU, available -1.50 SU, short by 2.50 SU."
    )
    assert no.shortfall == 150


@pytest.mark.parametrize(
    ("reason", "requested", "available", "figures"),
    [
        (
            Reason.INSUFFICIENT_CREDIT,
            46_080,
            37_789,
            "requested 768 SU, available 629.82 SU, short by 138.18 SU",
        ),
        (
            Reason.NOT_ENOUGH,
            5_999_940,
            38_158,
            "requested 99,999 SU, unused 635.97 SU, short by 99,363.03 SU",
        ),
        (Reason.CAPPED, 25, 10, "requested 0.42 SU, available 0.17 SU, short by 0.25 SU"),
    ],
)
def test_shown_figures_of_a_refusal_add_up(
    reason: Reason, requested: int, available: int, figures: str
) -> None:
    assert figures in sentence(Refusal(reason=reason, requested=requested, available=available))
