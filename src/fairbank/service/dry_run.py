"""The one way from a use case to the bank: a wish is carried out, or for a dry run only foretold, after the very same checks.

Use cases around a counter carry out, the same around a Foreteller only tell what would be; who asks is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fairbank.bank.changes import changes
from fairbank.bank.entry import OF_TERMS, Entry, Kind, facts_of
from fairbank.bank.ledger import Outcome
from fairbank.bank.query import EntryQuery, Page
from fairbank.bank.refusal import Refusal
from fairbank.bank.run import RunRecord
from fairbank.bank.wish import Asked, Request
from fairbank.bank.working_set import WorkingSet
from fairbank.core.time import Instant
from fairbank.service.access.identity import Asker
from fairbank.service.ledger import Ledger
from fairbank.store.contract import Reader, Store


class DryRunEntry(NamedTuple):
    """An entry that would be written, with numbers that others will get, and what it stands for.

    `run` is the record of the run that it is about, `changed` what would become of terms by it. `opens`: its book would be opened by this
    wish. `numbers` is what its details call the number of the project or token that it tells of, where that would be new too.
    """

    entry: Entry
    run: RunRecord | None
    changed: Mapping[str, Any] | None
    opens: bool
    numbers: str | None


class DryRunResult(Exception):
    """What a wish would change. It is raised in place of the answer, so that nothing which follows upon an answer happens."""

    def __init__(self, entries: Sequence[DryRunEntry]) -> None:
        super().__init__("only foretold")
        self.entries = entries


class RequestHandler(Protocol):
    """Whom use cases ask: the counter, or a Foreteller in its place."""

    def apply(self, batch: Sequence[Asked]) -> list[Outcome]: ...


class DryRun:
    """Says no as the bank would, and changes nothing."""

    def __init__(self, bank: Ledger) -> None:
        self._bank = bank

    def apply(self, batch: Sequence[Asked]) -> list[Outcome]:
        """The bank's no to each wish. Raises Foretold at the first that would be granted; Unreachable."""
        return [self._refusal(each) for each in batch]

    def _refusal(self, asked: Asked) -> Refusal:
        outcome, work = self._bank.dry_run(asked)
        if isinstance(outcome, Refusal):
            return outcome
        changed = changes(_terms_before(self._bank.store, work.entries), work.entries)
        raise DryRunResult(
            [_dry_run_entry(each, work, changed.get(each.id)) for each in work.entries]
        )


def apply_request(judge: RequestHandler, asker: Asker, wish: Request, now: Instant) -> Outcome:
    """What the bank answers to the wish. Raises Busy, Unreachable; Foretold instead of a yes, where it is only foretold."""
    return judge.apply([Asked(wish, now, asker.actor, asker.acting_as)])[0]


def _dry_run_entry(
    entry: Entry, work: WorkingSet, changed: Mapping[str, Any] | None
) -> DryRunEntry:
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


def last_terms(reader: Reader, book: int, *, before: int | None = None) -> Entry | None:
    """The last entry of the book that says what the terms are; of those ahead of the entry `before`, where one is named."""
    return next(
        iter(
            reader.entries(
                EntryQuery(book=book, kinds=OF_TERMS), Page(1, after=before, newest_first=True)
            )
        ),
        None,
    )
