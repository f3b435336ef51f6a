"""Changes of terms: each entry shows the difference to the terms before it."""

from __future__ import annotations

import pytest

from fairbank.bank.entry import Kind, term_changes
from tests.bank.stories import play_story

STORY = """
project physics
open physics/cpu 0..1000 with 100
freeze physics/cpu
thaw physics/cpu
hold 1 alice physics/cpu 60
amend physics/cpu limit 5
"""


def test_changed_terms_are_shown_with_new_values() -> None:
    journal = [entry for entry in play_story(STORY).work.entries if entry.allocation]
    story = term_changes(None, journal)
    assert [story[entry.id] for entry in journal if entry.kind is Kind.TERMS] == [
        {"state": "frozen"},
        {"state": "active"},
        {"credit_limit": 300},
    ]
    assert len(story) == 3


@pytest.mark.parametrize("known", [True, False])
def test_without_earlier_terms_all_count_as_changed(known: bool) -> None:
    journal = [entry for entry in play_story(STORY).work.entries if entry.allocation]
    frozen = next(entry for entry in journal if entry.kind is Kind.TERMS)
    story = term_changes(journal[0] if known else None, [frozen])[frozen.id]
    assert story["state"] == "frozen"
    assert ({"start", "end", "shared", "credit_limit", "category"} <= story.keys()) is not known
