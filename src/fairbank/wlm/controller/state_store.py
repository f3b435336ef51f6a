"""State of the controller in its state file: rows of the core, accounting, scripts, the clock."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import Corrupt
from fairbank.statefile.state_file import (
    DELETED_ROWS,
    SqlStatement,
    StateChanges,
    StateFile,
    StateFormat,
)
from fairbank.wlm.controller.clock import ClockReading
from fairbank.wlm.core.accounts import BankAccount
from fairbank.wlm.core.effects import AgentMessage, StoredRow, Table
from fairbank.wlm.core.jobs import AssociationUsage, EndedRun, WlmJob
from fairbank.wlm.core.state import RECORDS, NodeStatus
from fairbank.wlm.core.steps.step import EndedStep, StepUsage, WlmStep
from fairbank.wlm.protocol.messages import RunOutcome

STATE_FILE = "state.sqlite"
ROW_TYPES: Mapping[Table, Any] = {
    "jobs": WlmJob,
    "runs": EndedRun,
    "steps": WlmStep,
    "ended_steps": EndedStep,
    "step_usages": StepUsage,
    "nodes": NodeStatus,
    "partitions": PartitionRules,
    "partition_settings": PartitionRules,
    "reservations": Reservation,
    "messages": AgentMessage,
    "counters": int,
    "usage": AssociationUsage,
    "qos_usage": AssociationUsage,
    "accounts": BankAccount,
}

_FORMAT = StateFormat(
    application_id=0x46624354,  # "FbCT"
    version=4,
    schema="""
        CREATE TABLE rows (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))
            WITHOUT ROWID;
        CREATE TABLE runs (number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE,
            job INTEGER NOT NULL, array INTEGER, ended INTEGER NOT NULL, record BLOB NOT NULL);
        CREATE INDEX runs_by_job ON runs (job);
        CREATE INDEX runs_by_array ON runs (array);
        CREATE INDEX runs_by_end ON runs (ended);
        CREATE TABLE outcomes (run TEXT PRIMARY KEY, outcome BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE contents (digest TEXT PRIMARY KEY, stored INTEGER NOT NULL,
            content BLOB NOT NULL);
        CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT, since_boot INTEGER, mono INTEGER);
        CREATE TABLE ended_steps (step TEXT PRIMARY KEY, run TEXT NOT NULL, record BLOB NOT NULL)
            WITHOUT ROWID;
        CREATE INDEX steps_by_run ON ended_steps (run);
        CREATE TABLE step_usages (step TEXT, node TEXT, usage BLOB NOT NULL,
            PRIMARY KEY (step, node)) WITHOUT ROWID
    """,
    article="a",
    noun="state file",
    owner="controller",
    setting="state_save_location",
    recovery="the jobs and the accounting in it are lost then",
)
_PUT = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"
_DELETE = "DELETE FROM rows WHERE kind = ? AND key = ?"
# A commit that failed may have reached the disk: its repetition must not fail for ever.
_PUT_RUN = "INSERT OR IGNORE INTO runs (run, job, array, ended, record) VALUES (?, ?, ?, ?, ?)"
_PUT_STEP = "INSERT OR IGNORE INTO ended_steps VALUES (?, ?, ?)"
_PUT_STEP_USAGE = "INSERT OR IGNORE INTO step_usages VALUES (?, ?, ?)"
_PUT_OUTCOME = "INSERT OR REPLACE INTO outcomes VALUES (?, ?)"
_PUT_CONTENT = "INSERT OR REPLACE INTO contents VALUES (?, ?, ?)"
_PUT_CLOCK = "INSERT OR REPLACE INTO clock VALUES (0, ?, ?, ?)"
_RUNS = """SELECT number, record, outcome FROM runs LEFT JOIN outcomes USING (run)
    WHERE number > ?1 AND ended >= ?2 ORDER BY number LIMIT ?3"""
_RUNS_OF_JOBS = """SELECT number, record, outcome FROM runs LEFT JOIN outcomes USING (run)
    WHERE number > ?1 AND ended >= ?2 AND (job IN (SELECT value FROM json_each(?4))
    OR array IN (SELECT value FROM json_each(?4))) ORDER BY number LIMIT ?3"""
_RECORDED = "SELECT run FROM runs WHERE job IN (SELECT value FROM json_each(?))"
_STEPS_OF_RUNS = """SELECT record, node, usage FROM ended_steps LEFT JOIN step_usages USING (step)
    WHERE run IN (SELECT value FROM json_each(?)) ORDER BY run, step"""
_DONE = ("jobs", "messages", "steps")
"""Tables whose rows are deleted when they are of no use any more."""


def _to_text(value: object) -> str:
    if isinstance(value, Fraction):  # weights of a partition
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be stored")


def _from_text(kind: type, value: Any) -> object:
    if kind is Fraction:
        return Fraction(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read")


_encode = msgspec.json.Encoder(enc_hook=_to_text).encode


class CommitData(NamedTuple):
    """Changes that are committed together.

    `rows` are in the order of the events: the last of a key counts. `contents` are scripts and
    environments by digest, `outcomes` the ends of runs as their batch nodes report them.
    """

    rows: list[StoredRow]
    contents: dict[str, bytes]
    outcomes: dict[Run, RunOutcome]

    @property
    def is_empty(self) -> bool:
        return not (self.rows or self.contents or self.outcomes)


class AccountedRun(NamedTuple):
    """Accounting record of a run, its number in the order of the ends, and its outcome.

    The outcome has the usage of the batch script; it is None if no node has reported it.
    """

    number: int
    record: EndedRun
    outcome: RunOutcome | None


class RunFilter(NamedTuple):
    """Selection of accounting records: of jobs or arrays (empty: of all) that ended from `start` on
    and have numbers after `after`.
    """

    jobs: Collection[int] = ()
    start: int = 0
    after: int = 0
    limit: int = 1_000


class StateStore:
    """State file of the controller; call it from one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open the state file. Raises FairbankError, as StateFile does."""
        self._file = StateFile(path, _FORMAT)

    def rows(self) -> Iterator[StoredRow]:
        """Yield all rows but accounting records. Raises Corrupt."""
        for kind, key, value in self._file.query("SELECT kind, key, value FROM rows"):
            yield StoredRow(kind, key, self._decode(value, ROW_TYPES[kind]))

    def clock(self) -> ClockReading | None:
        """Return the clock at the last commit."""
        row = self._file.query("SELECT boot, since_boot, mono FROM clock").fetchone()
        return None if row is None else ClockReading(*row)

    def content(self, key: str) -> bytes:
        """Return a script or an environment by its digest. Raises Corrupt."""
        row = self._file.query("SELECT content FROM contents WHERE digest = ?", (key,)).fetchone()
        if row is None:
            raise Corrupt(f"the script or environment {key} is missing", remedy="submit it again")
        return bytes(row[0])

    def ended_runs(self, selection: RunFilter) -> list[AccountedRun]:
        """Return accounting records by number."""
        sql, wanted = _RUNS, [selection.after, selection.start, selection.limit]
        jobs = [json.dumps([*selection.jobs])] if selection.jobs else []
        if jobs:
            sql = _RUNS_OF_JOBS
        return [
            AccountedRun(
                number,
                self._decode(record, EndedRun),
                None if outcome is None else self._decode(outcome, RunOutcome),
            )
            for number, record, outcome in self._file.query(sql, [*wanted, *jobs])
        ]

    def ended_steps(self, runs: Collection[Run]) -> list[EndedStep]:
        """Return the accounting records of the steps of some runs, with all usage so far."""
        keys, ended = json.dumps([str(run) for run in runs]), dict[str, EndedStep]()
        for record, node, usage in self._file.query(_STEPS_OF_RUNS, (keys,)):
            one = self._decode(record, EndedStep)
            one = ended.setdefault(one.step.key, one)
            if node in one.step.left:
                ended[one.step.key] = one.with_usage(self._decode(usage, StepUsage).usage)
        return [*ended.values()]

    def recorded_runs(self, jobs: Collection[int]) -> set[str]:
        """Return the runs of some jobs that have an accounting record."""
        return {run for (run,) in self._file.query(_RECORDED, (json.dumps([*jobs]),))}

    def write(self, changes: CommitData, clock: ClockReading) -> None:
        """Commit changes. Raises sqlite3.Error; nothing is written then."""
        last = {(row.table, row.key): row.value for row in changes.rows if row.table not in RECORDS}
        put = [(*key, _encode(value)) for key, value in last.items() if value is not None]
        deleted = [key for key, value in last.items() if value is None]
        runs = [_run_row(row.value) for row in changes.rows if row.table == "runs"]
        steps = [_step_row(row.value) for row in changes.rows if row.table == "ended_steps"]
        usages = [_usage_row(row.value) for row in changes.rows if row.table == "step_usages"]
        outcomes = [(str(run), _encode(outcome)) for run, outcome in changes.outcomes.items()]
        now = int(time.time())
        contents = [(key, now, content) for key, content in changes.contents.items()]
        self._file.write(
            StateChanges(
                [
                    SqlStatement(_DELETE, deleted),
                    SqlStatement(_PUT, put),
                    SqlStatement(_PUT_RUN, runs),
                    SqlStatement(_PUT_STEP, steps),
                    SqlStatement(_PUT_STEP_USAGE, usages),
                    SqlStatement(_PUT_OUTCOME, outcomes),
                    SqlStatement(_PUT_CONTENT, contents),
                    SqlStatement(_PUT_CLOCK, [clock]),
                ],
                sum(
                    len(row[-1])
                    for rows in (put, runs, steps, usages, outcomes, contents)
                    for row in rows
                ),
                lambda: _deletions([key for key in deleted if key[0] in _DONE]),
            )
        )

    def remove_contents(self, used: Collection[str], before: int) -> None:
        """Delete scripts and environments that no job uses and that were stored before a time.

        Raises sqlite3.Error.
        """
        rows = self._file.query("SELECT digest FROM contents WHERE stored < ?", (before,))
        unused = [(key,) for (key,) in rows if key not in used]
        delete = SqlStatement("DELETE FROM contents WHERE digest = ?", unused)
        self._file.write(StateChanges([delete], 0))

    def close(self) -> None:
        self._file.close()

    def _decode(self, data: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(data, type=kind, dec_hook=_from_text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._file.unreadable_row(error) from error


def digest(content: bytes) -> str:
    """Return the key under which a script or an environment is stored."""
    return hashlib.sha256(content).hexdigest()


def _run_row(record: Any) -> tuple[str, int, int | None, int, bytes]:
    request = record.request
    run = str(record.identity)
    return (run, request.number, request.array, record.ended, _encode(record))


def _step_row(record: Any) -> tuple[str, str, bytes]:
    return record.step.key, str(record.step.run), _encode(record)


def _usage_row(late: Any) -> tuple[str, str, bytes]:
    return late.step, late.node, _encode(late)


def _deletions(keys: Sequence[tuple[str, str]]) -> Iterator[SqlStatement]:
    for at in range(0, len(keys), DELETED_ROWS):
        yield SqlStatement(_DELETE, keys[at : at + DELETED_ROWS])
