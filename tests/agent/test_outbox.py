"""Outbox on disk: what the next agent finds, also when the disk is full."""

from __future__ import annotations

import contextlib
import sqlite3
from itertools import count, islice
from pathlib import Path

import msgspec
import pytest

from fairbank.agent.outbox import Outbox
from fairbank.agent.protocol import Verdict
from fairbank.agent.reports.report import PendingReport, ReportKind
from fairbank.agent.run_memory import KnownRun, OutboxChanges, RunMemory
from fairbank.agent.run_states import AgentRunState
from fairbank.core.errors import Conflict, Corrupt, Forbidden
from tests.support.small_disk import fill, small_disk


def pending_report(seq: int, more: int = 0) -> PendingReport:
    return PendingReport(
        seq,
        f"local/{seq}@1.0",
        ReportKind.HOLD,
        b'{"do":"hold"}' + b" " * more,
        created=100.0 + seq,
    )


def test_next_agent_reads_what_was_written(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "outbox", clock_offset=1_000.0)
    refused = KnownRun(
        AgentRunState.REFUSED, 60, Verdict(action="hold", reason="Short", text="too little")
    )
    first.write(
        OutboxChanges(
            {1: pending_report(1), 2: pending_report(2), 3: pending_report(3)},
            {"a": KnownRun(AgentRunState.HELD, 60), "b": refused},
            b"{}",
        )
    )
    first.write(OutboxChanges({2: None}, {"a": KnownRun(AgentRunState.ENDED)}))
    first.close()
    second = Outbox(tmp_path / "outbox", clock_offset=900.0)
    runs, seqs, credit = second.content()
    assert dict(runs) == {"b": refused, "a": KnownRun(AgentRunState.ENDED)}
    assert (seqs, credit) == ([1, 3], b"{}")
    (report,) = second.read([3, 99])
    assert (report.seq, report.kind, report.body, report.stored, report.attempts) == (
        3,
        ReportKind.HOLD,
        b'{"do":"hold"}',
        True,
        1,
    )
    assert report.created == pytest.approx(203.0)  # the same time on the clock of another agent


def test_acknowledged_reports_are_deleted_on_a_full_disk(tmp_path: Path) -> None:
    """Delete reports though SQLite alone could not: that needs space in its log."""
    with small_disk(tmp_path / "disk", "2m") as disk:
        outbox = Outbox(disk / "outbox")
        filled = fill_with_reports(outbox)
        assert (filled >= 100, (disk / "outbox.reserve").exists()) == (True, True)
        filler = fill(disk)
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="full"):
                outbox.write(
                    OutboxChanges(
                        {9_999: pending_report(9_999, 50_000)},
                        {"z": KnownRun(AgentRunState.WAITING, 60)},
                    )
                )
        last = filled + 1
        gone: dict[int, PendingReport | None] = dict.fromkeys(range(1, filled))
        outbox.write(
            OutboxChanges(
                {**gone, last: pending_report(last)}, {"z": KnownRun(AgentRunState.HELD, 60)}
            )
        )
        assert outbox.content()[1] == [filled, last]
        assert dict(outbox.content()[0])["z"] == KnownRun(AgentRunState.HELD, 60)
        filler.unlink()
        assert fill_with_reports(outbox, last + 1) > filled * 0.8, (
            "the room that they had is used again"
        )
        outbox.close()
        second = Outbox(disk / "outbox")
        assert second.content()[1][:2] == [filled, last]
        second.close()


def test_converted_report_stays_until_its_successor_is_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        outbox = Outbox(disk / "outbox")
        filled = fill_with_reports(outbox)
        fill(disk)
        other = msgspec.structs.replace(pending_report(9_999, 400_000), run=pending_report(1).run)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            outbox.write(OutboxChanges({1: None, 2: None, 9_999: other}))
        assert outbox.content()[1] == [1, *range(3, filled + 1)]
        outbox.close()


def fill_with_reports(outbox: Outbox, first: int = 1) -> int:
    """Fill the disk with reports; return their number."""
    seqs = count(first)
    with contextlib.suppress(sqlite3.OperationalError):
        while True:
            outbox.write(OutboxChanges({seq: pending_report(seq, 600) for seq in islice(seqs, 20)}))
    return len(outbox.content()[1])


def test_outbox_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "outbox"
    outbox = Outbox(path)
    with pytest.raises(Conflict, match=f"another agent uses the outbox {path}"):
        Outbox(path)
    outbox.close()
    path.write_bytes(b"some other file, long enough to be a page of a database" * 20)
    with pytest.raises(Corrupt, match=f"{path} is not an outbox of this release"):
        Outbox(path)
    with pytest.raises(Forbidden, match=f"cannot use the outbox {tmp_path}"):
        Outbox(tmp_path)


def test_oldest_runs_are_forgotten_and_deleted() -> None:
    memory = RunMemory(live=2, ended=2)
    for run in "abc":
        memory.put(run, KnownRun(AgentRunState.HELD, 60))
    for run in "def":
        memory.put(run, KnownRun(AgentRunState.ENDED, None))
    assert [memory.get(run) for run in "ad"] == [None, None]
    assert memory.get("c") == KnownRun(AgentRunState.HELD, 60)
    assert memory.get("f") == KnownRun(AgentRunState.ENDED)
    assert [run for run, report in memory.take().runs.items() if report is None] == ["a", "d"]


def test_failed_changes_are_overridden_by_later_ones() -> None:
    memory = RunMemory()
    memory.keep(pending_report(1))
    memory.put("a", KnownRun(AgentRunState.WAITING, 60))
    failed = memory.take()
    memory.drop(pending_report(1))
    memory.put("a", KnownRun(AgentRunState.HELD, 60))
    memory.give_back(failed)
    assert memory.changes.reports == {1: None}
    assert memory.changes.runs == {"a": KnownRun(AgentRunState.HELD, 60)}
