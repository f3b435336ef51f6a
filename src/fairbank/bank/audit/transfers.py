"""Transfers: two entries in the journals of two allocations, which must agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairbank.bank.audit.findings import value_text
from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.core.time import Instant
from fairbank.core.units import show_minutes

TRANSFER_KINDS = frozenset({Kind.TRANSFER_OUT, Kind.TRANSFER_IN})


class RecordedTransfer(NamedTuple):
    """RecordedTransfer as each of its entries tells it. Amounts are in SU-minutes."""

    source: int
    target: int
    amount: int
    at: Instant
    actor: int
    acting_as: int | None

    def __str__(self) -> str:
        at = value_text("start", self.at)
        return (
            f"{show_minutes(self.amount)} from allocation {self.source} to allocation {self.target}"
            f" at {at} by uid {self.actor}"
        )


def transfer_of(entry: Entry) -> RecordedTransfer:
    """Return the transfer of an entry of TRANSFER_KINDS. Raises KeyError, TypeError, ValueError."""
    facts, own = facts_of(entry), entry.allocation
    is_out = entry.kind is Kind.TRANSFER_OUT
    source, target = (own, facts["to"]) if is_out else (facts["from"], own)
    return RecordedTransfer(source, target, entry.amount, entry.at, entry.actor, entry.acting_as)


def is_whole(transfer: RecordedTransfer, entries: Iterable[Entry]) -> bool:
    """Return whether as many of the entries give the transfer as receive it."""
    kinds = [entry.kind for entry in entries if transfer_of(entry) == transfer]
    return kinds.count(Kind.TRANSFER_OUT) == kinds.count(Kind.TRANSFER_IN)
