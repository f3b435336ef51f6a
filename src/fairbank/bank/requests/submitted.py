"""A request with who asks and when, and what "the same request again" means."""

from __future__ import annotations

import hashlib

import msgspec

from fairbank.bank.requests.allocations import (
    Amend,
    Deposit,
    Expire,
    Open,
    SetCap,
    Transfer,
    Withdraw,
)
from fairbank.bank.requests.registry import (
    AmendProject,
    AuditNote,
    CreateProject,
    IssueToken,
    RemoveProject,
    RevokeToken,
    SetMember,
)
from fairbank.bank.requests.runs import Adjust, Charge, Hold, Lapse, Refund, Release, Unpriced
from fairbank.bank.requests.undo import Undo
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
    | AuditNote
)


class SubmittedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request with who asks and when. `actor` is the authenticated user, perhaps acting as another.

    `said` is the fingerprint of the report that the request was made from; None where the request itself is what was said. `latest` is how late
    the times of a report may be, judged by the bank's clock; None where `at` is the clock of the report itself, as in a replay.
    """

    request: Request
    at: Instant
    actor: int
    acting_as: int | None = None
    said: bytes | None = None
    latest: int | None = None


_encode = msgspec.msgpack.Encoder().encode


def digest(submitted: SubmittedRequest) -> bytes:
    """Sixteen bytes that differ between different requests; what "the same request again" means.

    Where the request was made from a report they are of the report: between two sendings of it prices may change, and with
    them the request.
    """
    request = submitted.request
    told = request if submitted.said is None else (submitted.said, request.key, request.comment)
    return hashlib.blake2b(_encode(told), digest_size=16).digest()
