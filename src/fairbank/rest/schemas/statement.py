"""Journal entries and statements of allocations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from fairbank.bank.entry import EFFECTS, Entry, Kind
from fairbank.bank.refusals import Refusal
from fairbank.bank.run import RunRecord
from fairbank.core.time import iso
from fairbank.core.units import with_texts
from fairbank.rest.schemas.alloc import AllocationRow
from fairbank.rest.schemas.answers import Amounts, Envelope
from fairbank.rest.schemas.envelope import convert_to
from fairbank.rest.schemas.job import refused_job


class Sums(Amounts, frozen=True, kw_only=True):
    """Sums of an allocation after an entry. `available` is `remaining` under its former name: it
    counts all users of the allocation, and no cap."""

    deposited: int = 0
    charged: int = 0
    held: int = 0
    credit_limit: int = 0
    remaining: int = 0
    available: int = 0


class EntryRow(Sums, frozen=True, kw_only=True):
    """A journal entry with the sums after it.

    `sign` is the direction in which the amount changes the sum that the kind names: 1 or -1 of
    `deposited`, of `charged` or of `held`. It is 0 if the entry only closes a hold, and null if
    the entry moves no credit. How `remaining` changed is in a statement. `undone_by` is the id of
    the entry that undid this one, in the same journal; of a charge, that of the refund after which
    nothing of it is left. Otherwise it is null.
    """

    id: int
    seq: int
    at: str
    kind: str
    amount: int
    sign: int | None
    run: int | None
    cluster: str | None
    job_id: int | None
    owner_uid: int | None
    actor: int
    acting_as: int | None
    comment: str | None
    details: dict[str, Any] | None
    undone_by: int | None


class StatementRow(EntryRow, frozen=True, kw_only=True):
    """An entry with what it moved, and the terms that it changed.

    `credit_in` or `credit_out` is by how much it increased or reduced `remaining`; the other is 0.
    Both are, too, if it moved no credit. `changed` has terms under the names of the allocation's
    row; null if it changed none.
    """

    credit_in: int
    credit_out: int
    changed: dict[str, Any] | None


class AllocationEntryRow(EntryRow, frozen=True, kw_only=True):
    """An entry with the allocation in whose journal it stands."""

    schema_name: ClassVar[str] = "fairbank.entry/1"
    allocation: int


class PlannedEntry(Amounts, frozen=True, kw_only=True):
    """An entry that a dry run would write, with the sums after it.

    `allocation` is null for projects, roles and tokens, which have no amounts, and for an
    allocation that does not exist yet. `sign`, `changed` and `available` are as in a statement.
    """

    schema_name: ClassVar[str] = "fairbank.planned-entry/1"
    deposited: int | None
    charged: int | None
    held: int | None
    credit_limit: int | None
    remaining: int | None
    available: int | None
    kind: str
    allocation: int | None
    amount: int | None
    sign: int | None
    cluster: str | None
    job_id: int | None
    owner_uid: int | None
    comment: str | None
    details: dict[str, Any] | None
    changed: dict[str, Any] | None


class StatementPage(Struct, frozen=True, kw_only=True):
    """Entries of an allocation with the sums before and after them."""

    allocation: AllocationRow
    opening: Sums
    entries: list[StatementRow]
    closing: Sums


class StatementAnswer(Envelope, frozen=True, kw_only=True):
    """A page of a statement. Send `next` as `after` for the next page."""

    schema_name: ClassVar[str] = "fairbank.statement/1"
    data: StatementPage
    next: str | None = None


class SeriesRow(Amounts, frozen=True, kw_only=True):
    """Credit of an allocation before a time."""

    schema_name: ClassVar[str] = "fairbank.series/1"
    at: str
    remaining: int
    held: int


def sums(entry: Entry) -> Sums:
    """Return the sums after an entry."""
    return convert_to(Sums, entry, available=entry.remaining)


def entry_row(
    entry: Entry, run: RunRecord | None, undone_by: Mapping[int, int] = MappingProxyType({})
) -> EntryRow:
    """Return an entry with its job. A refused job has no run: the refusal itself names the job.

    Args:
        entry: the entry.
        run: the run of the entry, if it has one.
        undone_by: ids of entries that undid others, by the ids of the undone ones.
    """
    details = msgspec.json.decode(entry.details) if entry.details else None
    which = run.reported.run if run else None
    cluster, job_id = (which.cluster, which.job_id) if which else (None, None)
    if run and run.is_measured:
        job_id = None  # the number of the project
    if details and entry.kind in (Kind.REFUSAL, Kind.DECLINED):
        refusal = msgspec.convert(details, Refusal)
        cluster, job_id = refused_job(refusal)
        # The journal's hashes keep its own name of the field.
        details["requested"] = details.pop("asked")
        details["message"] = refusal.reason.info.message
    return convert_to(
        EntryRow,
        entry,
        at=iso(entry.at),
        kind=entry.kind.value,
        available=entry.remaining,
        sign=EFFECTS[entry.kind].sign if entry.kind in EFFECTS else None,
        cluster=cluster,
        job_id=job_id,
        owner_uid=run.user if run else entry.owner,
        details=with_texts(details),
        undone_by=undone_by.get(entry.id),
    )
