"""Findings of the audit, and the last entry of a journal, saved to compare with later."""

from __future__ import annotations

import msgspec

from fairbank.bank.audit.descriptions import differences
from fairbank.bank.entry import Entry


class Finding(msgspec.Struct, frozen=True):
    """Difference from the journal of allocation `book`; 0: the registry, None: the store."""

    book: int | None
    what: str
    entry: int | None = None


class Head(msgspec.Struct, frozen=True):
    """Last entry of a journal, saved elsewhere to reveal a journal that was rewritten."""

    book: int
    seq: int
    link: bytes


def cut_off(told: object, read: int) -> str | None:
    """Return the finding if a row, which may hold any type, counts more entries than exist."""
    if not isinstance(told, int) or told <= read:
        return None
    return (
        f"the journal ends at its entry number {read}, its row tells of {told}: the journal may"
        " have been cut at its end"
    )


class Findings:
    """Findings of one journal, in their order."""

    def __init__(self, book: int) -> None:
        self.book = book
        self.list: list[Finding] = []

    def add(self, what: str, entry: Entry | None = None) -> None:
        self.list.append(Finding(self.book, what, entry.id if entry else None))

    def compare(self, what: str, row: msgspec.Struct, expected: msgspec.Struct | None) -> None:
        """Compare a row with what the journal requires.

        Args:
            what: name of the row in the finding.
            row: row of the store.
            expected: row by the journal; None if no entry creates it.
        """
        if expected is None:
            self.add(f"{what} was added: the journal knows nothing of it")
        elif row != expected:
            self.add(
                f"{what} was altered:"
                f" {'; '.join(differences(row, expected)) or 'it is of another kind'}"
            )
