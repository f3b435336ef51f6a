"""What the entries of a run leave in its row, and which may follow which."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.run import NEXT, RunEvent, RunRecord, RunState
from fairbank.cluster.job import Run
from fairbank.cluster.particulars import Particulars, together
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes

_replace = msgspec.structs.replace
_NOTHING = SuMinutes(0)
_EVENTS = {Kind.ADJUST: RunEvent.ADJUST, Kind.CHARGE: RunEvent.CHARGE, Kind.RELEASE: RunEvent.RELEASE, Kind.LAPSE: RunEvent.LAPSE}
_OPENING = (Kind.HOLD, Kind.CHARGE, Kind.RELEASE)


def may_follow(run: RunRecord, entry: Entry) -> bool:
    """Whether a run's life has room for the entry: it is born once, resolved once, refunded only what it was charged, and
    charged again only what it was refunded."""
    if run.id == entry.id:
        return entry.kind in _OPENING
    if entry.kind is Kind.REFUND:
        return run.state is RunState.CHARGED and run.refunded + entry.amount <= run.charged
    if entry.kind is Kind.RECHARGE:
        return run.state is RunState.CHARGED and entry.amount <= run.refunded
    event = _EVENTS.get(entry.kind)
    return event is not None and (run.state, event) in NEXT


def new_run(entry: Entry, facts: dict[str, Any]) -> RunRecord:
    """The row of a run that `entry` opens. Raises KeyError, TypeError or ValueError when its details lack something."""
    return RunRecord(
        id=entry.id,
        run=Run(*facts["run"]),
        project=facts["project"],
        allocation=entry.book,
        owner=entry.owner or 0,
        partition=facts["partition"],
        state=RunState.HELD,
        held=SuMinutes(entry.amount if entry.kind is Kind.HOLD else 0),
        start=facts["start"],
        until=facts["until"],
        set_by=entry.id,
        particulars=_told(facts),
    )


def after(run: RunRecord, entry: Entry, facts: dict[str, Any]) -> RunRecord:
    """The row after an entry of the run's. Raises like `new_run`."""
    match entry.kind:
        case Kind.HOLD:
            return run if run.id == entry.id else _replace(run, held=SuMinutes(entry.amount))
        case Kind.CHARGE:
            return _resolved(run, entry, facts, RunState.CHARGED, SuMinutes(entry.amount))
        case Kind.RELEASE:
            return _resolved(run, entry, facts, RunState.RELEASED, _NOTHING)
        case Kind.LAPSE:
            return _replace(run, held=_NOTHING, state=RunState.LAPSED, set_by=entry.id)
        case Kind.ADJUST:
            held, told = SuMinutes(run.held + entry.amount), together(run.particulars, _told(facts))
            return _replace(run, held=held, until=Instant(facts["until"]), set_by=entry.id, particulars=told)
        case Kind.RECHARGE:
            return _replace(run, refunded=SuMinutes(run.refunded - entry.amount))
        case _:
            return _replace(run, refunded=SuMinutes(run.refunded + entry.amount))


def _resolved(run: RunRecord, entry: Entry, facts: dict[str, Any], state: RunState, charged: SuMinutes) -> RunRecord:
    return _replace(
        run,
        state=state,
        held=_NOTHING,
        set_by=entry.id,
        charged=charged,
        written_off=facts["written_off"],
        ended=facts["ended"],
        outcome=facts["outcome"],
        elapsed_seconds=facts["elapsed_seconds"],
        particulars=together(run.particulars, _told(facts)),
    )


def _told(facts: dict[str, Any]) -> Particulars | None:
    """What an entry tells of its run's particulars."""
    said = facts.get("particulars")
    return None if said is None else msgspec.convert(said, Particulars)
