"""Messages of SQLite's integrity check: one sentence for many rows, one for each index."""

from __future__ import annotations

from fairbank.store.sqlite.integrity import summarise


def test_many_rows_of_one_index_are_one_finding() -> None:
    output = [
        *(f"row {number} missing from index journal_key" for number in (1, 2, 7)),
        "wrong # of entries in index journal_key",
    ]
    (fault,) = summarise(output)
    assert fault.message == (
        "the index journal_key lacks 3 of the rows of its table, which no query finds through it"
    )


def test_known_findings_are_explained_and_others_quoted() -> None:
    """Only a damaged index can be made again. A message of SQLite may begin as one of ours."""
    output = [
        "*** in database main ***",
        "wrong # of entries in index run_owner",
        "non-unique entry in index journal_key",
        "the index page 7 is never used",
    ]
    assert list(summarise(output)) == [
        ("the index journal_key has more than once what there may be once, in 1 of its rows", True),
        ("the index run_owner has another number of rows than its table", True),
        ("the index page 7 is never used", False),
    ]
    assert list(summarise(())) == []
