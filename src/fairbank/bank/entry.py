"""Entries of the journal: they are only added, and each is chained to the one before it.

Each allocation has a chain of its own, so that two servers can write to different allocations at
the same time. Everything without an allocation is in the chain of the
registry (journal 0): projects, members, tokens, actions as another user, and refusals without
allocation. The hash has no key: who can write the database can compute a whole chain again. Only
the last links that `fairbank audit heads` has saved elsewhere show that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from fairbank.bank.allocation import (
    NO_LINK,
    Allocation,
    AllocationState,
    AllocationTerms,
    IdentityEnum,
    ShownState,
)
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes

REGISTRY = 0


class Kind(IdentityEnum):
    """Kind of an entry. The first group moves units, the second changes terms, the third only
    records.

    A refusal is that of a job. Any other refused request with a key is recorded as declined, so
    that a repeated request gets the same answer.
    """

    DEPOSIT = "deposit"
    WITHDRAW = "withdraw"
    TRANSFER_OUT = "transfer-out"
    TRANSFER_IN = "transfer-in"
    HOLD = "hold"
    ADJUST = "adjust"
    CHARGE = "charge"
    RELEASE = "release"
    LAPSE = "lapse"
    REFUND = "refund"
    RECHARGE = "recharge"

    OPEN = "open"
    TERMS = "terms"
    CAP = "cap"

    REFUSAL = "refusal"
    DECLINED = "declined"
    PROJECT = "project"
    MEMBER = "member"
    TOKEN = "token"  # noqa: S105 (a kind of entry)
    NOTE = "note"


class Effect(NamedTuple):
    """Change of sums, in multiples of the amount, and whether the hold of the run is closed."""

    deposits: int = 0
    charges: int = 0
    holds: int = 0
    closes: bool = False

    @property
    def sign(self) -> int:
        """Sign of the amount in the sum that it changes; 0 if the entry only closes a hold."""
        return self.deposits + self.charges + self.holds


OF_CREDIT: Mapping[Kind, Effect] = {
    Kind.DEPOSIT: Effect(deposits=1),
    Kind.TRANSFER_IN: Effect(deposits=1),
    Kind.WITHDRAW: Effect(deposits=-1),
    Kind.TRANSFER_OUT: Effect(deposits=-1),
}
OF_RUNS: Mapping[Kind, Effect] = {
    Kind.HOLD: Effect(holds=1),
    Kind.ADJUST: Effect(holds=1),
    Kind.CHARGE: Effect(charges=1, closes=True),
    Kind.RELEASE: Effect(closes=True),
    Kind.LAPSE: Effect(closes=True),
    Kind.REFUND: Effect(charges=-1),
    Kind.RECHARGE: Effect(charges=1),
}
EFFECTS: Mapping[Kind, Effect] = {**OF_CREDIT, **OF_RUNS}
"""Effects of all kinds that move units: of credit, and of runs."""


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True, array_like=True, gc=False):
    """One record of the journal. `amount` is in SU-minutes; the five sums are those after the
    entry.

    `actor` did it, perhaps as `acting_as`; `owner` is the user of a run, `run` the id of its row.
    `key` is the idempotency key, unique for each actor; `digest` identifies the request of a key or
    a report. `details` is a JSON object. `link` is `link_of(entry, previous link)`.
    """

    id: int
    allocation: int
    seq: int
    at: Instant
    kind: Kind
    amount: int
    run: int | None
    owner: int | None
    actor: int
    acting_as: int | None
    key: str | None
    digest: bytes | None
    deposited: int
    charged: int
    held: int
    credit_limit: int
    overrun: int
    comment: str | None
    details: str | None
    link: bytes = NO_LINK

    @property
    def remaining(self) -> int:
        """Credit that was left after the entry, in SU-minutes."""
        return self.deposited + self.credit_limit - self.charged - self.held


_facts = msgspec.json.Decoder(dict[str, Any]).decode


def facts_of(entry: Entry) -> dict[str, Any]:
    """Return the details of an entry as a dictionary."""
    return _facts(entry.details) if entry.details else {}


UNDOING: Mapping[Kind, Kind] = {
    Kind.DEPOSIT: Kind.WITHDRAW,
    Kind.WITHDRAW: Kind.DEPOSIT,
    Kind.TRANSFER_IN: Kind.TRANSFER_OUT,
    Kind.REFUND: Kind.RECHARGE,
    Kind.RECHARGE: Kind.REFUND,
    Kind.TERMS: Kind.TERMS,
    Kind.CAP: Kind.CAP,
    Kind.MEMBER: Kind.MEMBER,
}
"""Kinds whose entries may undo another entry, with the kind of that entry. Both are in one journal,
and `undoes` is the last field of the details.
"""

READ_BY_UNDO = (*UNDOING, Kind.OPEN)
"""Kinds of entries that an undo reads: what has undone an entry, and later changes of the same."""


def undone_entry(entry: Entry) -> int | None:
    """Return the id of the entry that this entry undoes, or None."""
    return facts_of(entry).get("undoes") if entry.kind in UNDOING else None


OF_TERMS = frozenset({Kind.OPEN, Kind.TERMS})
"""Kinds of entries that set the terms of an allocation."""


def terms_of(entry: Entry) -> AllocationTerms:
    """Return the terms that an entry sets. Raises KeyError if one is missing."""
    facts = facts_of(entry)
    return AllocationTerms(
        project=facts["project"],
        resource=facts["resource"],
        category=facts["category"],
        start=facts["start"],
        end=facts["end"],
        shared=facts["shared"],
        partition=facts.get("partition"),
        reservation=facts.get("reservation"),
        credit_limit=SuMinutes(entry.credit_limit),
    )


_OF_USERS = frozenset({Kind.CAP, Kind.MEMBER})

TERMS = -1
"""Stands for the terms of an allocation, where a user id stands for the user's cap."""


def subject_of(entry: Entry) -> tuple[int, int] | None:
    """Return the subject that an entry sets, or None.

    It is (allocation, TERMS) for terms, (allocation, user) for a cap, and (REGISTRY, user) for a
    role, in any project.
    """
    if entry.kind in OF_TERMS:
        return entry.allocation, TERMS
    if entry.kind in _OF_USERS and entry.owner is not None:
        return entry.allocation, entry.owner
    return None


def term_changes(before: Entry | None, entries: Iterable[Entry]) -> Mapping[int, dict[str, Any]]:
    """Return the changed terms of each entry of kind TERMS, by entry id, with their new values.

    Times are in seconds since 1970, the credit limit is in SU-minutes.

    Args:
        before: last entry before `entries` that set the terms; None if unknown: then all count as
            changed.
        entries: entries of one allocation, in their order.
    """
    changes = {}
    terms_before = {} if before is None else _terms(before)
    for entry in entries:
        if entry.kind not in OF_TERMS:
            continue
        now = _terms(entry)
        if entry.kind is Kind.TERMS:
            changes[entry.id] = {
                name: value
                for name, value in now.items()
                if name not in terms_before or terms_before[name] != value
            }
        terms_before = now
    return changes


class StateSince(NamedTuple):
    """Start of the present state of an allocation, and the reason that staff gave, if any.

    For a planned allocation this is the reason of the grant.
    """

    at: Instant
    reason: str | None


def state_since(allocation: Allocation, entries: Iterable[Entry], now: int) -> StateSince | None:
    """Return since when an allocation is planned, frozen or ended; None for an active one.

    Args:
        entries: all its entries that set terms, in their order.
        now: the current time.
    """
    shown = allocation.shown_state(now)
    if shown is ShownState.ACTIVE:
        return None
    # What set the state; a freeze is not made longer by a change of the period.
    names = ("state", "end") if shown is ShownState.ENDED else ("state",)
    setting, terms_before, grant = None, None, None
    for entry in entries:
        terms = _terms(entry)
        grant = grant or entry
        if terms_before is None or any(terms_before[name] != terms[name] for name in names):
            setting = entry
        terms_before = terms
    start, end = allocation.terms.start, allocation.terms.end
    if setting is None:
        return StateSince(start, None)
    if shown is not ShownState.ENDED:
        source = grant if shown is ShownState.PLANNED and grant is not None else setting
        return StateSince(setting.at, source.comment)
    # Ended by staff, perhaps before its start; otherwise its period was over, of an allocation
    # that was entered with a past period too: its reason is that of the grant.
    is_changed = setting is not grant
    by_staff = is_changed and (setting.at >= end or allocation.state is AllocationState.CANCELLED)
    return StateSince(
        Instant(min(end, setting.at)) if by_staff else end, setting.comment if by_staff else None
    )


def is_ended_early(entries: Iterable[Entry]) -> bool:
    """Return whether an allocation was ended before its time: its end was moved to what was then
    the past.

    Args:
        entries: all its entries that set terms, in their order.
    """
    early: dict[int, bool] = {}
    end: int | None = None
    for entry in entries:
        before, end = end, int(facts_of(entry)["end"])
        # An undo brings an end back, which is what it was.
        early.setdefault(end, before is not None and end < before and end <= entry.at)
    return end is not None and early[end]


def _terms(entry: Entry) -> dict[str, Any]:
    facts = facts_of(entry)
    facts.pop("undoes", None)
    return {**facts, "credit_limit": entry.credit_limit}


_encode = msgspec.msgpack.Encoder().encode
# Only copied: a copy takes two thirds of the time of a new object.
_EMPTY_HASH = blake2b(digest_size=32)


def link_of(entry: Entry, before: bytes) -> bytes:
    """Return the link: blake2b of the fields, with the previous link in place of its own."""
    link = _EMPTY_HASH.copy()
    link.update(
        _encode(entry if entry.link == before else msgspec.structs.replace(entry, link=before))
    )
    return link.digest()
