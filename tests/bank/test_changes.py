"""What entries changed of the terms: the difference to the words before, across whatever else stands between."""

from __future__ import annotations

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.term_changes import changes
from tests.bank.story import tell

STORY = """
project physics
open physics/cpu 0..1000 with 100
freeze physics/cpu
thaw physics/cpu
hold 1 alice physics/cpu 60
amend physics/cpu limit 5
"""


def test_terms_are_told_by_what_became_of_them() -> None:
    book = [each for each in tell(STORY).work.entries if each.book]
    told = changes(None, book)
    assert [told[each.id] for each in book if each.kind is Kind.TERMS] == [
        {"state": "frozen"},
        {"state": "active"},
        {"credit_limit": 300},
    ]
    assert len(told) == 3


@pytest.mark.parametrize("known", [True, False])
def test_without_the_words_before_all_terms_are_told(known: bool) -> None:
    book = [each for each in tell(STORY).work.entries if each.book]
    frozen = next(each for each in book if each.kind is Kind.TERMS)
    told = changes(book[0] if known else None, [frozen])[frozen.id]
    assert told["state"] == "frozen"
    assert ({"start", "end", "shared", "credit_limit", "category"} <= told.keys()) is not known
