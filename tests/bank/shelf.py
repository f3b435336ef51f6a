"""Store in memory that loads exactly the rows of a lock set.

A row that the lock set lacks is not there, so that a missing row shows as another answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, subject_of, undone_by
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


def _is_wanted(row: Allocation, reaches: Iterable[tuple[int, str, AllocationFilter]]) -> bool:
    return any(
        (project, resource) == (row.project, row.resource) and reach.has(row)
        for project, resource, reach in reaches
    )


class Shelf:
    """All rows of a bank, and its journal."""

    def __init__(self) -> None:
        self.rows = TransactionData(registry=RegistryRows(head=RegistryHead()))
        self.journal: list[Entry] = []
        self.loads = 0

    def ask(self, batch: Sequence[SubmittedRequest], policy: Policy) -> list[Outcome]:
        """Apply a batch in one transaction, as the bank does."""
        try:
            return self._try(batch, policy, lock_set_of(batch))
        except RegistryNotLoaded:
            return self._try(batch, policy, lock_set_of(batch, registry=True))

    def _try(
        self, batch: Sequence[SubmittedRequest], policy: Policy, needs: LockSet
    ) -> list[Outcome]:
        work = self._loaded(needs)
        outcomes = [apply(work, asked, policy) for asked in batch]
        self._put(work)
        return outcomes

    def _loaded(self, needs: LockSet) -> TransactionData:
        self.loads += 1
        rows = self.rows
        runs = [rows.runs[run] for run in needs.runs if run in rows.runs]
        numbers = needs.allocations | {each.allocation for each in runs}
        reaches = list(needs.filters({each.run for each in runs}))
        allocations = [
            each
            for each in rows.allocations.values()
            if each.id in numbers or each.project in needs.closing or _is_wanted(each, reaches)
        ]
        drawn = needs.caps | {(each.allocation, each.owner) for each in runs}
        for each in allocations:
            drawn |= {(each.id, uid) for uid in needs.owners.get((each.project, each.resource), ())}
        lines = (
            {above for number in needs.projects for above in self._line(number)}
            if needs.with_parents
            else set()
        )
        taken = {
            (what, getattr(each, what))
            for each in needs.creating
            for what in ("gname", "gid", "account")
        }
        enriched = {
            rows.allocations[each].project for each in needs.credited if each in rows.allocations
        }
        told = entries_of_runs(needs, runs)
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
                by_key=[entry for entry in self.journal if (entry.actor, entry.key) in needs.keys],
                of_runs=[entry for entry in self.journal if entry.id in told],
                undoing=[entry for entry in self.journal if undone_by(entry) in needs.undone],
                of_terms=[entry for entry in self.journal if subject_of(entry) in needs.subjects],
            ),
            registry=RegistryRows(
                head=rows.registry if needs.registry else None,
                projects=[
                    each
                    for each in rows.projects.values()
                    if each.id in needs.projects | lines | enriched
                    or each.parent in needs.closing
                    or taken & {("gname", each.gname), ("gid", each.gid), ("account", each.account)}
                ],
                members=[rows.members[pair] for pair in needs.members if pair in rows.members],
                tokens=[
                    each
                    for each in rows.tokens.values()
                    if each.id in needs.tokens or each.digest in needs.digests
                ],
                held_runs=[
                    (each.project, run)
                    for run, each in rows.runs.items()
                    if each.project in needs.closing and each.state is RunState.HELD
                ],
                used={number for number in needs.renaming if rows.is_used(number)},
            ),
            ids=NewIds(
                entries=range(entries, entries + needs.entries),
                allocations=range(opened, opened + needs.opens),
                projects=range(created, created + needs.creates),
                tokens=range(issued, issued + needs.issues),
            ),
        )

    def _line(self, number: int | None) -> list[int]:
        found = self.rows.projects.get(number or 0)
        return [found.id, *self._line(found.parent)] if found else []

    def _put(self, work: TransactionData) -> None:
        """Put back what changed, and nothing else."""
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
