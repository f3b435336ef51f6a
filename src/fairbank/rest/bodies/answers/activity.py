"""What moved units, in HADM's words."""

from __future__ import annotations

from msgspec import Struct

from fairbank.rest.bodies.answers.job import Status


class ActivityRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 3, with the kind and time of the entry."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    at: str
    kind: str
    job_id: int | None
    owner_uid: int | None


class CreditRow(Struct, frozen=True, kw_only=True):
    """HADM's credits: deposits and what transfers brought, less withdrawals and what transfers took."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None


class PredebitRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 4: a hold that is open."""

    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    job_id: int
    status: Status
    owner_uid: int


class DebitRow(Struct, frozen=True, kw_only=True):
    """HADM's schema 5: what each owner was charged in an allocation, refunds taken off.

    `activity_id` is the entry that opened the latest of the runs that were charged; what is summed up has no comments.
    """

    activity_id: int | None
    allocation_id: int
    amount: int
    comments: str | None
    owner_uid: int
