"""The audit: a book read again from its first entry, and every row that does not follow from it.

The rows of allocations, runs, users, projects and members hold nothing that the journal does not say; here that is checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairbank.bank.allocation import NO_LINK, Allocation, AllocationState
from fairbank.bank.entry import OFFICE, Entry, Kind, link_of
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.run import NEXT, RunEvent, RunRecord, RunState, UserSums
from fairbank.cluster.job import Run
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as the journal says: in which book (0 is the office's), at which entry, what."""

    book: int
    what: str
    entry: int | None = None


class Head(msgspec.Struct, frozen=True):
    """How far a book was when somebody wrote it down: kept elsewhere, it betrays even a journal rewritten from the start."""

    book: int
    seq: int
    link: bytes


_replace = msgspec.structs.replace
_facts = msgspec.json.Decoder(dict[str, Any]).decode


class _Effect(NamedTuple):
    """What an entry adds to the sums, in multiples of its amount, and whether it closes the hold of its run."""

    deposits: int = 0
    charges: int = 0
    holds: int = 0
    closes: bool = False


_OF_CREDIT = {
    Kind.DEPOSIT: _Effect(deposits=1),
    Kind.TRANSFER_IN: _Effect(deposits=1),
    Kind.WITHDRAW: _Effect(deposits=-1),
    Kind.TRANSFER_OUT: _Effect(deposits=-1),
}
_OF_RUNS = {
    Kind.HOLD: _Effect(holds=1),
    Kind.ADJUST: _Effect(holds=1),
    Kind.CHARGE: _Effect(charges=1, closes=True),
    Kind.RELEASE: _Effect(closes=True),
    Kind.LAPSE: _Effect(closes=True),
    Kind.REFUND: _Effect(charges=-1),
}
_ELSE = _Effect()
_TERMS = (Kind.OPEN, Kind.TERMS)
_NOTHING, _NOBODY = SuMinutes(0), UserSums()


class Fold:
    """One book, read entry by entry: what its rows must be, and what is wrong with the entries themselves."""

    def __init__(self, book: int, head: Head | None = None) -> None:
        self.book = book
        self.findings: list[Finding] = []
        self.allocation: Allocation | None = None
        self.runs: dict[int, RunRecord] = {}
        self.users: dict[int, UserSums] = {}
        self.projects: dict[int, Project] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self.seq, self.link = 0, NO_LINK
        self._sums = (0, 0, 0)
        self._limit = self._overrun = 0
        self._head = head

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        self._check_chain(entry)
        effect, closed = _OF_RUNS.get(entry.kind), 0
        try:
            if effect is None:
                self._apply(entry)
            else:
                closed = self._settle(entry, effect)
        except (KeyError, TypeError, ValueError) as bad:  # ValueError is also what unreadable JSON raises
            self._find(entry, f"its details cannot be read: {bad!r}")
        self._check_sums(entry, effect or _OF_CREDIT.get(entry.kind, _ELSE), closed)
        self.seq, self.link = entry.seq, entry.link

    def _apply(self, entry: Entry) -> None:
        """What an entry that is no run's does to the rows."""
        if entry.kind in _TERMS:
            self._terms(entry)
        elif entry.kind is Kind.CAP:
            self._cap(entry)
        elif self.book == OFFICE:
            self._office(entry)

    def _check_chain(self, entry: Entry) -> None:
        if entry.seq != self.seq + 1:
            self._find(entry, f"after entry number {self.seq} comes {entry.seq}: entries are missing or were added")
        if link_of(entry, self.link) != entry.link:
            self._find(entry, "it is not what was written: its link does not follow from it and the entry before")
        if self._head is not None and entry.seq == self._head.seq and entry.link != self._head.link:
            self._find(entry, "the head that was written down is another: the book was rewritten")

    def _check_sums(self, entry: Entry, effect: _Effect, closed: int) -> None:
        """`closed` is what the entry takes off the held sum beside its effect."""
        deposited, charged, held = self._sums
        amount = entry.amount
        expected = (deposited + effect.deposits * amount, charged + effect.charges * amount, held + effect.holds * amount - closed)
        found = (entry.deposited, entry.charged, entry.held)
        if found != expected:
            self._find(entry, f"its sums {found} do not follow from {self._sums}: {expected} was due")
        if entry.credit_limit != self._limit and entry.kind not in _TERMS:
            self._find(entry, "the credit limit changes without a word")
        below = entry.charged + entry.held - entry.deposited - entry.credit_limit
        if below > entry.overrun or (entry.overrun != self._overrun and entry.overrun != below):
            self._find(entry, f"{below} SU-minutes are drawn beyond what there is, {entry.overrun} were allowed")
        self._sums, self._limit, self._overrun = found, entry.credit_limit, entry.overrun

    def _find(self, entry: Entry | None, what: str) -> None:
        self.findings.append(Finding(self.book, what, entry.id if entry else None))

    # --- runs ---

    def _settle(self, entry: Entry, effect: _Effect) -> int:
        """Apply an entry to its run and its owner; what it takes off the held sum."""
        facts = _facts(entry.details) if entry.details else {}
        number, owner = entry.run, entry.owner
        if number is None or owner is None:
            self._find(entry, "it names no run")
            return 0
        run = _new_run(entry, facts) if number == entry.id else self.runs.get(number)
        if run is None or run.owner != owner:
            self._find(entry, f"its run {number} was never opened in this book for this user")
            return 0
        if not _may_follow(run, entry):
            self._find(entry, f"a {entry.kind.value} cannot follow: run {run.run} is {run.state.value} already")
        closed = run.held if effect.closes else 0
        self.runs[number] = _after(run, entry, facts)
        sums = self.users.get(owner, _NOBODY)
        charged, held = sums.charged + effect.charges * entry.amount, sums.held + effect.holds * entry.amount - closed
        self.users[owner] = UserSums(SuMinutes(charged), SuMinutes(held), sums.cap)
        return closed

    # --- terms and office ---

    def _cap(self, entry: Entry) -> None:
        facts = _facts(entry.details or "{}")
        uid = entry.owner or 0
        sums = self.users.get(uid, _NOBODY)
        self.users[uid] = UserSums(sums.charged, sums.held, facts.get("cap"))

    def _terms(self, entry: Entry) -> None:
        facts = _facts(entry.details or "{}")
        self._limit = entry.credit_limit
        self.allocation = Allocation(
            id=self.book,
            project=facts["project"],
            resource=facts["resource"],
            category=facts["category"],
            start=facts["start"],
            end=facts["end"],
            shared=facts["shared"],
            state=AllocationState(facts["state"]),
        )

    def _office(self, entry: Entry) -> None:
        facts = _facts(entry.details or "{}")
        if entry.kind is Kind.PROJECT:
            number = facts["project"]
            self.projects[number] = Project(
                id=number, gname=facts["gname"], gid=facts["gid"], account=facts["account"], parent=facts["parent"]
            )
        elif entry.kind is Kind.MEMBER:
            where = (facts["project"], facts["uid"])
            self.members.pop(where, None)
            if facts["role"] is not None:
                self.members[where] = Member(*where, Role(facts["role"]))

    # --- rows ---

    def finish(self) -> None:
        """No more entries: the book must have come at least as far as the head that was written down."""
        if self._head is not None and self.seq < self._head.seq:
            self._find(None, f"it ends at entry number {self.seq}; {self._head.seq} was written down: entries are missing")

    def check_allocation(self, row: Allocation | None) -> None:
        """Compare with the allocation's row."""
        if self.allocation is None or row is None:
            self._find(None, "its row is missing" if row is None else "no entry opens it")
            return
        expected = _replace(
            self.allocation,
            deposited=self._sums[0],
            charged=self._sums[1],
            held=self._sums[2],
            credit_limit=self._limit,
            overrun=self._overrun,
            seq=self.seq,
            link=self.link,
        )
        self._compare("its row", row, expected)

    def check_run(self, row: RunRecord) -> None:
        """Compare with a run's row; the run is then done with."""
        expected = self.runs.pop(row.id, None)
        if row != expected:  # asked here already: naming a run costs more than comparing it
            self._compare(f"the row of run {row.run}", row, expected)

    def check_user(self, uid: int, row: UserSums) -> None:
        """Compare with a user's row; the user is then done with."""
        self._compare(f"the sums of user {uid}", row, self.users.pop(uid, None))

    def check_project(self, row: Project) -> None:
        self._compare(f"the row of project {row.id}", row, self.projects.pop(row.id, None))

    def check_member(self, row: Member) -> None:
        self._compare(f"the role of user {row.uid} in project {row.project}", row, self.members.pop((row.project, row.uid), None))

    def check_left_over(self) -> None:
        """What the journal speaks of and no row was shown for is missing."""
        for run in self.runs.values():
            self._find(None, f"the row of run {run.run} is missing")
        for uid, sums in self.users.items():
            if sums != UserSums():
                self._find(None, f"the sums of user {uid} are missing")
        for project in self.projects:
            self._find(None, f"the row of project {project} is missing")
        for number, uid in self.members:
            self._find(None, f"the role of user {uid} in project {number} is missing")

    def _compare(self, what: str, row: msgspec.Struct, expected: msgspec.Struct | None) -> None:
        if expected is None:
            self._find(None, f"{what} was added: the journal knows nothing of it")
        elif row != expected:
            fields = [name for name in row.__struct_fields__ if getattr(row, name) != getattr(expected, name)]
            self._find(
                None, f"{what} was altered: {', '.join(f'{n} is {getattr(row, n)!r}, due {getattr(expected, n)!r}' for n in fields)}"
            )


_EVENTS = {Kind.ADJUST: RunEvent.ADJUST, Kind.CHARGE: RunEvent.CHARGE, Kind.RELEASE: RunEvent.RELEASE, Kind.LAPSE: RunEvent.LAPSE}
_OPENING = (Kind.HOLD, Kind.CHARGE, Kind.RELEASE)


def _may_follow(run: RunRecord, entry: Entry) -> bool:
    """Whether a run's life has room for the entry: it is born once, resolved once, and refunded only what it was charged."""
    if run.id == entry.id:
        return entry.kind in _OPENING
    if entry.kind is Kind.REFUND:
        return run.state is RunState.CHARGED and run.refunded + entry.amount <= run.charged
    event = _EVENTS.get(entry.kind)
    return event is not None and (run.state, event) in NEXT


def _new_run(entry: Entry, facts: dict[str, Any]) -> RunRecord:
    return RunRecord(
        id=entry.id,
        run=Run(*facts["run"]),
        allocation=entry.book,
        owner=entry.owner or 0,
        partition=facts["partition"],
        state=RunState.HELD,
        held=SuMinutes(entry.amount if entry.kind is Kind.HOLD else 0),
        start=facts["start"],
        until=facts["until"],
    )


def _after(run: RunRecord, entry: Entry, facts: dict[str, Any]) -> RunRecord:
    match entry.kind:
        case Kind.HOLD:
            return run if run.id == entry.id else _replace(run, held=SuMinutes(entry.amount))
        case Kind.CHARGE:
            return _resolved(run, facts, RunState.CHARGED, SuMinutes(entry.amount))
        case Kind.RELEASE:
            return _resolved(run, facts, RunState.RELEASED, _NOTHING)
        case Kind.LAPSE:
            return _replace(run, held=_NOTHING, state=RunState.LAPSED)
        case Kind.ADJUST:
            return _replace(run, held=SuMinutes(run.held + entry.amount), until=Instant(facts["until"]))
        case _:
            return _replace(run, refunded=SuMinutes(run.refunded + entry.amount))


def _resolved(run: RunRecord, facts: dict[str, Any], state: RunState, charged: SuMinutes) -> RunRecord:
    return _replace(
        run,
        state=state,
        held=_NOTHING,
        charged=charged,
        written_off=facts["written_off"],
        ended=facts["ended"],
        outcome=facts["outcome"],
        elapsed_seconds=facts["elapsed_seconds"],
    )
