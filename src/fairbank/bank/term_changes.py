"""What an entry changed of the terms of its allocation: the journal keeps them whole, people ask for the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairbank.bank.entry import OF_TERMS, Entry, Kind, facts_of


def changes(before: Entry | None, entries: Iterable[Entry]) -> Mapping[int, dict[str, Any]]:
    """By the number of each entry that changed terms, those that became others, with what they became; times in seconds since 1970,
    the credit limit in SU-minutes. `entries` are of one book and in its order; `before` is the last one ahead of them that said what the
    terms were: where it is not known, all terms count as changed."""
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
