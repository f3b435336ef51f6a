"""The one way from a use case to the bank: a wish is carried out, or for a dry run only foretold, after the very same checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairbank.bank.changes import changes
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.ledger import Outcome
from fairbank.bank.refusal import Refusal
from fairbank.bank.wish import Asked, Request
from fairbank.bank.working_set import WorkingSet
from fairbank.service.askers import Asker
from fairbank.service.counter import Counter
from fairbank.service.terms import last_terms
from fairbank.store.contract import Store
from fairbank.values.time import Instant


class Foretold(Exception):
    """What a wish would change. It is raised in place of the answer, so that nothing which follows upon an answer happens.

    `work` is the working set in which the wish was judged; its entries, and whatever is new in it, have numbers that others will get.
    `changes` has what became of terms, by the numbers of the entries that changed them.
    """

    def __init__(self, work: WorkingSet, changes: Mapping[int, Mapping[str, Any]]) -> None:
        super().__init__("only foretold")
        self.work, self.changes = work, changes


def ask(counter: Counter, asker: Asker, wish: Request, now: Instant) -> Outcome:
    """What the bank answers to the wish. Raises Foretold instead of granting it to an asker who only wants to know; Busy, Unreachable."""
    asked = Asked(wish, now, asker.actor, asker.acting_as)
    if not asker.foretelling:
        return counter.ask([asked])[0]
    outcome, work = counter.bank.foretell(asked)
    if isinstance(outcome, Refusal):
        return outcome
    raise Foretold(work, changes(_terms_before(counter.bank.store, work.entries), work.entries))


def _terms_before(store: Store, entries: list[Entry]) -> Entry | None:
    """The entry that says what the terms are now, where one of these is to change them."""
    book = next((each.book for each in entries if each.kind is Kind.TERMS), None)
    if book is None:
        return None
    with store.reading() as reader:
        return last_terms(reader, book)
