"""Writing into the working set: entries and their chain, and the rows that change with them."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import OFFICE, Entry, Kind, link_of
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.run import RunRecord, UserSums
from fairbank.bank.token import Token
from fairbank.bank.wish import Asked, digest
from fairbank.bank.working_set.changes import Office, OfficeNeeded
from fairbank.bank.working_set.rows import Rows

_TERMS = Kind.TERMS  # looked up once: `_add` is called for each entry
_replace = msgspec.structs.replace


class WorkingSet(Rows):
    """Rows that judging changes, each change noted for the store."""

    def post(
        self,
        asked: Asked,
        kind: Kind,
        amount: int,
        allocation: Allocation | None,
        *,
        run: int | None = None,
        owner: int | None = None,
        details: str | None = None,
        number: int | None = None,
    ) -> Entry:
        """Add an entry to the book of `allocation` as it is to be after the entry (None: to the office's), and chain it.

        The caller has put the new sums into `allocation`; its `seq` and `link` still are those of the entry before.
        The first entry of a wish carries the wish's key and its fingerprint. Raises OfficeNeeded.
        """
        wish = asked.wish
        first = wish.key is None or (asked.actor, wish.key) not in self.known
        key = wish.key if first else None
        book, seq, before, sums = self._head_of(allocation)
        unlinked = Entry(  # by position: to sort out twenty names takes msgspec ten times as long
            self.next_entry_id() if number is None else number,
            book,
            seq,
            asked.at,
            kind,
            amount,
            run,
            owner,
            asked.actor,
            asked.acting_as,
            key,
            digest(asked) if first and (key is not None or asked.said is not None) else None,
            *sums,
            wish.comment,
            details,
            before,
        )
        return self._add(_replace(unlinked, link=link_of(unlinked, before)), allocation)

    def _head_of(
        self, allocation: Allocation | None
    ) -> tuple[int, int, bytes, tuple[int, int, int, int, int]]:
        """Of the entry to be: its book, its place there, the link before it, and the sums after it. Raises OfficeNeeded."""
        if allocation is not None:
            each = allocation
            return (
                each.id,
                each.seq + 1,
                each.link,
                (each.deposited, each.charged, each.held, each.credit_limit, each.overrun),
            )
        if self.office is None:
            raise OfficeNeeded
        return OFFICE, self.office.seq + 1, self.office.link, (0, 0, 0, 0, 0)

    def _add(self, entry: Entry, allocation: Allocation | None) -> Entry:
        self.entries.append(entry)
        self.told[entry.id] = entry
        if entry.key is not None:
            self.known[entry.actor, entry.key] = entry
        if allocation is None:
            self.office = Office(entry.seq, entry.link)
        else:
            after = self.allocations[entry.book] = _replace(
                allocation, seq=entry.seq, link=entry.link
            )
            self.changes.touched.add(entry.book)
            if entry.kind is _TERMS:
                self.changes.amended.append(after)
        return entry

    def undo(self, undone: int, entry: Entry) -> Entry:
        """Note that `entry`, posted just now, takes the entry `undone` back: it is done once, also within a batch."""
        self.undoing[undone] = entry
        return entry

    def next_entry_id(self) -> int:
        """A fresh entry number; drawn beforehand where the entry's run must carry it too."""
        return next(self.entry_ids)

    def open(self, allocation: Allocation) -> None:
        """Take a new allocation into the set, so that later wishes of the batch see it."""
        self.allocations[allocation.id] = allocation
        self._by_fund.setdefault((allocation.project, allocation.resource), []).append(
            allocation.id
        )
        self.changes.opened.add(allocation.id)

    def put_run(self, record: RunRecord) -> None:
        """Add a run or replace it."""
        run = record.run
        if run not in self.runs:
            self.changes.new_runs.add(run)
        elif run not in self.changes.new_runs:
            self.changes.changed_runs.add(run)
        self.runs[run] = record

    def put_user(self, allocation: int, uid: int, sums: UserSums) -> None:
        """Set what a user drew, and the cap."""
        self.users[allocation, uid] = sums
        self.changes.changed_users.add((allocation, uid))

    def put_project(self, project: Project) -> None:
        """Add a project or replace it."""
        if project.id not in self.projects:
            self.changes.new_projects.add(project.id)
        elif project.id not in self.changes.new_projects:
            self.changes.changed_projects.add(project.id)
        self.projects[project.id] = project

    def put_member(self, project: int, uid: int, role: Role | None) -> None:
        """Set a member's role; None removes the member."""
        if role is None:
            self.members.pop((project, uid), None)
        else:
            self.members[project, uid] = Member(project, uid, role)
        self.changes.changed_members.add((project, uid))

    def add_token(self, token: Token) -> None:
        self.tokens[token.id] = token
        self.changes.new_tokens.add(token.id)

    def put_token(self, token: Token) -> None:
        """Replace a token."""
        self.tokens[token.id] = token
        if token.id not in self.changes.new_tokens:
            self.changes.changed_tokens.add(token.id)
