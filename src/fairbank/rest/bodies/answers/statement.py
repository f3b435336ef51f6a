"""The journal of one allocation."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fairbank.rest.bodies.answers.alloc import AllocationRow


class Sums(Struct, frozen=True, kw_only=True):
    deposited: int = 0
    charged: int = 0
    held: int = 0
    credit_limit: int = 0
    available: int = 0


class EntryRow(Sums, frozen=True, kw_only=True):
    """An entry of the journal with the sums after it. `sign` is 1 or -1: which way its amount moves the sum that it belongs to; 0 where a
    hold is closed, and nothing else; null where no units are moved."""

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


class StatementRow(EntryRow, frozen=True, kw_only=True):
    """An entry with the terms that it changed and what they became, by their names in the row of an allocation; null where it is about
    something else."""

    changed: dict[str, Any] | None


class BookEntryRow(EntryRow, frozen=True, kw_only=True):
    """An entry with the allocation whose book it stands in."""

    allocation: int


class PlannedEntry(Sums, frozen=True, kw_only=True):
    """An entry as it would be written now, with the sums after it. `allocation` is null in the registry, where projects, roles and
    tokens are kept, and where it is yet to be opened; `sign` and `changed` as in a statement."""

    kind: str
    allocation: int | None
    amount: int
    sign: int | None
    cluster: str | None
    job_id: int | None
    owner_uid: int | None
    comment: str | None
    details: dict[str, Any] | None
    changed: dict[str, Any] | None


class StatementPage(Struct, frozen=True, kw_only=True):
    allocation: AllocationRow
    opening: Sums
    entries: list[StatementRow]
    closing: Sums


class StatementAnswer(Struct, frozen=True, kw_only=True):
    """`next` goes into `after` for the next page."""

    schema: str
    as_of: str
    data: StatementPage
    next: str | None = None
