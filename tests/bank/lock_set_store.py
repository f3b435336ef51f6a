"""Store in memory that loads exactly the rows of a lock set.

Other rows are not loaded, so that an incomplete lock set changes the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, subject_of, undone_entry
from fairbank.bank.lock_set import AllocationFilter, LockSet, entries_of_runs, lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome, apply
from fairbank.bank.run import RunState
from fairbank.bank.transaction_data import (
    LoadedEntries,
    NewIds,
    RegistryHead,
    RegistryNotLoaded,
    RegistryRows,
    TransactionData,
)


def _is_in_lock_set(row: Allocation, reaches: Iterable[tuple[int, str, AllocationFilter]]) -> bool:
    return any(
        (project, resource) == (row.terms.project, row.terms.resource) and reach.has(row)
        for project, resource, reach in reaches
    )


class LockSetStore:
    """All rows of a bank, and its journal."""

    def __init__(self) -> None:
        self.rows = TransactionData(registry=RegistryRows(head=RegistryHead()))
        self.journal: list[Entry] = []
        self.loads = 0

    def ask(self, batch: Sequence[SubmittedRequest], policy: Policy) -> list[Outcome]:
        """Apply a batch in one transaction, as the bank does."""
        try:
            return self._apply(batch, policy, lock_set_of(batch))
        except RegistryNotLoaded:
            return self._apply(batch, policy, lock_set_of(batch, registry=True))

    def _apply(
        self, batch: Sequence[SubmittedRequest], policy: Policy, lock_set: LockSet
    ) -> list[Outcome]:
        work = self._load(lock_set)
        outcomes = [apply(work, submitted, policy) for submitted in batch]
        self._store(work)
        return outcomes

    def _load(self, lock_set: LockSet) -> TransactionData:
        self.loads += 1
        rows = self.rows
        runs = [rows.runs[run] for run in lock_set.runs if run in rows.runs]
        numbers = lock_set.allocations | {record.allocation for record in runs}
        reaches = list(lock_set.filters({record.reported.run for record in runs}))
        allocations = [
            row
            for row in rows.allocations.values()
            if row.id in numbers
            or row.terms.project in lock_set.closing
            or _is_in_lock_set(row, reaches)
        ]
        drawn = lock_set.caps | {(record.allocation, record.owner) for record in runs}
        for allocation in allocations:
            drawn |= {
                (allocation.id, uid)
                for uid in lock_set.owners.get(
                    (allocation.terms.project, allocation.terms.resource), ()
                )
            }
        lines = (
            {above for number in lock_set.projects for above in self._chain(number)}
            if lock_set.with_parents
            else set()
        )
        taken = {
            (what, getattr(request, what))
            for request in lock_set.creating
            for what in ("gname", "gid", "account")
        }
        credited = {
            rows.allocations[number].terms.project
            for number in lock_set.credited
            if number in rows.allocations
        }
        set_by = entries_of_runs(lock_set, runs)
        entries, opened, created, issued = (
            len(self.journal) + 1,
            len(rows.allocations) + 1,
            len(rows.projects) + 1,
            len(rows.tokens) + 1,
        )
        return TransactionData(
            allocations=allocations,
            runs=runs,
            users=[(*pair, rows.users[pair]) for pair in drawn if pair in rows.users],
            loaded=LoadedEntries(
                by_key=[
                    entry for entry in self.journal if (entry.actor, entry.key) in lock_set.keys
                ],
                of_runs=[entry for entry in self.journal if entry.id in set_by],
                undoing=[entry for entry in self.journal if undone_entry(entry) in lock_set.undone],
                of_terms=[
                    entry for entry in self.journal if subject_of(entry) in lock_set.subjects
                ],
            ),
            registry=RegistryRows(
                head=rows.registry if lock_set.registry else None,
                projects=[
                    project
                    for project in rows.projects.values()
                    if project.id in lock_set.projects | lines | credited
                    or project.parent in lock_set.closing
                    or taken
                    & {("gname", project.gname), ("gid", project.gid), ("account", project.account)}
                ],
                members=[rows.members[pair] for pair in lock_set.members if pair in rows.members],
                tokens=[
                    token
                    for token in rows.tokens.values()
                    if token.id in lock_set.tokens or token.digest in lock_set.digests
                ],
                held_runs=[
                    (record.reported.project, run)
                    for run, record in rows.runs.items()
                    if record.reported.project in lock_set.closing and record.state is RunState.HELD
                ],
                used={number for number in lock_set.renaming if rows.is_used(number)},
            ),
            ids=NewIds(
                entries=range(entries, entries + lock_set.entries),
                allocations=range(opened, opened + lock_set.opens),
                projects=range(created, created + lock_set.creates),
                tokens=range(issued, issued + lock_set.issues),
            ),
        )

    def _chain(self, number: int | None) -> list[int]:
        result = self.rows.projects.get(number or 0)
        return [result.id, *self._chain(result.parent)] if result else []

    def _store(self, work: TransactionData) -> None:
        """Store the changed rows."""
        rows, changes = self.rows, work.changes
        rows.allocations |= {
            number: work.allocations[number] for number in changes.opened | changes.touched
        }
        rows.runs |= {run: work.runs[run] for run in changes.new_runs | changes.changed_runs}
        rows.users |= {pair: work.users[pair] for pair in changes.changed_users}
        rows.projects |= {
            number: work.projects[number]
            for number in changes.new_projects | changes.changed_projects
        }
        for pair in changes.changed_members:
            rows.members.pop(pair, None)
            if pair in work.members:
                rows.members[pair] = work.members[pair]
        rows.tokens |= {
            number: work.tokens[number] for number in changes.new_tokens | changes.changed_tokens
        }
        rows.registry = work.registry or rows.registry
        self.journal += work.entries
