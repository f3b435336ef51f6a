"""Hash chain. A link covers all fields of an entry and all entries before it, in every release."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.entry import Entry, Kind, is_ended_early, link_of
from fairbank.core.time import Instant

ENTRY = Entry(
    id=7,
    allocation=3,
    seq=2,
    at=Instant(1_795_264_212),
    kind=Kind.CHARGE,
    amount=2_700,
    run=5,
    owner=1001,
    actor=0,
    acting_as=None,
    key="darwin/1@0.0:charge",
    digest=bytes(16),
    deposited=6_000,
    charged=2_700,
    held=0,
    credit_limit=0,
    overrun=0,
    comment=None,
    details='{"outcome":"COMPLETED"}',
)


def test_link_is_the_same_in_every_release() -> None:
    """If this fails, journals of earlier releases cannot be verified."""
    first = link_of(ENTRY, NO_LINK)
    assert first.hex() == "507d040da157d6516819d0798b0a9b07384051babf1f9e3d424faa5a7cd65894"
    assert (
        link_of(ENTRY, first).hex()
        == "551400461949a9a470564da6d502f9bf7a7c05fcb90522e2c7777cf6d91c414a"
    )


def test_link_depends_on_previous_entries() -> None:
    before = bytes(range(32))
    linked = msgspec.structs.replace(ENTRY, link=link_of(ENTRY, before))
    assert link_of(linked, before) == linked.link != link_of(linked, NO_LINK)


@pytest.mark.parametrize("field", [field for field in ENTRY.__struct_fields__ if field != "link"])
def test_link_covers_every_field(field: str) -> None:
    other = {"kind": Kind.RELEASE, "at": Instant(0), "digest": None, "details": None}.get(field, 99)
    assert link_of(msgspec.structs.replace(ENTRY, **{field: other}), NO_LINK) != link_of(
        ENTRY, NO_LINK
    )


@pytest.mark.parametrize(
    ("ends", "early"),
    [
        ([(0, 100)], False),
        ([(0, 100), (120, 100)], False),  # upkeep records that it is over
        ([(0, 100), (40, 40)], True),
        ([(0, 100), (40, 60)], False),  # a shorter term, but all of it was still to come
        ([(0, 100), (40, 40), (50, 100)], False),  # undone
        ([(0, 100), (40, 40), (50, 90), (95, 90)], False),  # reopened
        ([(0, 100), (120, 200), (130, 100)], False),  # reopened after its time, which was undone
        ([(0, 100), (120, 200), (130, 130)], True),
    ],
)
def test_allocation_is_ended_early_if_its_end_was_moved_to_the_past(
    ends: list[tuple[int, int]], early: bool
) -> None:
    """Each entry of terms has its time and the end that it set."""
    entries = [
        msgspec.structs.replace(ENTRY, at=Instant(at), kind=Kind.TERMS, details=f'{{"end":{end}}}')
        for at, end in ends
    ]
    assert is_ended_early(entries) is early
