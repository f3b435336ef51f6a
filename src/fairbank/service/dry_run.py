"""Dry run: a handler that takes the place of the write queue and only checks requests.

The requests pass the same checks, and the use case raises DryRunResult instead of returning an
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.bank.entry import Entry, Kind, facts_of, term_changes
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.bank.run import RunRecord
from fairbank.bank.transaction_data import TransactionData
from fairbank.service.ledger import Ledger
from fairbank.service.statement import last_terms
from fairbank.store.contract import Store


class DryRunEntry(NamedTuple):
    """Entry that a request would write. Its numbers are not reserved.

    `run` is the record of its run, `changed` the allocation terms that it would change. `opens` is
    true if it would be the first entry of its allocation. `numbers` is the key of `details` that
    holds the number of a new project or token, if there is one.
    """

    entry: Entry
    run: RunRecord | None
    changed: Mapping[str, Any] | None
    opens: bool
    numbers: str | None


class DryRunResult(Exception):
    """Entries that a request would write.

    It is an exception, so that a use case skips everything that follows an applied request.
    """

    def __init__(self, entries: Sequence[DryRunEntry]) -> None:
        super().__init__("dry run")
        self.entries = entries


class DryRun:
    """Handler that refuses what the bank would refuse, and changes nothing."""

    def __init__(self, bank: Ledger) -> None:
        self._bank = bank

    def apply(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]:
        """Return the refusals. Raises DryRunResult at the first request that is not refused."""
        return [self._refusal(request) for request in batch]

    def _refusal(self, request: SubmittedRequest) -> Refusal:
        outcome, work = self._bank.dry_run(request)
        if isinstance(outcome, Refusal):
            return outcome
        changed = term_changes(_current_terms(self._bank.store, work.entries), work.entries)
        raise DryRunResult(
            [_dry_run_entry(entry, work, changed.get(entry.id)) for entry in work.entries]
        )


def _dry_run_entry(
    entry: Entry, work: TransactionData, changed: Mapping[str, Any] | None
) -> DryRunEntry:
    new_rows = {
        Kind.PROJECT: ("project", work.changes.new_projects),
        Kind.TOKEN: ("token", work.changes.new_tokens),
    }
    name, numbers = new_rows.get(entry.kind, ("", set[int]()))
    return DryRunEntry(
        entry,
        next((run for run in work.runs.values() if run.id == entry.run), None),
        changed,
        opens=entry.allocation in work.changes.opened,
        numbers=name if facts_of(entry).get(name) in numbers else None,
    )


def _current_terms(store: Store, entries: list[Entry]) -> Entry | None:
    """Return the entry with the current terms if one of these entries changes terms."""
    allocation = next((entry.allocation for entry in entries if entry.kind is Kind.TERMS), None)
    if allocation is None:
        return None
    with store.reading() as reader:
        return last_terms(reader, allocation)
