"""Quotes: the answer of the ledger, without a change to it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.bank.pricing import Bill, cost, longest_paid, remarks, unpriced_qos
from fairbank.bank.quote import OBSERVED, Quote, quote
from fairbank.bank.rules import Done
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.tres import parse_counts, parse_weights
from fairbank.core.units import SuMinutes
from tests.bank.stories import StoryRunner, play_story
from tests.bank.story_requests import USERS

FAMILY = """
    project college
    project physics under college
    open college/cpu 0..1000 with 100 shared yes
    open physics/cpu 0..1000 with 50
    cap bob physics/cpu 10
    cap bob college/cpu 20
"""


def quoted(story: StoryRunner, minutes: int, user: str) -> Quote:
    price = Bill("cpu", (), Fraction(minutes, 60), Fraction(1), 3_600, SuMinutes(minutes))
    line = (story.names.projects["physics"], story.names.projects["college"])
    candidates = story.work.candidates(line, "cpu", story.now)
    return quote(
        price,
        [(candidate, story.work.sums_of(candidate.id, USERS[user])) for candidate in candidates],
        story.policy,
    )


@pytest.mark.parametrize(
    ("user", "hours", "carrier", "available", "fits"),
    [
        ("alice", 50, "physics/cpu", 50, True),
        ("alice", 51, "college/cpu", 100, True),
        ("alice", 101, "physics/cpu", 50, False),
        ("bob", 10, "physics/cpu", 10, True),
        ("bob", 11, "college/cpu", 20, True),
        ("bob", 21, "physics/cpu", 10, False),
    ],
)
def test_quote_names_the_paying_allocation(
    user: str, hours: int, carrier: str, available: int, fits: bool
) -> None:
    story = play_story(FAMILY)
    entries = list(story.work.entries)
    offer = quoted(story, hours * 60, user)
    assert (offer.allocation, offer.available, offer.fits) == (
        story.names.allocations[carrier],
        available * 60,
        fits,
    )
    assert offer.after == (available - hours) * 60
    assert story.work.entries == entries


def test_quote_without_allocation_fits_nothing() -> None:
    story = play_story(FAMILY)
    story.now = type(story.now)(5_000)
    offer = quoted(story, 1, "alice")
    assert (offer.allocation, offer.available, offer.fits) == (None, 0, False)


def test_quote_ignores_frozen_allocation() -> None:
    story = play_story(FAMILY + "freeze physics/cpu\n freeze college/cpu")
    assert [
        (offer.available, offer.fits)
        for offer in (quoted(story, minutes, "alice") for minutes in (0, 1))
    ] == [(0, False)] * 2


CLUSTER = Cluster(
    "darwin",
    {
        "gpu": Partition("gpu", "gpu", parse_weights("CPU=0.0625,GRES/gpu=1.0,GRES/disk:ssd=1")),
        "cpu": Partition("cpu", "cpu"),
    },
    {"high": Fraction(2), "low": Fraction(1, 2)},
)


@pytest.mark.parametrize(
    ("tres", "partition", "qos", "expected"),
    [
        ("cpu=8,node=1,gres/gpu=1", "gpu", None, []),
        ("cpu=8,gres/gpu=2,gres/gpu:v100=2", "gpu", "low", []),
        (
            "cpu=8,gres/disk=2",
            "gpu",
            None,
            ["gres/disk: no price in partition gpu, which bills cpu, gres/disk:ssd, gres/gpu"],
        ),
        ("cpu=8,gres/gpu:v100=2", "gpu", None, []),
        ("cpu=8,gres/disk=2,gres/disk:ssd=2", "gpu", None, []),
        (
            "cpu=8,mem=4G,license/x=1",
            "cpu",
            None,
            ["license/x, mem: no price in partition cpu, which bills cpu"],
        ),
        (
            "cpu=8,mem=0",
            "cpu",
            "hihg",
            [
                "QOS hihg has no price factor on cluster darwin, so it counts as 1; those with one:"
                " high, low"
            ],
        ),
    ],
)
def test_quote_names_ignored_options(
    tres: str, partition: str, qos: str | None, expected: list[str]
) -> None:
    request = JobRequest(
        cluster="darwin", partition=partition, counts=parse_counts(tres), limit_seconds=60, qos=qos
    )
    assert list(remarks(request, CLUSTER)) == expected


def test_qos_with_a_resource_of_its_own_needs_no_factor() -> None:
    assert list(unpriced_qos(["debug", "hihg"], "darwin", ["low"], ["debug"])) == [
        "QOS hihg has no price factor on cluster darwin, so it counts as 1; those with one: low"
    ]


@given(st.fractions(0, 100), st.integers(-100, 10_000))
def test_longest_time_limit_is_exact_to_the_minute(per_hour: Fraction, available: int) -> None:
    longest = longest_paid(per_hour, available)
    if longest:
        assert (
            cost(per_hour, Fraction(1), longest)
            <= available
            < cost(per_hour, Fraction(1), longest + 60)
        )
    else:
        assert available <= 0 or per_hour == 0 or cost(per_hour, Fraction(1), 60) > available


requests = st.sampled_from(
    [
        "freeze physics/cpu",
        "freeze college/cpu",
        "hold 7 bob physics/cpu 9",
        "hold 8 alice physics/cpu 45",
        "cap alice college/cpu 5",
    ]
)


@pytest.mark.parametrize("rule", ["enforce", "observe"])
@given(
    st.lists(requests, unique=True),
    st.integers(0, 110 * 60),
    st.sampled_from(["alice", "bob", "carol"]),
)
# A free job above the cap of the parent's allocation, which is what is left to ask.
@example(
    ["freeze physics/cpu", "hold 8 alice physics/cpu 45", "cap alice college/cpu 5"], 0, "alice"
)
def test_quote_agrees_with_the_ledger(
    rule: str, before: list[str], minutes: int, user: str
) -> None:
    story = play_story(f"{FAMILY}policy {rule}")
    for request in before:
        story.apply_line(request)
    offer = quoted(story, minutes, user)
    story.apply_line(f"hold 1 {user} physics/cpu {minutes}m")
    assert offer.fits == isinstance(story.outcome, Done)
    assert story.outcome is not None
    assert story.outcome.allocation == offer.allocation


def test_quote_of_observing_bank_mentions_missing_credit() -> None:
    story = play_story(FAMILY + "policy observe")
    assert [
        (offer.fits, offer.notes)
        for offer in (quoted(story, hours * 60, "alice") for hours in (50, 101))
    ] == [(True, ()), (True, (OBSERVED,))]
    story.now = type(story.now)(5_000)
    unpaid = quoted(story, 1, "alice")
    assert (unpaid.allocation, unpaid.fits, unpaid.notes) == (None, True, (OBSERVED,))
