"""What the audit says, and what may be written down to compare with later."""

from __future__ import annotations

import msgspec

from fairbank.bank.audit.descriptions import differences
from fairbank.bank.entry import Entry


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as the journal says: in which book (0 is the registry's, None the store as a whole), at which entry, what."""

    book: int | None
    what: str
    entry: int | None = None


class Head(msgspec.Struct, frozen=True):
    """How far a book was when somebody wrote it down: kept elsewhere, it betrays even a journal rewritten from the start."""

    book: int
    seq: int
    link: bytes


def cut_off(told: object, read: int) -> str | None:
    """What is to be said where a book's row tells of more entries than the journal has. A row may hold anything."""
    if not isinstance(told, int) or told <= read:
        return None
    return f"the journal ends at its entry number {read}, its row tells of {told}: the journal may have been cut at its end"


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
            self.add(
                f"{what} was altered: {'; '.join(differences(row, expected)) or 'it is of another kind'}"
            )
