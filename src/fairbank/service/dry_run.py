"""The one way from a use case to the bank: a request is carried out, or for a dry run only foretold, after the very same checks.

Use cases around a counter carry out, the same around a Foreteller only tell what would be; who asks is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import Request, SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.bank.run import RunRecord
from fairbank.bank.term_changes import changes
from fairbank.bank.transaction_data import TransactionData
from fairbank.core.time import Instant
from fairbank.service.identity import Asker
from fairbank.service.ledger import Ledger
from fairbank.service.terms import last_terms
from fairbank.store.contract import Store


class DryRunEntry(NamedTuple):
    """An entry that would be written, with numbers that others will get, and what it stands for.

    `run` is the record of the run that it is about, `changed` what would become of terms by it. `opens`: its book would be opened by this
    request. `numbers` is what its details call the number of the project or token that it tells of, where that would be new too.
    """

    entry: Entry
    run: RunRecord | None
    changed: Mapping[str, Any] | None
    opens: bool
    numbers: str | None


class Foretold(Exception):
    """What a request would change. It is raised in place of the answer, so that nothing which follows upon an answer happens."""

    def __init__(self, entries: Sequence[DryRunEntry]) -> None:
        super().__init__("only foretold")
        self.entries = entries


class Judge(Protocol):
    """Whom use cases ask: the counter, or a Foreteller in its place."""

    def ask(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]: ...


class Foreteller:
    """Says no as the bank would, and changes nothing."""

    def __init__(self, bank: Ledger) -> None:
        self._bank = bank

    def ask(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]:
        """The bank's no to each request. Raises Foretold at the first that would be granted; Unavailable."""
        return [self._refusal(each) for each in batch]

    def _refusal(self, asked: SubmittedRequest) -> Refusal:
        outcome, work = self._bank.foretell(asked)
        if isinstance(outcome, Refusal):
            return outcome
        changed = changes(_terms_before(self._bank.store, work.entries), work.entries)
        raise Foretold([_planned(each, work, changed.get(each.id)) for each in work.entries])


def ask(judge: Judge, asker: Asker, request: Request, now: Instant) -> Outcome:
    """What the bank answers to the request. Raises Busy, Unavailable; Foretold instead of a yes, where it is only foretold."""
    return judge.ask([SubmittedRequest(request, now, asker.actor, asker.acting_as)])[0]


def _planned(entry: Entry, work: TransactionData, changed: Mapping[str, Any] | None) -> DryRunEntry:
    new = {
        Kind.PROJECT: ("project", work.changes.new_projects),
        Kind.TOKEN: ("token", work.changes.new_tokens),
    }
    name, numbers = new.get(entry.kind, ("", set[int]()))
    return DryRunEntry(
        entry,
        next((each for each in work.runs.values() if each.id == entry.run), None),
        changed,
        opens=entry.book in work.changes.opened,
        numbers=name if facts_of(entry).get(name) in numbers else None,
    )


def _terms_before(store: Store, entries: list[Entry]) -> Entry | None:
    """The entry that says what the terms are now, where one of these is to change them."""
    book = next((each.book for each in entries if each.kind is Kind.TERMS), None)
    if book is None:
        return None
    with store.reading() as reader:
        return last_terms(reader, book)
