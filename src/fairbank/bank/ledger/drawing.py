"""What all rules of runs share: whether an allocation can carry more, how its sums move, and what entries tell of a run."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState
from fairbank.bank.efficiency import counted_of_more
from fairbank.bank.entry import Kind
from fairbank.bank.refusal import Reason
from fairbank.bank.run import RunRecord, RunState, UserSums
from fairbank.bank.wish import Charge, Release
from fairbank.bank.working_set import WorkingSet
from fairbank.cluster.job import Run
from fairbank.cluster.particulars import Particulars
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode

# Looked up once, not for each run: before Python 3.12 the way to a member of an enumeration is as dear as making a value.
_FROZEN = AllocationState.FROZEN
RESOLUTION = {Charge: (Kind.CHARGE, RunState.CHARGED), Release: (Kind.RELEASE, RunState.RELEASED)}
"""How a run ends: the entry and the state that it gets."""


def objection(work: WorkingSet, allocation: Allocation, owner: int, more: int) -> Reason | None:
    """Why `allocation` cannot carry `more` for `owner`; None if it can. A freeze counts until it is thawed, also beyond the period."""
    if allocation.state is _FROZEN:
        return Reason.FROZEN
    if more > allocation.available:
        return Reason.OVERDRAWN
    sums = work.sums_of(allocation.id, owner)
    if sums.cap is not None and sums.charged + sums.held + more > sums.cap:
        return Reason.CAPPED
    return None


def moved(work: WorkingSet, allocation: Allocation, owner: int, *, charged: int = 0, held: int = 0, below: bool = False) -> Allocation:
    """`allocation` with its sums moved, and the owner's sums moved alike. `below`: policy lets `available` go below zero."""
    sums = work.sums_of(allocation.id, owner)
    work.put_user(allocation.id, owner, UserSums(SuMinutes(sums.charged + charged), SuMinutes(sums.held + held), sums.cap))
    after = _replace(allocation, charged=allocation.charged + charged, held=allocation.held + held)
    return _replace(after, overrun=SuMinutes(max(after.overrun, -after.available))) if below else after


class _Beginning(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The details of a run's first entry."""

    run: Run
    project: int
    partition: str
    start: Instant
    until: Instant
    particulars: Particulars | None = None


class _End(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The details of the entry that resolves a run."""

    outcome: str | None
    elapsed_seconds: int | None
    ended: Instant | None
    written_off: SuMinutes
    cpu_counted: int | None = None
    particulars: Particulars | None = None


def details_of(record: RunRecord) -> str:
    """What a run's first entry says of it, so that its row can be checked against the journal."""
    r = record
    return _encode(_Beginning(r.run, r.project, r.partition, r.start, r.until, r.particulars)).decode()


def resolution_of(record: RunRecord, new: Particulars | None) -> str:
    """What the entry says that resolves a run; of its particulars only those that are `new`, and where more processor time was told
    than there was, what of it counts."""
    counted = counted_of_more(record)
    return _encode(_End(record.outcome, record.elapsed_seconds, record.ended, record.written_off, counted, new)).decode()


def with_particulars(facts: dict[str, Any], new: Particulars | None) -> str:
    """An entry's details: `facts`, and what it tells of a run's particulars."""
    if new is not None:
        facts["particulars"] = new
    return _encode(facts).decode()
