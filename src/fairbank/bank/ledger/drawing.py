"""What all rules of runs share: whether an allocation can carry more, how its sums move, and what entries tell of a run."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.book import Book
from fairbank.bank.refusal import Reason
from fairbank.bank.run import RunRecord, UserSums
from fairbank.values.units import SuMinutes

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode


def objection(book: Book, allocation: Allocation, owner: int, more: int) -> Reason | None:
    """Why `allocation` cannot carry `more` for `owner`; None if it can."""
    if allocation.state is AllocationState.FROZEN:
        return Reason.FROZEN
    if more > allocation.available:
        return Reason.OVERDRAWN
    sums = book.sums_of(allocation.id, owner)
    if sums.cap is not None and sums.charged + sums.held + more > sums.cap:
        return Reason.CAPPED
    return None


def moved(book: Book, allocation: Allocation, owner: int, *, charged: int = 0, held: int = 0, below: bool = False) -> Allocation:
    """`allocation` with its sums moved, and the owner's sums moved alike. `below`: policy lets `available` go below zero."""
    sums = book.sums_of(allocation.id, owner)
    book.put_user(allocation.id, owner, UserSums(SuMinutes(sums.charged + charged), SuMinutes(sums.held + held), sums.cap))
    after = _replace(allocation, charged=allocation.charged + charged, held=allocation.held + held)
    return _replace(after, overrun=SuMinutes(max(after.overrun, -after.available))) if below else after


def facts_of(record: RunRecord) -> str:
    """What a run's first entry says of it, so that its row can be checked against the journal."""
    names = ("run", "project", "partition", "start", "until")
    facts = {name: getattr(record, name) for name in names}
    return _encode(facts).decode()


def resolution_of(record: RunRecord) -> str:
    facts = {"outcome": record.outcome, "elapsed_seconds": record.elapsed_seconds, "ended": record.ended, "written_off": record.written_off}
    return _encode(facts).decode()
