"""What the journal says of an allocation's terms."""

from __future__ import annotations

from fairbank.bank.entry import OF_TERMS, Entry
from fairbank.bank.query import EntryQuery, Page
from fairbank.store.contract import Reader


def last_terms(reader: Reader, book: int, *, before: int | None = None) -> Entry | None:
    """The last entry of the book that says what the terms are; of those ahead of the entry `before`, where one is named."""
    return next(
        iter(
            reader.entries(
                EntryQuery(book=book, kinds=OF_TERMS), Page(1, after=before, newest_first=True)
            )
        ),
        None,
    )
