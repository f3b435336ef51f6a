"""Rows of runs, computed from their entries and compared with the store.

Matching runs are forgotten: there may be millions.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairbank.bank.audit.findings import Findings
from fairbank.bank.entry import Entry, Kind, facts_of
from fairbank.bank.run import (
    NEXT,
    RunEvent,
    RunRecord,
    RunState,
    read_adjustment,
    read_opening,
    read_resolution,
)
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
_CHARGED = RunState.CHARGED


def can_follow(run: RunRecord, entry: Entry) -> bool:
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
    """Return the row of a run that an entry opens. Raises TypeError or ValueError."""
    return RunRecord(
        id=entry.id,
        reported=read_opening(entry),
        allocation=entry.allocation,
        owner=entry.owner or 0,
        state=RunState.HELD,
        held=SuMinutes(entry.amount if entry.kind is _HOLD else 0),
        set_by=entry.id,
    )


def after(run: RunRecord, entry: Entry) -> RunRecord:
    """Return the row after one more entry of the run. Raises TypeError or ValueError."""
    kind, amount = entry.kind, entry.amount
    if kind is _HOLD:
        return run if run.id == entry.id else _replace(run, held=SuMinutes(amount))
    if kind is Kind.CHARGE:
        return _resolved(run, entry, _CHARGED, SuMinutes(amount))
    if kind is Kind.RELEASE:
        return _resolved(run, entry, RunState.RELEASED, _NOTHING)
    if kind is Kind.ADJUST:
        changed = read_adjustment(entry)
        details = merge_details(run.reported.job_details, changed.job_details)
        return _replace(
            run,
            reported=_replace(run.reported, until=changed.until, job_details=details),
            held=SuMinutes(run.held + amount),
            set_by=entry.id,
        )
    facts_of(entry)  # not needed, but the details must be readable
    if kind is Kind.LAPSE:
        return _replace(run, held=_NOTHING, state=RunState.LAPSED, set_by=entry.id)
    returned = amount if kind is _REFUND else -amount
    return _replace(run, refunded=SuMinutes(run.refunded + returned))


def _resolved(run: RunRecord, entry: Entry, state: RunState, charged: SuMinutes) -> RunRecord:
    end, reported = read_resolution(entry), run.reported
    details = merge_details(reported.job_details, end.job_details)
    return _replace(
        run,
        reported=_replace(reported, job_details=details),
        state=state,
        held=_NOTHING,
        set_by=entry.id,
        charged=charged,
        written_off=end.written_off,
        end=end.end,
    )


# --- comparison with the store ---


RowAgain = Callable[[int], RunRecord | None]
"""Function that reads the row of a run once more, by the id of the run; None if it does not
exist.
"""


def no_row(number: int) -> None:
    """Return None: for an audit that reads the rows of runs after all entries."""


class RunRows:
    """Runs of one journal whose row does not match the entries read so far.

    A run matches when the journal was read as far as its row goes. Then it is forgotten. In rare
    cases more entries follow, such as a refund and its undo; then its row is read once more.
    """

    def __init__(self, findings: Findings, again: RowAgain) -> None:
        self._findings, self._again = findings, again
        self._due: dict[int, RunRecord] = {}
        self._rows: dict[int, RunRecord] = {}
        self._last = 0
        """Highest id of a row that was shown."""

    def due(self, number: int) -> RunRecord | None:
        """Return the row that the entries of a run require so far; None without an entry."""
        run = self._due.get(number)
        if run is None and number <= self._last and number not in self._rows:
            run = self._again(number)
            if run is not None:
                self._due[number] = self._rows[number] = run
        return run

    def expect(self, run: RunRecord) -> None:
        """Record the row that the entries of a run require after one more entry."""
        if self._rows.get(run.id) == run:
            del self._rows[run.id]
            self._due.pop(run.id, None)
        else:
            self._due[run.id] = run

    def show(self, row: RunRecord) -> None:
        """Record the row of a run in the store; in the order of ids if `again` is used."""
        self._last = max(self._last, row.id)
        if self._due.get(row.id) == row:
            del self._due[row.id]
        else:
            self._rows[row.id] = row

    def check_left_over(self) -> None:
        """Report all runs that do not match. All entries were read and all rows were shown."""
        for number in sorted(self._due.keys() | self._rows.keys()):
            row, due = self._rows.get(number), self._due.get(number)
            if row is not None:
                self._findings.compare(f"the row of run {row.reported.run}", row, due)
            elif due is not None:
                self._findings.add(f"the row of run {due.reported.run} is missing")
