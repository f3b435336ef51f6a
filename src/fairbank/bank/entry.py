"""The journal: entries that are only ever added, each chained to the one before it in its book.

A book is an allocation's, or the registry's (book 0), where everything is kept that belongs to no allocation: projects,
members, tokens, acting as another user, refusals that met no allocation.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from fairbank.bank.allocation import NO_LINK
from fairbank.core.time import Instant
from fairbank.core.types import IdentityEnum

REGISTRY = 0


class Kind(IdentityEnum):
    """What an entry is about. The first group moves units, the second changes terms, the third only tells.

    A refusal is a job's; whatever else was asked under a key and refused is kept as declined, so that the key has its answer.
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
    TOKEN = "token"  # noqa: S105 (no secret, but what the entry is about)
    NOTE = "note"


class Effect(NamedTuple):
    """What an entry adds to the sums of its book, in multiples of its amount, and whether it closes the hold of its run."""

    deposits: int = 0
    charges: int = 0
    holds: int = 0
    closes: bool = False

    @property
    def sign(self) -> int:
        """1 or -1: which way the amount moves the sum that it belongs to; 0 where a hold is closed, and nothing else."""
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
"""What each kind that moves units does: those of credit, and those of runs."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a book. `amount` is in SU-minutes; the five sums are those after the entry.

    `actor` did it, perhaps acting as `acting_as`; `owner` is the user a run belongs to; `run` the id of its record.
    `key` is the request's idempotency key, its actor's own; `digest` the fingerprint of what was asked, where there was a key
    or a report. `details` is a JSON object: the facts behind the entry. `link` is `link_of(entry, previous link)`.
    """

    id: int
    book: int
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
    def available(self) -> int:
        """What the book had left after it, in SU-minutes."""
        return self.deposited + self.credit_limit - self.charged - self.held


_facts = msgspec.json.Decoder(dict[str, Any]).decode


def facts_of(entry: Entry) -> dict[str, Any]:
    """The facts in its details."""
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
"""Kinds whose entries may take another back, and of which kind that is. They stand in its book, and `undoes` ends their details."""

LOOKED_THROUGH = (*UNDOING, Kind.OPEN)
"""Kinds of which entries are looked for when one is taken back: what undid it, and what else was said of the same."""


def undone_by(entry: Entry) -> int | None:
    """The number of the entry that this one takes back."""
    return facts_of(entry).get("undoes") if entry.kind in UNDOING else None


OF_TERMS = frozenset({Kind.OPEN, Kind.TERMS})
"""Kinds of entries that say what the terms of an allocation are."""

_OF_USERS = frozenset({Kind.CAP, Kind.MEMBER})

TERMS = -1
"""In place of a user: the terms of an allocation rather than somebody's cap in it."""


def tells_of(entry: Entry) -> tuple[int, int] | None:
    """What an entry says anew: the terms of an allocation, as (allocation, TERMS), a cap, as (allocation, user), or a role, in whichever
    project, as (OFFICE, user)."""
    if entry.kind in OF_TERMS:
        return entry.book, TERMS
    return (
        (entry.book, entry.owner) if entry.kind in _OF_USERS and entry.owner is not None else None
    )


_encode = msgspec.msgpack.Encoder().encode
_UNBEGUN = blake2b(
    digest_size=32
)  # only ever copied: that takes two thirds of the time of a new one


def link_of(entry: Entry, before: bytes) -> bytes:
    """The 32 bytes that tie `entry` to the link of the entry before it: blake2b over all its fields with that link in place of its own."""
    link = _UNBEGUN.copy()
    link.update(
        _encode(entry if entry.link == before else msgspec.structs.replace(entry, link=before))
    )
    return link.digest()
