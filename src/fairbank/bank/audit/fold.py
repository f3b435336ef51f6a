"""Journal of one allocation, or the registry, added up entry by entry."""

from __future__ import annotations

from collections import Counter

import msgspec

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationState
from fairbank.bank.audit.findings import Finding, Findings, Head, cut_off, unreadable
from fairbank.bank.audit.registry import ExpectedRegistry
from fairbank.bank.audit.runs import RowAgain, RunRows, after, can_follow, new_run, no_row
from fairbank.bank.audit.transfers import TRANSFER_KINDS, RecordedTransfer, transfer_of
from fairbank.bank.entry import (
    EFFECTS,
    OF_CREDIT,
    OF_RUNS,
    OF_TERMS,
    REGISTRY,
    UNDOING,
    Effect,
    Entry,
    Kind,
    facts_of,
    link_of,
    terms_of,
    undone_entry,
)
from fairbank.bank.run import RunRecord, UserSums
from fairbank.core.units import SuMinutes, show_minutes

_NONE = Effect()
_UNDOABLE = frozenset(UNDOING.values())
_UNDOING_OR_UNDONE = _UNDOABLE.union(UNDOING)
_NO_SUMS = UserSums()


class Fold:
    """Journal as far as it was read, with the rows that follow from it.

    Use: `add` each entry, `finish`, pass it the stored rows, `check_left_over`, read the findings.
    The rows of runs may be passed at any time; the sooner, the less is kept in memory (`audit.runs`
    explains `again`). The journal must contain the `head` that was saved earlier, if any.

    Invariant: `seq` and `link` are those of the last entry read, as are `_sums`, `_limit` and
    `_overrun`. `allocation`, `users`, `registry` and the runs are the rows that the entries read so
    far require. `_undoable` has the entries that may still be undone.
    """

    def __init__(self, journal: int, head: Head | None = None, again: RowAgain = no_row) -> None:
        self.journal = journal
        self.seq, self.link, self._head = 0, NO_LINK, head
        self.allocation: Allocation | None = None
        self.users: dict[int, UserSums] = {}
        self._findings = Findings(journal)
        self._runs = RunRows(self._findings, again)
        self.registry = ExpectedRegistry(self._findings)
        self._sums = (0, 0, 0)
        self._limit = self._overrun = 0
        self._undoable: dict[int, Kind] = {}
        self._moved: set[Kind] = set()
        self.transfers: Counter[RecordedTransfer] = Counter()
        """Transfers out of the allocation, and those into it as negative numbers."""

    @property
    def findings(self) -> list[Finding]:
        """Findings up to now."""
        return self._findings.list

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        self._check_chain(entry)
        effect, closed = OF_RUNS.get(entry.kind), 0
        try:
            if effect is not None:
                closed = self._settle(entry, effect)
            elif entry.kind in OF_TERMS:
                self._terms(entry)
            elif entry.kind is Kind.CAP:
                uid = entry.owner or 0
                sums = self.users.get(uid, _NO_SUMS)
                self.users[uid] = UserSums(sums.charged, sums.held, facts_of(entry).get("cap"))
            elif self.journal == REGISTRY:
                self.registry.apply(entry, facts_of(entry))
            elif entry.kind in TRANSFER_KINDS:
                self.transfers[transfer_of(entry)] += entry.kind is Kind.TRANSFER_OUT or -1
            if entry.kind in _UNDOING_OR_UNDONE:
                self._take_back(entry)
        # ValueError includes unreadable JSON.
        except (KeyError, TypeError, ValueError, OverflowError) as bad:
            self._findings.add(f"its details cannot be read: {unreadable(bad)}", entry)
        if entry.kind in EFFECTS:
            self._moved.add(entry.kind)
            if self.allocation is not None and self.allocation.state is AllocationState.REMOVED:
                self._findings.add("it moves credit in an allocation that was removed", entry)
        self._check_sums(entry, effect or OF_CREDIT.get(entry.kind, _NONE), closed)

    def _check_chain(self, entry: Entry) -> None:
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
        head = self._head
        if head is not None and entry.seq == head.seq and entry.link != head.link:
            self._findings.add("the saved head differs: the journal was rewritten", entry)
        self.seq, self.link = entry.seq, entry.link

    def finish(self) -> None:
        """Check that the journal is not shorter than at the saved head."""
        if self._head is not None and self.seq < self._head.seq:
            self._findings.add(
                f"it ends at entry number {self.seq}; {self._head.seq} was written down: entries"
                " are missing"
            )

    def _check_sums(self, entry: Entry, effect: Effect, closed: int) -> None:
        """Check the sums of an entry. `closed` is the rest of a hold that the entry closes."""
        deposited, charged, held = self._sums
        amount = entry.amount
        expected = (
            deposited + effect.deposits * amount,
            charged + effect.charges * amount,
            held + effect.holds * amount - closed,
        )
        recorded = (entry.deposited, entry.charged, entry.held)
        if recorded != expected:
            there, before, due = (
                " ".join(map(str, sums)) for sums in (recorded, self._sums, expected)
            )
            self._findings.add(
                f"deposited, charged and held are {there} SU-minutes after it, {before} before it:"
                f" {due} was due",
                entry,
            )
        if entry.credit_limit != self._limit and entry.kind not in OF_TERMS:
            self._findings.add("the credit limit changes without an entry about terms", entry)
        below = entry.charged + entry.held - entry.deposited - entry.credit_limit
        if below > entry.overrun or (entry.overrun != self._overrun and entry.overrun != below):
            self._findings.add(
                f"it draws {show_minutes(below)} beyond what there is,"
                f" allowed: {show_minutes(entry.overrun)}",
                entry,
            )
        self._sums, self._limit, self._overrun = recorded, entry.credit_limit, entry.overrun

    # --- what entries do ---

    def _settle(self, entry: Entry, effect: Effect) -> int:
        """Apply an entry to its run and its owner. Return the amount of the hold that it closes."""
        number, owner = entry.run, entry.owner
        if number is None or owner is None:
            self._findings.add("it names no run", entry)
            return 0
        run = new_run(entry) if number == entry.id else self._runs.due(number)
        if run is None or run.owner != owner:
            self._findings.add(
                f"its run {number} was never opened in this journal for this user", entry
            )
            return 0
        if not can_follow(run, entry):
            self._findings.add(
                f"a {entry.kind.value} cannot follow: "
                f"run {run.reported.run} is {run.state.value} already",
                entry,
            )
        closed = run.held if effect.closes else 0
        self._runs.expect(after(run, entry))
        sums = self.users.get(owner, _NO_SUMS)
        charged, held = (
            sums.charged + effect.charges * entry.amount,
            sums.held + effect.holds * entry.amount - closed,
        )
        self.users[owner] = UserSums(SuMinutes(charged), SuMinutes(held), sums.cap)
        return closed

    def _take_back(self, entry: Entry) -> None:
        """Check that an undone entry exists, is of a matching kind, and was not undone before."""
        undone = undone_entry(entry)
        if undone is not None and self._undoable.pop(undone, None) is not UNDOING[entry.kind]:
            self._findings.add(
                f"it takes back entry {undone}, which is not there to be taken back, or was before",
                entry,
            )
        if entry.kind in _UNDOABLE:
            self._undoable[entry.id] = entry.kind

    def _terms(self, entry: Entry) -> None:
        before, self._limit = self.allocation, entry.credit_limit
        self.allocation = Allocation(
            id=self.journal, terms=terms_of(entry), state=AllocationState(facts_of(entry)["state"])
        )
        if self._moved and self.allocation.state is AllocationState.REMOVED:
            self._findings.add("it removes an allocation in which credit has moved", entry)
        if before is not None and Kind.CHARGE in self._moved:
            old, new = before.terms, self.allocation.terms
            if (new.category, new.resource) != (old.category, old.resource):
                self._findings.add("it changes category or resource after a charge", entry)

    # --- rows ---

    def check_allocation(self, row: Allocation | None) -> None:
        """Compare with the row of the allocation."""
        if self.allocation is None or row is None:
            self._findings.add("its row is missing" if row is None else "no entry opens it")
            return
        expected = msgspec.structs.replace(
            self.allocation,
            terms=msgspec.structs.replace(self.allocation.terms, credit_limit=self._limit),
            deposited=self._sums[0],
            charged=self._sums[1],
            held=self._sums[2],
            overrun=self._overrun,
            seq=self.seq,
            link=self.link,
        )
        if (cut := cut_off(row.seq, self.seq)) is not None:
            self._findings.add(cut)
        self._findings.compare("its row", row, expected)

    def check_run(self, row: RunRecord) -> None:
        """Compare with the row of a run; if more entries of it follow, when they are read."""
        self._runs.show(row)

    def check_user(self, uid: int, row: UserSums) -> None:
        """Compare with the row of a user's sums, and forget the user."""
        self._findings.compare(f"the row of the sums of user {uid}", row, self.users.pop(uid, None))

    def check_left_over(self) -> None:
        """Report the rows that the journal requires and that were not shown."""
        self._runs.check_left_over()
        for uid, sums in self.users.items():
            if sums != UserSums():
                self._findings.add(f"the sums of user {uid} are missing")
        self.registry.check_left_over()
