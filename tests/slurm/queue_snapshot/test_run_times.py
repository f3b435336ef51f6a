"""History of run times from the accounting records of recent weeks, for the likely start."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.core.time import parse_instant
from fairbank.slurm.queue_snapshot.run_times import read_history, run_time_history

RECORDED = (
    Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue" / "history.txt"
).read_text()
NOW = int(parse_instant("2026-11-22T18:01:17Z"))


def line(
    number: int, begin: str, end: str, elapsed: int, state: str, limit: str, user: str = "ann"
) -> str:
    return (
        f"{number}|2026-11-21T00:00:00|{begin}|{end}|{elapsed}|{state}|{user}|{limit}|cpu=1,node=1"
    )


ONE = line(1, "2026-11-21T01:00:00", "2026-11-21T01:30:00", 1_800, "COMPLETED", "60")
TWO = line(2, "2026-11-21T01:00:00", "2026-11-21T01:15:00", 900, "FAILED", "60")


def test_recorded_history_is_read() -> None:
    history = read_history(RECORDED, NOW)
    assert history.unreadable == ()
    assert {job.user for job in history.rows} == {"alice", "bob", "carol", "dave"}
    assert run_time_history(history.rows).ratios("dave")[-1] == 1.0, (
        "the job that ran into its limit"
    )


def test_history_is_sorted_by_end() -> None:
    history = read_history(f"{ONE}\n{TWO}\n", NOW)
    assert [job.job for job in history.rows] == [2, 1]
    assert run_time_history(history.rows).ratios("ann") == [0.25, 0.5]


@pytest.mark.parametrize(
    "left_out",
    [
        line(3, "2026-11-21T01:00:00", "Unknown", 60, "RUNNING", "60"),
        line(3, "Unknown", "Unknown", 0, "PENDING", "60"),
        line(3, "2026-11-22T18:00:00", "2026-11-22T18:30:00", 1_800, "COMPLETED", "60"),
        line(3, "2026-11-21T01:00:00", "2026-11-21T01:30:00", 1_800, "COMPLETED", "UNLIMITED"),
        line(3, "2026-11-21T01:00:00", "2026-11-21T01:30:00", 1_800, "COMPLETED", "60", user=""),
    ],
    ids=["runs", "waits", "ended later", "no limit", "no user"],
)
def test_unusable_records_are_left_out(left_out: str) -> None:
    history = read_history(f"{ONE}\n{left_out}\n", NOW)
    assert [job.job for job in history.rows] == [1]
    assert history.unreadable == ()


def test_unreadable_input_is_reported() -> None:
    history = read_history(f"{ONE}\n1|2\n", NOW)
    assert len(history.rows) == len(history.unreadable) == 1


def test_resized_job_counts_once_with_its_whole_time() -> None:
    start = "2026-11-20T22:00:00"
    pieces = (
        line(3, start, "2026-11-21T00:00:00", 7_200, "RESIZING", "240").replace(
            "|2026-11-21T00:00:00|", f"|{start}|", 1
        ),
        line(3, start, "2026-11-21T01:00:00", 10_800, "COMPLETED", "240"),
    )
    history = read_history("\n".join((*pieces, "")), NOW)
    assert history.unreadable == ()
    assert run_time_history(history.rows).ratios("ann") == [0.75]
