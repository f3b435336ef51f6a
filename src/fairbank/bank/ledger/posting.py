"""Posting an entry that may take another back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry, Kind
from fairbank.bank.wish import Asked
from fairbank.bank.working_set import WorkingSet

_encode = msgspec.json.Encoder().encode
_NOTHING: Mapping[str, object] = {}


def post(
    work: WorkingSet,
    asked: Asked,
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
    entry = work.post(
        asked,
        kind,
        amount,
        allocation,
        run=run,
        owner=owner,
        details=_encode(told).decode() if told else None,
    )
    return entry if undoes is None else work.undo(undoes, entry)
