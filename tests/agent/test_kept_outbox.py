"""Outbox of each version, kept as SQL text: the agent of this release reads its reports and runs.

The version of an unreleased Fairbank may still change. Then run this file with `WRITE_GOLDEN=1`
and read the diff.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from fairbank.agent.outbox import OUTBOX, Outbox
from fairbank.agent.protocol import Verdict
from fairbank.agent.reports.report import PendingReport, ReportKind
from fairbank.agent.run_memory import KnownRun, OutboxChanges
from fairbank.agent.run_states import AgentRunState
from fairbank.cluster.run_report import RunPiece
from tests.support.golden import GOLDEN

HELD = KnownRun(
    AgentRunState.HELD, 3_600, billing="4", pieces=(RunPiece(seconds=600, billing=Decimal(8)),)
)
REFUSED = KnownRun(
    AgentRunState.REFUSED,
    60,
    Verdict(action="hold", reason="InsufficientCredit", text="too little"),
)
RUNS = {"lab/7@1795000000.0": HELD, "lab/8@1795000001.0": REFUSED}
BODY = b'{"do":"complete","cluster":"lab","job_id":7,"submitted":1795000000,"restart":0}'


# Version 1 had other tables in each development version, and is refused.
@pytest.mark.parametrize("version", range(2, OUTBOX.version + 1))
def test_kept_outbox_is_read(tmp_path: Path, version: int) -> None:
    kept, path = GOLDEN / "stores" / f"outbox-{version}.sql", tmp_path / "outbox"
    if os.environ.get("WRITE_GOLDEN") and version == OUTBOX.version:
        write_outbox(tmp_path / "new", kept)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(kept.read_text())
    outbox = Outbox(path)
    runs, numbers, credit = outbox.content()
    assert (dict(runs), numbers, credit) == (RUNS, [3], b"{}")
    (report,) = outbox.read(numbers)
    assert (report.run, report.kind, report.body) == (
        "lab/7@1795000000.0",
        ReportKind.COMPLETE,
        BODY,
    )
    outbox.close()


def write_outbox(path: Path, kept: Path) -> None:
    """Write an outbox with one report and two runs, and dump it."""
    outbox = Outbox(path)
    report = PendingReport(3, "lab/7@1795000000.0", ReportKind.COMPLETE, BODY, created=100.0)
    outbox.write(OutboxChanges({3: report}, dict(RUNS), b"{}"))
    outbox.close()
    with closing(sqlite3.connect(path)) as connection:
        lines = list(connection.iterdump())
    pragmas = [
        f"PRAGMA application_id = {OUTBOX.application_id};",
        f"PRAGMA user_version = {OUTBOX.version};",
    ]
    kept.write_text("".join(f"{line}\n" for line in (*pragmas, *lines)))
