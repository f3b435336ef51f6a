"""Row of a run, computed from its entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.run import NEXT, RunEvent, RunRecord, RunState
from fairbank.bank.run_details import read_adjustment, read_opening, read_resolution
from fairbank.cluster.job import merge_details
from fairbank.core.units import SuMinutes

_replace = msgspec.structs.replace
_NOTHING = SuMinutes(0)
_EVENTS = {
    Kind.ADJUST: RunEvent.ADJUST,
    Kind.CHARGE: RunEvent.CHARGE,
    Kind.RELEASE: RunEvent.RELEASE,
    Kind.LAPSE: RunEvent.LAPSE,
}
_FOLLOWING = frozenset(
    (state, kind) for kind, wanted in _EVENTS.items() for state, event in NEXT if event is wanted
)
_OPENING = (Kind.HOLD, Kind.CHARGE, Kind.RELEASE)

# Looked up once: before Python 3.12 the lookup of a member costs as much as creating a value.
_HOLD, _REFUND, _RECHARGE = Kind.HOLD, Kind.REFUND, Kind.RECHARGE
_HELD, _CHARGED, _RELEASED, _LAPSED = (
    RunState.HELD,
    RunState.CHARGED,
    RunState.RELEASED,
    RunState.LAPSED,
)


def may_follow(run: RunRecord, entry: Entry) -> bool:
    """Return whether an entry may follow in the life of a run.

    A run is opened once and closed once. It is refunded at most what it was charged, and charged
    again at most what was refunded.
    """
    kind = entry.kind
    if run.id == entry.id:
        return kind in _OPENING
    if kind is _REFUND:
        return run.state is _CHARGED and run.refunded + entry.amount <= run.charged
    if kind is _RECHARGE:
        return run.state is _CHARGED and entry.amount <= run.refunded
    return (run.state, kind) in _FOLLOWING


def new_run(entry: Entry) -> RunRecord:
    """Return the row of a run that an entry opens. Raises TypeError or ValueError for bad
    details.
    """
    opening = read_opening(entry)
    return RunRecord(
        id=entry.id,
        run=opening.run,
        project=opening.project,
        allocation=entry.book,
        owner=entry.owner or 0,
        partition=opening.partition,
        state=_HELD,
        held=SuMinutes(entry.amount if entry.kind is _HOLD else 0),
        start=opening.start,
        until=opening.until,
        set_by=entry.id,
        job_details=opening.job_details,
    )


def after(run: RunRecord, entry: Entry) -> RunRecord:
    """Return the row after one more entry of the run. Raises TypeError or ValueError for bad
    details.
    """
    return _AFTER[entry.kind](run, entry)


def _held(run: RunRecord, entry: Entry) -> RunRecord:
    return run if run.id == entry.id else _replace(run, held=SuMinutes(entry.amount))


def _charged(run: RunRecord, entry: Entry) -> RunRecord:
    return _resolved(run, entry, _CHARGED, SuMinutes(entry.amount))


def _released(run: RunRecord, entry: Entry) -> RunRecord:
    return _resolved(run, entry, _RELEASED, _NOTHING)


def _resolved(run: RunRecord, entry: Entry, state: RunState, charged: SuMinutes) -> RunRecord:
    end = read_resolution(entry)
    return _replace(
        run,
        state=state,
        held=_NOTHING,
        set_by=entry.id,
        charged=charged,
        written_off=end.written_off,
        ended=end.ended,
        outcome=end.outcome,
        elapsed_seconds=end.elapsed_seconds,
        job_details=merge_details(run.job_details, end.job_details),
    )


def _adjusted(run: RunRecord, entry: Entry) -> RunRecord:
    changed = read_adjustment(entry)
    held, told = (
        SuMinutes(run.held + entry.amount),
        merge_details(run.job_details, changed.job_details),
    )
    return _replace(run, held=held, until=changed.until, set_by=entry.id, job_details=told)


def _lapsed(run: RunRecord, entry: Entry) -> RunRecord:
    facts_of(entry)  # not needed, but the details must be readable
    return _replace(run, held=_NOTHING, state=_LAPSED, set_by=entry.id)


def _refunded(run: RunRecord, entry: Entry) -> RunRecord:
    facts_of(entry)
    return _replace(run, refunded=SuMinutes(run.refunded + entry.amount))


def _recharged(run: RunRecord, entry: Entry) -> RunRecord:
    facts_of(entry)
    return _replace(run, refunded=SuMinutes(run.refunded - entry.amount))


_AFTER: Mapping[Kind, Callable[[RunRecord, Entry], RunRecord]] = {
    Kind.HOLD: _held,
    Kind.ADJUST: _adjusted,
    Kind.CHARGE: _charged,
    Kind.RELEASE: _released,
    Kind.LAPSE: _lapsed,
    Kind.REFUND: _refunded,
    Kind.RECHARGE: _recharged,
}
