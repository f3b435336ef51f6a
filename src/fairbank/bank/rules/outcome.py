"""What comes of a request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.transaction_data import TransactionData


class Done(msgspec.Struct, frozen=True, gc=False):
    """A request that was granted: the entry that says so, and the allocation's figures after it.

    `written_off` is the part of a cost that nobody pays; `cpu_counted` the processor seconds that count of more that were told;
    `again` marks the answer to a request that was granted before.
    """

    entry: int
    amount: int = 0
    allocation: int | None = None
    run: int | None = None
    project: int | None = None
    token: int | None = None
    available: int = 0
    written_off: int = 0
    cpu_counted: int | None = None
    again: bool = False


Outcome = Done | Refusal


def done(
    entry: Entry,
    allocation: Allocation | None,
    *,
    written_off: int = 0,
    cpu_counted: int | None = None,
    project: int | None = None,
    token: int | None = None,
) -> Done:
    """The answer that `entry` gives."""
    return Done(  # by position: so many names take three times as long
        entry.id,
        entry.amount,
        allocation.id if allocation else None,
        entry.run,
        project,
        token,
        allocation.available if allocation else 0,
        written_off,
        cpu_counted,
    )


_encode = msgspec.json.Encoder().encode
_NOTHING: Mapping[str, object] = {}


def post(
    data: TransactionData,
    submitted: SubmittedRequest,
    kind: Kind,
    amount: int,
    allocation: Allocation | None,
    facts: Mapping[str, object] = _NOTHING,
    *,
    undoes: int | None = None,
    run: int | None = None,
    owner: int | None = None,
) -> Entry:
    """Post an entry with its facts; with `undoes` it takes that entry back, says so at their end, where stores look, and is noted."""
    told = facts if undoes is None else {**facts, "undoes": undoes}
    entry = data.post(
        submitted,
        kind,
        amount,
        allocation,
        run=run,
        owner=owner,
        details=_encode(told).decode() if told else None,
    )
    return entry if undoes is None else data.undo(undoes, entry)
