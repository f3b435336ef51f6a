"""Movements of credit in HADM's terms."""

from __future__ import annotations

from typing import ClassVar

from fairbank.bank.entry import OF_CREDIT, Entry
from fairbank.bank.query import Debit
from fairbank.bank.run import RunRecord
from fairbank.core.ids import known_uid
from fairbank.core.time import iso
from fairbank.rest.schemas.answers import Amounts
from fairbank.rest.schemas.job import Status, hadm_status


class ActivityRow(Amounts, frozen=True, kw_only=True):
    """HADM's schema 3, with the kind and time of the entry."""

    schema_name: ClassVar[str] = "fairbank.activity/1"
    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    at: str
    kind: str
    job_id: int | None
    owner_uid: int | None


class CreditRow(Amounts, frozen=True, kw_only=True):
    """HADM's credits: deposits and incoming transfers, minus withdrawals and outgoing transfers."""

    schema_name: ClassVar[str] = "fairbank.credit/1"
    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None


class PredebitRow(Amounts, frozen=True, kw_only=True):
    """HADM's schema 4: the hold of a run; 0 if it has ended (status `completed`)."""

    schema_name: ClassVar[str] = "fairbank.predebit/1"
    activity_id: int
    allocation_id: int
    amount: int
    comments: str | None
    job_id: int
    status: Status
    owner_uid: int


class DebitRow(Amounts, frozen=True, kw_only=True):
    """HADM's schema 5: charges of an owner in an allocation, minus refunds.

    `activity_id` is the first entry of the latest charged run. A sum has no comments. `owner_uid`
    is null for measured use, and for runs whose user has no uid here.
    """

    schema_name: ClassVar[str] = "fairbank.debit/1"
    activity_id: int | None
    allocation_id: int
    amount: int
    comments: str | None
    owner_uid: int | None


def activity_row(entry: Entry, run: RunRecord | None) -> ActivityRow:
    """Return an entry that moved credit, with the job of its run."""
    return ActivityRow(
        activity_id=entry.id,
        allocation_id=entry.allocation,
        amount=entry.amount,
        comments=entry.comment,
        at=iso(entry.at),
        kind=entry.kind.value,
        job_id=None if run is None or run.is_measured else run.reported.run.job_id,
        owner_uid=run.user if run else entry.owner,
    )


def credit_row(entry: Entry) -> CreditRow:
    """Return a deposit, withdrawal or transfer."""
    return CreditRow(
        activity_id=entry.id,
        allocation_id=entry.allocation,
        amount=OF_CREDIT[entry.kind].sign * entry.amount,
        comments=entry.comment,
    )


def predebit_row(record: RunRecord, comments: str | None) -> PredebitRow:
    """Return the hold of a run."""
    return PredebitRow(
        activity_id=record.id,
        allocation_id=record.allocation,
        amount=record.held,
        comments=comments,
        job_id=record.reported.run.job_id,
        status=hadm_status(record),
        owner_uid=record.owner,
    )


def debit_row(debit: Debit) -> DebitRow:
    """Return the charges of an owner in one allocation."""
    return DebitRow(
        activity_id=debit.latest,
        allocation_id=debit.allocation,
        amount=debit.charged,
        comments=None,
        owner_uid=known_uid(debit.owner),
    )
