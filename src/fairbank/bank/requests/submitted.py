"""Request with its user and time, and the digest by which a repeated request is recognised."""

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
    """Request with its user and time. `actor` is the authenticated user, who may act as another.

    `said` is the digest of the report from which the request was made, None without a report.
    `latest` is the latest time that a report may contain, by the bank's clock; None if `at` is the
    time of the report itself, as in a replay.
    """

    request: Request
    at: Instant
    actor: int
    acting_as: int | None = None
    said: bytes | None = None
    latest: int | None = None


_encode = msgspec.msgpack.Encoder().encode


def digest(submitted: SubmittedRequest) -> bytes:
    """Return sixteen bytes that identify a request, to recognise a repeated one.

    For a request from a report they identify the report: prices may change before it is sent again,
    and with them the request.
    """
    request = submitted.request
    told = request if submitted.said is None else (submitted.said, request.key, request.comment)
    return hashlib.blake2b(_encode(told), digest_size=16).digest()
