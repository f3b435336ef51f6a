"""A wish with who asks and when, and what "the same wish again" means."""

from __future__ import annotations

import hashlib

import msgspec

from fairbank.bank.wish.credit import Deposit, Transfer, Withdraw
from fairbank.bank.wish.office import (
    AmendProject,
    CreateProject,
    IssueToken,
    Note,
    RemoveProject,
    RevokeToken,
    SetMember,
)
from fairbank.bank.wish.runs import Adjust, Charge, Hold, Lapse, Refund, Release, Unpriced
from fairbank.bank.wish.terms import Amend, Expire, Open, SetCap
from fairbank.bank.wish.undoing import Undo
from fairbank.core.time import Instant

Request = (
    Hold
    | Adjust
    | Charge
    | Release
    | Unpriced
    | Lapse
    | Refund
    | Deposit
    | Withdraw
    | Transfer
    | Undo
    | Open
    | Amend
    | Expire
    | SetCap
    | CreateProject
    | AmendProject
    | RemoveProject
    | SetMember
    | IssueToken
    | RevokeToken
    | Note
)


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A wish with who asks and when. `actor` is the authenticated user, perhaps acting as another.

    `said` is the fingerprint of the report that the wish was made from; None where the wish itself is what was said. `latest` is how late
    the times of a report may be, judged by the bank's clock; None where `at` is the clock of the report itself, as in a replay.
    """

    wish: Request
    at: Instant
    actor: int
    acting_as: int | None = None
    said: bytes | None = None
    latest: int | None = None


_encode = msgspec.msgpack.Encoder().encode


def digest(asked: Asked) -> bytes:
    """Sixteen bytes that differ between different wishes; what "the same wish again" means.

    Where the wish was made from a report they are of the report: between two sendings of it prices may change, and with
    them the wish.
    """
    wish = asked.wish
    told = wish if asked.said is None else (asked.said, wish.key, wish.comment)
    return hashlib.blake2b(_encode(told), digest_size=16).digest()
