"""Remedies: they can be typed as they are, and they solve the problem."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.entry import Kind
from fairbank.bank.pricing import cost
from fairbank.bank.refusals import Detail, Reason, Refusal, longest_that_fits, remedies
from fairbank.bank.rules.undo import cannot_undo
from fairbank.core.time import parse_duration
from fairbank.core.units import AMOUNT_MAX, parse_su
from tests.bank.stories import play_story
from tests.bank.story_setups import REFUSALS
from tests.bank.test_entry import ENTRY


def test_every_reason_has_a_remedy() -> None:
    assert [
        reason
        for reason in Reason
        if not remedies(Refusal(reason=reason, allocation=1, resource="cpu"))
    ] == []


# --- a shorter time limit ---


prices = st.fractions(Fraction(1, 1_000), 1_000)


@given(prices, st.integers(1, 10**6), st.data())
def test_advised_time_limit_is_the_longest_that_fits(
    price: Fraction, limit_minutes: int, data: st.DataObject
) -> None:
    result = cost(price, Fraction(1), limit_minutes * 60)
    available = data.draw(st.integers(0, result - 1))
    no = Refusal(
        reason=Reason.INSUFFICIENT_CREDIT,
        requested=result,
        available=available,
        billing=str(price),
        limit_seconds=limit_minutes * 60,
    )
    seconds = longest_that_fits(no)
    assert cost(price, Fraction(1), seconds) <= available < cost(price, Fraction(1), seconds + 60)
    advised = [advice for advice in remedies(no) if "-t " in advice]
    assert len(advised) == (seconds > 0)
    assert all(parse_duration(advice.rpartition("-t ")[2]) == seconds for advice in advised)


@pytest.mark.parametrize(
    ("billing", "available"),
    [(None, 60), ("0", 60), ("4", 0), ("4", -60), ("", 60), ("1", 60), ("4", 3)],
)
def test_no_time_limit_is_advised_if_none_helps(billing: str | None, available: int) -> None:
    no = Refusal(
        reason=Reason.INSUFFICIENT_CREDIT,
        requested=100,
        available=available,
        billing=billing,
        limit_seconds=3_600,
    )
    assert longest_that_fits(no) == (
        3_600 if billing == "1" else 0
    )  # what costs less than was asked needs another remedy
    assert not any("-t " in advice for advice in remedies(no))


# --- what is advised can be typed ---


@given(st.integers(1, AMOUNT_MAX - 60), st.data())
def test_advised_deposit_can_be_typed_and_suffices(requested: int, data: st.DataObject) -> None:
    available = data.draw(st.integers(0, requested - 1))
    no = Refusal(
        reason=Reason.INSUFFICIENT_CREDIT, requested=requested, available=available, allocation=1
    )
    advised = re.search(r"deposit 1 (\S+) ", remedies(no)[-1])
    assert advised is not None
    assert no.shortfall <= parse_su(advised[1]) < no.shortfall + 60


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("refund 7 26m", "refund at most 0.42 SU"),
        ("withdraw physics/cpu:next 2", "withdraw at most 1.33 SU"),
        ("transfer 2000 physics/cpu => physics/cpu:next", "transfer at most 94.58 SU"),
    ],
)
def test_advised_amount_is_exact_to_the_minute(line: str, advice: str) -> None:
    story = play_story(REFUSALS + "charge 7 alice physics/cpu 25m\n deposit physics/cpu:next 20m")
    story.apply_line(line)
    assert isinstance(story.outcome, Refusal)
    assert remedies(story.outcome) == (advice,)


def test_remedy_without_unused_credit_names_charges_and_holds() -> None:
    story = play_story(REFUSALS + "withdraw physics/cpu:next 1")
    story.apply_line("withdraw physics/cpu:next 1m")
    assert isinstance(story.outcome, Refusal)
    assert remedies(story.outcome) == (
        "nothing can be withdrawn or transferred now; check charges and holds: fairbank alloc show"
        " 2",
    )


def test_unknown_cluster_gets_no_project_remedy() -> None:
    no = Refusal(
        reason=Reason.UNPRICED,
        detail=Detail.NOT_PRICED,
        account="nosuch",
        facts={"cause": "there is no cluster 'mars'"},
    )
    assert remedies(no) == (
        (
            "have the cluster and the partition added to the settings, by staff, then send the"
            " report again"
        ),
    )


@pytest.mark.parametrize("kind", [Kind.REFUSAL, Kind.DECLINED, Kind.NOTE])
def test_entry_that_only_records_has_nothing_to_undo(kind: Kind) -> None:
    """These kinds belong to no allocation, or changed none of it."""
    refusal = cannot_undo(msgspec.structs.replace(ENTRY, kind=kind, allocation=0), None)
    assert refusal is not None
    assert remedies(refusal) == ("nothing is to undo: the entry changed nothing",)
