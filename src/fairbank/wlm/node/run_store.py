"""Stored runs of a node: which were accepted, and how they ended, in its state file.

What happens between is in the directory of the run, written by the step daemon.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fairbank.cluster.job import Run
from fairbank.statefile.state_file import SqlStatement, StateChanges, StateFile, StateFormat
from fairbank.wlm.protocol.messages import RunOutcome

STATE_FILE = "state"
_FORMAT = StateFormat(
    application_id=0x46624E44,  # "FbND"
    version=1,
    schema="CREATE TABLE runs (run TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
    article="a",
    noun="state file",
    owner="node daemon",
    setting="spool",
    recovery="jobs that ran there end as failed nodes do",
)
_PUT, _DELETE = "INSERT OR REPLACE INTO runs VALUES (?, ?)", "DELETE FROM runs WHERE run = ?"


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run that the node has accepted. `end` is None until its processes and its Epilog have ended.

    `boot_id` is that of the boot in which it was accepted.
    """

    run: Run
    boot_id: str
    end: RunOutcome | None = None
    epilog_status: int | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StoredRun).decode


class RunStore:
    """Store of the runs of one node. Each write is on the disk when it returns."""

    def __init__(self, spool: Path) -> None:
        """Open the state file. Raises FairbankError, as StateFile does."""
        self._file = StateFile(spool / STATE_FILE, _FORMAT)

    def runs(self) -> list[StoredRun]:
        """Return all runs. Raises Corrupt."""
        try:
            return [_decode(record) for (record,) in self._file.query("SELECT record FROM runs")]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._file.unreadable_row(error) from error

    def put(self, stored: StoredRun) -> None:
        """Store a run in place of what was stored of it. Raises sqlite3.Error."""
        record = _encode(stored)
        statement = SqlStatement(_PUT, [(str(stored.run), record)])
        self._file.write(StateChanges([statement], len(record)))

    def delete(self, run: Run) -> None:
        """Delete a run. Raises sqlite3.Error."""
        statement = SqlStatement(_DELETE, [(str(run),)])
        self._file.write(StateChanges([statement], 0, lambda: iter([statement])))

    def close(self) -> None:
        self._file.close()
