"""What the audit says, and what may be written down to compare with later."""

from __future__ import annotations

import msgspec

from fairbank.bank.entry import Entry


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as the journal says: in which book (0 is the office's, None the store as a whole), at which entry, what."""

    book: int | None
    what: str
    entry: int | None = None


class Head(msgspec.Struct, frozen=True):
    """How far a book was when somebody wrote it down: kept elsewhere, it betrays even a journal rewritten from the start."""

    book: int
    seq: int
    link: bytes


class Findings:
    """The findings of one book, in the order in which they were met."""

    def __init__(self, book: int) -> None:
        self.book = book
        self.list: list[Finding] = []

    def add(self, what: str, entry: Entry | None = None) -> None:
        self.list.append(Finding(self.book, what, entry.id if entry else None))

    def compare(self, what: str, row: msgspec.Struct, expected: msgspec.Struct | None) -> None:
        """`what` names the row; nothing expected means that the journal never made it."""
        if expected is None:
            self.add(f"{what} was added: the journal knows nothing of it")
        elif row != expected:
            fields = [name for name in row.__struct_fields__ if getattr(row, name) != getattr(expected, name)]
            self.add(f"{what} was altered: {', '.join(f'{n} is {getattr(row, n)!r}, due {getattr(expected, n)!r}' for n in fields)}")
