"""Messages of SQLite's integrity check: one sentence for many rows, one for each index."""

from __future__ import annotations

from fairbank.store.sqlite.integrity import summarise


def test_many_rows_of_one_index_are_one_complaint() -> None:
    said = [
        *(f"row {number} missing from index journal_key" for number in (1, 2, 7)),
        "wrong # of entries in index journal_key",
    ]
    assert list(summarise(said)) == [
        "the index journal_key lacks 3 of the rows of its table, which no query finds through it"
    ]


def test_each_kind_has_its_words_and_what_has_none_is_reported_as_it_is() -> None:
    said = [
        "*** in database main ***",
        "wrong # of entries in index run_owner",
        "non-unique entry in index journal_key",
        "Page 7 is never used",
    ]
    assert list(summarise(said)) == [
        "the index journal_key has more than once what there may be once, in 1 of its rows",
        "the index run_owner has another number of rows than its table",
        "Page 7 is never used",
    ]
    assert list(summarise(())) == []
