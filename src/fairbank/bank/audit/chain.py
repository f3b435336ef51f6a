"""Hash chain of a journal: entries are numbered without a gap, and each is linked to the one
before.
"""

from __future__ import annotations

from fairbank.bank.allocation import NO_LINK
from fairbank.bank.audit.findings import Findings, Head
from fairbank.bank.entry import Entry, link_of


class Chain:
    """Last entry read of a journal. If a head was saved earlier, the journal must also contain
    it.
    """

    def __init__(self, findings: Findings, head: Head | None) -> None:
        self.seq, self.link = 0, NO_LINK
        self._findings, self._head = findings, head

    def add(self, entry: Entry) -> None:
        """Check that the entry is the next one, and that it was not changed."""
        if entry.seq != self.seq + 1:
            self._findings.add(
                f"after entry number {self.seq} comes {entry.seq}: entries are missing or were"
                " added",
                entry,
            )
        if link_of(entry, self.link) != entry.link:
            self._findings.add(
                "it is not what was written: its link does not follow from it and the entry before",
                entry,
            )
        if self._head is not None and entry.seq == self._head.seq and entry.link != self._head.link:
            self._findings.add(
                "the head that was written down is another: the book was rewritten", entry
            )
        self.seq, self.link = entry.seq, entry.link

    def finish(self) -> None:
        """Check that the journal is not shorter than at the saved head."""
        if self._head is not None and self.seq < self._head.seq:
            self._findings.add(
                f"it ends at entry number {self.seq}; {self._head.seq} was written down: entries"
                " are missing"
            )
