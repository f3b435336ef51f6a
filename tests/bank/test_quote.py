"""A quote says what the ledger would say, without touching the books."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.charge import Bill
from fairbank.bank.ledger import Done
from fairbank.bank.quote import Quote, quote
from fairbank.values.units import SuMinutes
from tests.bank.cast import USERS
from tests.bank.story import Teller, tell

FAMILY = """
    project college
    project physics under college
    open college/cpu 0..1000 with 100 shared yes
    open physics/cpu 0..1000 with 50
    cap bob physics/cpu 10
    cap bob college/cpu 20
"""


def quoted(told: Teller, minutes: int, user: str) -> Quote:
    price = Bill("cpu", (), Fraction(minutes, 60), Fraction(1), 3_600, SuMinutes(minutes))
    line = (told.cast.projects["physics"], told.cast.projects["college"])
    candidates = told.book.candidates(line, "cpu", told.now)
    return quote(price, [(each, told.book.sums_of(each.id, USERS[user])) for each in candidates])


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
def test_a_quote_names_who_would_pay(user: str, hours: int, carrier: str, available: int, fits: bool) -> None:
    told = tell(FAMILY)
    entries = list(told.book.entries)
    offer = quoted(told, hours * 60, user)
    assert (offer.allocation, offer.available, offer.fits) == (told.cast.allocations[carrier], available * 60, fits)
    assert offer.after == (available - hours) * 60
    assert told.book.entries == entries


def test_without_an_allocation_nothing_fits() -> None:
    told = tell(FAMILY)
    told.now = type(told.now)(5_000)
    offer = quoted(told, 1, "alice")
    assert (offer.allocation, offer.available, offer.fits) == (None, 0, False)


def test_a_frozen_allocation_offers_nothing() -> None:
    told = tell(FAMILY + "freeze physics/cpu\n freeze college/cpu")
    assert [(offer.available, offer.fits) for offer in (quoted(told, minutes, "alice") for minutes in (0, 1))] == [(0, False)] * 2


deeds = st.sampled_from(
    ["freeze physics/cpu", "freeze college/cpu", "hold 7 bob physics/cpu 9", "hold 8 alice physics/cpu 45", "cap alice college/cpu 5"]
)


@given(st.lists(deeds, unique=True), st.integers(0, 110 * 60), st.sampled_from(["alice", "bob", "carol"]))
def test_a_quote_says_what_the_ledger_would_say(before: list[str], minutes: int, user: str) -> None:
    told = tell(FAMILY)
    for deed in before:
        told.hear(deed)
    offer = quoted(told, minutes, user)
    told.hear(f"hold 1 {user} physics/cpu {minutes}m")
    assert offer.fits == isinstance(told.said, Done)
    assert told.said is not None
    assert told.said.allocation == offer.allocation
