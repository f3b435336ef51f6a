"""Statement of an allocation: a page of its journal, as a user may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from fairbank.bank.entry import EFFECTS, OF_RUNS, OF_TERMS, Entry, Kind, term_changes
from fairbank.bank.query import Balance, EntryQuery, Page
from fairbank.bank.refusals import CREDIT_REASONS, refusal_of
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.service.access.identity import Identity
from fairbank.store.contract import Reader

_MOVES_CREDIT = OF_TERMS | frozenset(EFFECTS)
"""Kinds of entries that may move credit: new terms may have another credit limit."""
_ALL_TIME = Instant(0), LAST_INSTANT


class Statement(msgspec.Struct, frozen=True):
    """Page of one allocation's journal, in the order of time.

    `opening` is the last entry before the page, `closing` the last one of the page; None at the
    beginning of the journal. `changes` are the terms that entries of the page changed, by entry
    number. `next` is the `seq` after which the next page follows, if any.
    """

    balance: Balance
    opening: Entry | None
    closing: Entry | None
    entries: list[Entry]
    changes: Mapping[int, dict[str, Any]]
    next: int | None


class VisibleJournal(NamedTuple):
    """Entries of an allocation in a period, as a user may see them."""

    reader: Reader
    allocation: int
    period: tuple[Instant, Instant]
    identity: Identity
    every: bool

    def read(self, page: Page) -> tuple[list[Entry], Mapping[int, dict[str, Any]]]:
        """Return the entries of a page and one more, if there is one, and all changed terms."""
        shown: list[Entry] = []
        changes: dict[int, dict[str, Any]] = {}
        after, kinds = page.after, None if self.every else _MOVES_CREDIT
        # Few entries are hidden, so a second read is rare.
        while len(shown) <= page.limit:
            read = Page(page.limit + 1, after=after, newest_first=page.newest_first)
            entries = self.reader.statement(self.allocation, *self.period, read, kinds)
            in_order = entries[::-1] if page.newest_first else entries
            changes |= term_changes(_terms_before(self.reader, in_order), in_order)
            idle = set() if self.every else _without_movement(self.reader, in_order)
            shown += [
                entry
                for entry in entries
                if entry.id not in idle and self._is_shown(entry, changes)
            ]
            if len(entries) < read.size:
                break
            after = entries[-1].seq
        return shown, changes

    def _is_shown(self, entry: Entry, changes: Mapping[int, dict[str, Any]]) -> bool:
        if _concerns_its_sender(entry):
            return self.every and self.identity.sender_of_faults in (None, entry.actor)
        if self.every or entry.kind in EFFECTS:
            return True
        if entry.kind is Kind.OPEN:
            return entry.credit_limit > 0
        return "credit_limit" in changes.get(entry.id, ())


def _concerns_its_sender(entry: Entry) -> bool:
    """Return True for a refused request that is not the want of credit of a job."""
    if entry.kind is Kind.REFUSAL:
        return refusal_of(entry).reason not in CREDIT_REASONS
    return entry.kind is Kind.DECLINED


def _without_movement(reader: Reader, entries: Sequence[Entry]) -> set[int]:
    """Return the ids of entries of runs that changed no sum, such as the hold of a free run.

    Args:
        entries: in the order of the journal; what is left out between them changes no sum.
    """
    if not any(entry.amount == 0 for entry in entries):
        return set()
    before = entry_before(reader, entries[0])
    return {
        entry.id
        for last, entry in pairwise([before, *entries])
        if entry is not None
        and entry.kind in OF_RUNS
        and entry.amount == 0
        # A charge of 0 moves credit if it frees a hold.
        and entry.held == (0 if last is None else last.held)
    }


def entry_before(reader: Reader, entry: Entry) -> Entry | None:
    """Return the entry of the same journal before this one, if any."""
    page = Page(1, after=entry.seq - 2)
    before = [] if entry.seq == 1 else reader.statement(entry.allocation, *_ALL_TIME, page)
    return next(iter(before), None)


def _terms_before(reader: Reader, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry with the terms before the first of these entries that changes them, if
    any.
    """
    first = next((entry for entry in entries if entry.kind in OF_TERMS), None)
    return (
        None
        if first is None or first.seq == 1
        else last_terms(reader, first.allocation, before=first.id)
    )


def last_terms(reader: Reader, allocation: int, *, before: int | None = None) -> Entry | None:
    """Return an allocation's last entry with terms, if any.

    Args:
        reader: reads the journal.
        allocation: the allocation, by number.
        before: the id of an entry: only earlier ones count; None: all.
    """
    query = EntryQuery(allocation=allocation, kinds=OF_TERMS)
    page = reader.entries(query, Page(1, after=before, newest_first=True))
    return next(iter(page), None)
