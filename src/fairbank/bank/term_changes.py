"""Changes of the terms of an allocation: an entry has all terms, users want to see the
difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairbank.bank.entry import OF_TERMS, Entry, Kind, facts_of


def changes(before: Entry | None, entries: Iterable[Entry]) -> Mapping[int, dict[str, Any]]:
    """Return the changed terms of each entry of kind TERMS, by entry id, with their new values.

    Times are in seconds since 1970, the credit limit is in SU-minutes.

    Args:
        before: last entry before `entries` that set the terms; None if unknown: then all count as
            changed.
        entries: entries of one allocation, in their order.
    """
    found = {}
    known = {} if before is None else _terms(before)
    for entry in entries:
        if entry.kind not in OF_TERMS:
            continue
        now = _terms(entry)
        if entry.kind is Kind.TERMS:
            found[entry.id] = {
                name: value
                for name, value in now.items()
                if name not in known or known[name] != value
            }
        known = now
    return found


def _terms(entry: Entry) -> dict[str, Any]:
    facts = facts_of(entry)
    facts.pop("undoes", None)
    return {**facts, "credit_limit": entry.credit_limit}
