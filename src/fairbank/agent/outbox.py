"""Outbox: reports that the bank has not answered, and live runs, in one state file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from fairbank.agent.protocol import Verdict
from fairbank.agent.reports.report import PendingReport, ReportKind
from fairbank.agent.run_memory import KnownRun, OutboxChanges
from fairbank.agent.run_states import AgentRunState
from fairbank.cluster.run_report import RunPiece
from fairbank.statefile.state_file import (
    DELETED_ROWS,
    SqlStatement,
    StateChanges,
    StateFile,
    StateFormat,
)

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE reports (
    seq INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    created REAL NOT NULL,
    converted INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE runs (
    run TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    time_limit INTEGER,
    action TEXT,
    reason TEXT,
    text TEXT,
    billing TEXT NOT NULL,
    pieces BLOB NOT NULL
);
CREATE TABLE credit (id INTEGER PRIMARY KEY CHECK (id = 1), known BLOB NOT NULL);
"""
OUTBOX = StateFormat(
    application_id=0x46624F42,  # "FbOB"
    version=2,
    schema=_SCHEMA,
    article="an",
    noun="outbox",
    owner="agent",
    setting="outbox.path",
    recovery="fairbank reconcile finds what was in it",
)

_PUT_REPORT = "INSERT OR REPLACE INTO reports VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_REPORT = "DELETE FROM reports WHERE seq = ?"
_PUT_RUN = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DELETE_RUN = "DELETE FROM runs WHERE run = ?"
_PUT_CREDIT = "INSERT OR REPLACE INTO credit VALUES (1, ?)"


_read_pieces = msgspec.json.Decoder(tuple[RunPiece, ...]).decode
_write_pieces = msgspec.json.Encoder().encode


class Outbox:
    """Outbox file; call it from one thread at a time.

    `clock_offset` turns the monotonic seconds of reports into Unix seconds.
    """

    def __init__(self, path: Path, *, clock_offset: float = 0.0) -> None:
        """Open the outbox.

        Raises:
            Conflict: another agent uses it.
            Forbidden: it cannot be created.
            Corrupt: it is no outbox of this version.
        """
        self._clock_offset = clock_offset
        self._file = StateFile(path, OUTBOX)

    def content(self) -> tuple[Iterator[tuple[str, KnownRun]], list[int], bytes | None]:
        """Return what an agent before has left: runs, numbers of reports, and known credit."""
        credit = self._file.query("SELECT known FROM credit").fetchone()
        seqs = [seq for (seq,) in self._file.query("SELECT seq FROM reports ORDER BY seq")]
        return self._runs(), seqs, credit[0] if credit else None

    def _runs(self) -> Iterator[tuple[str, KnownRun]]:
        rows = self._file.query("SELECT * FROM runs ORDER BY rowid")
        for run, state, limit, action, reason, text, billing, pieces in rows:
            refusal = Verdict(action=action, reason=reason, text=text) if action else None
            yield run, KnownRun(AgentRunState(state), limit, refusal, billing, _read_pieces(pieces))

    def read(self, seqs: Sequence[int]) -> list[PendingReport]:
        """Return the reports with these numbers that exist, in this order. Raises sqlite3.Error."""
        marks = ",".join("?" * len(seqs))
        rows = self._file.query(f"SELECT * FROM reports WHERE seq IN ({marks})", seqs)  # noqa: S608
        by_seq = {row[0]: row for row in rows}
        return [self._report(*by_seq[seq]) for seq in seqs if seq in by_seq]

    def _report(
        self, seq: int, run: str, kind: str, created: float, converted: int, body: bytes
    ) -> PendingReport:
        report = PendingReport(seq, run, ReportKind(kind), body, created - self._clock_offset)
        report.stored, report.converted = True, bool(converted)
        report.attempts = 1  # the agent that wrote it may have sent it
        return report

    def close(self) -> None:
        self._file.close()

    def write(self, changes: OutboxChanges) -> None:
        """Write all changes and sync.

        Raises:
            sqlite3.Error: nothing was written, except that some rows may have been deleted.
        """
        reports = [report for report in changes.reports.values() if report is not None]
        runs = [(run, *_run_row(known)) for run, known in changes.runs.items() if known is not None]
        gone, gone_runs = _deleted(changes.reports), _deleted(changes.runs)
        credit = [] if changes.credit is None else [(changes.credit,)]
        statements = (
            SqlStatement(_PUT_REPORT, [self._report_row(report) for report in reports]),
            SqlStatement(_DELETE_REPORT, [(seq,) for seq in gone]),
            SqlStatement(_PUT_RUN, runs),
            SqlStatement(_DELETE_RUN, [(run,) for run in gone_runs]),
            SqlStatement(_PUT_CREDIT, credit),
        )
        size = sum(len(report.body) + 256 for report in reports) + 256 * len(changes.runs)
        deletions = partial(self._deletions, changes) if gone or gone_runs else None
        self._file.write(StateChanges(statements, size, deletions))

    def _report_row(self, report: PendingReport) -> tuple[object, ...]:
        created = report.created + self._clock_offset
        kind = report.kind.value
        return report.seq, report.run, kind, created, report.converted, report.body

    def _deletions(self, changes: OutboxChanges) -> Iterator[SqlStatement]:
        """Yield the deletions that may be made before the rest is written.

        A report whose run has another one in these changes stays until that is written: it may
        have been converted, and then the new one replaces it.
        """
        kept = {report.run for report in changes.reports.values() if report is not None}
        for seqs in _steps(_deleted(changes.reports)):
            rows = [(report.seq,) for report in self.read(seqs) if report.run not in kept]
            yield SqlStatement(_DELETE_REPORT, rows)
        for runs in _steps(_deleted(changes.runs)):
            yield SqlStatement(_DELETE_RUN, [(run,) for run in runs])


def _deleted(rows: Mapping[T, object]) -> list[T]:
    return [key for key, value in rows.items() if value is None]


def _steps(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(rows), DELETED_ROWS):
        yield rows[first : first + DELETED_ROWS]


def _run_row(known: KnownRun) -> tuple[object, ...]:
    refusal = known.refusal
    parts = (refusal.action, refusal.reason, refusal.text) if refusal else (None, None, None)
    return (known.state.value, known.limit, *parts, known.billing, _write_pieces(known.pieces))
