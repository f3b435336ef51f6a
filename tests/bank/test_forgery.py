"""Forged journals whose links are valid: the entries do not follow, or the saved head reveals
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairbank.bank.audit import Fold, Head
from fairbank.bank.entry import OF_RUNS, Entry, Kind, link_of
from tests.bank.checks import entries_by_allocation
from tests.bank.stories import StoryRunner


def rewritten(lines: list[Entry], **change: object) -> list[Entry]:
    """Return a journal with a changed entry and links that a forger has recomputed."""
    before, forged = bytes(32), []
    for entry in lines:
        unlinked = msgspec.structs.replace(entry, **change)
        forged.append(msgspec.structs.replace(unlinked, link=link_of(unlinked, before)))
        before = forged[-1].link
    return forged


def test_forged_entry_with_valid_links_is_found(story: StoryRunner) -> None:
    lines = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    nowhere = Head(lines[0].allocation, 0, bytes(32))
    forgeries: list[tuple[Kind, dict[str, Any], str]] = [
        (Kind.DEPOSIT, {"amount": 7}, "was due"),
        (Kind.HOLD, {"amount": 7}, "was due"),
        (Kind.CHARGE, {"amount": 7}, "was due"),
        (Kind.LAPSE, {"held": 7}, "was due"),
        (Kind.REFUND, {"charged": 0}, "was due"),
        (Kind.CHARGE, {"owner": 4_321}, "never opened in this journal for this user"),
        (Kind.REFUND, {"run": 4_321}, "never opened in this journal for this user"),
        (Kind.REFUND, {"run": None}, "names no run"),
        (Kind.DEPOSIT, {"credit_limit": 7}, "without an entry about terms"),
        (Kind.DEPOSIT, {"overrun": 7}, "beyond what there is"),
    ]
    for kind, change, what in forgeries:
        place = next(place for place, entry in enumerate(lines) if entry.kind is kind)
        forged = [
            *lines[:place],
            msgspec.structs.replace(lines[place], **change),
            *lines[place + 1 :],
        ]
        assert any(what in text for text in finding_texts(rewritten(forged), nowhere)), (
            kind,
            change,
        )


def finding_texts(lines: list[Entry], head: Head) -> list[str]:
    fold = Fold(head.allocation, head)
    for entry in lines:
        fold.add(entry)
    fold.finish()
    return [finding.what for finding in fold.findings]


def test_saved_head_reveals_a_rewritten_journal(story: StoryRunner) -> None:
    lines = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    head = Head(lines[0].allocation, lines[-3].seq, lines[-3].link)
    assert finding_texts(lines, head) == []
    forged = rewritten(lines, actor=4_321)
    assert finding_texts(forged, Head(head.allocation, 0, bytes(32))) == []
    assert finding_texts(forged, head) == ["the saved head differs: the journal was rewritten"]
    assert finding_texts(lines[:-3], head) == [
        f"it ends at entry number {head.seq - 1}; {head.seq} was written down: entries are missing"
    ]


def with_details(story: StoryRunner, kind: Kind, details: Callable[[str], str]) -> list[str]:
    """Return the findings for a journal whose first entry of a kind has other details, with valid
    links.
    """
    lines = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    place = next(place for place, entry in enumerate(lines) if entry.kind is kind)
    other = msgspec.structs.replace(lines[place], details=details(lines[place].details or "{}"))
    return finding_texts(
        rewritten([*lines[:place], other, *lines[place + 1 :]]),
        Head(lines[0].allocation, 0, bytes(32)),
    )


@pytest.mark.parametrize("kind", OF_RUNS)
def test_unreadable_details_with_valid_links_are_found(story: StoryRunner, kind: Kind) -> None:
    assert any(
        "its details cannot be read" in detail
        for detail in with_details(story, kind, lambda details: details[:-1])
    )


@pytest.mark.parametrize("kind", [Kind.HOLD, Kind.ADJUST, Kind.CHARGE, Kind.RELEASE])
def test_numbers_as_text_with_valid_links_are_found(story: StoryRunner, kind: Kind) -> None:
    result = with_details(story, kind, lambda details: re.sub(r"\b(\d+)\b", r'"\1"', details))
    assert any("its details cannot be read" in text for text in result)


@pytest.mark.parametrize("kind", [Kind.CHARGE, Kind.LAPSE, Kind.ADJUST, Kind.RELEASE])
def test_second_end_of_a_run_is_found(story: StoryRunner, kind: Kind) -> None:
    lines = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    charge = next(entry for entry in lines if entry.kind is Kind.CHARGE)
    last = lines[-1]
    amount = 7 if kind is Kind.CHARGE else 0
    details = charge.details if kind in (Kind.CHARGE, Kind.RELEASE) else '{"until":1}'
    sums = {
        "deposited": last.deposited,
        "charged": last.charged + amount,
        "held": last.held,
        "overrun": last.overrun + amount,
    }
    again = msgspec.structs.replace(
        charge,
        id=9_999,
        seq=last.seq + 1,
        kind=kind,
        amount=amount,
        key=None,
        details=details,
        **sums,
    )
    assert finding_texts(rewritten([*lines, again]), Head(last.allocation, 0, bytes(32))) == [
        f"a {kind.value} cannot follow: run darwin/2@0.0 is charged already"
    ]


@pytest.mark.parametrize(
    "made_to_say",
    [{"revoked": None}, {"revoked": 5}, {"revoked": 5, "expires": 9_999}, {"revoked": 5, "uid": 7}],
)
@pytest.mark.parametrize("of", ["laptop", "phone"])
def test_entry_that_changes_a_token_is_found(
    story: StoryRunner, of: str, made_to_say: dict[str, Any]
) -> None:
    """Its links are valid, but the bank never writes it: a token is only revoked, and once."""
    registry = entries_by_allocation(story.work.entries)[0]
    first = next(
        entry
        for entry in registry
        if entry.kind is Kind.TOKEN and f'"{of}"' in (entry.details or "")
    )
    facts = msgspec.json.decode(first.details or "") | made_to_say
    again = msgspec.structs.replace(
        first, id=9_999, seq=len(registry) + 1, details=msgspec.json.encode(facts).decode()
    )
    result = finding_texts(rewritten([*registry, again]), Head(0, 0, bytes(32)))
    good = of == "phone" and made_to_say == {"revoked": 5}
    assert [text for text in result if "this cannot follow" in text] == ([] if good else result)
    assert bool(result) is not good
