"""Resized jobs: each piece is priced by its resources and time, once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.run_report import RunPiece
from fairbank.core.units import round_up
from fairbank.slurm.parsers import sacct
from fairbank.slurm.reconcile.compare import Category
from fairbank.slurm.reconcile.prices import ClusterPrices
from fairbank.slurm.reconcile.repair import charge_report
from fairbank.slurm.reconcile.resized import is_later_piece, join_resized
from fairbank.slurm.reconcile.restarts import restart_count
from tests.slurm.reconcile.comparison import compare_records, only_finding
from tests.slurm.reconcile.jobs import CLUSTER, NOW, a_job, bank_run, sacct_row


def resized(
    *pieces: tuple[int, int], number: int = 1, submitted: int = NOW - 50_000, state: str = "FAILED"
) -> list[AccountingJob]:
    """Return the records of a job with pieces of (seconds, processors)."""
    records, at = [], submitted
    for seconds, cpus in pieces:
        records.append(
            a_job(number, submitted=at, elapsed=seconds, state="RESIZING", tres=f"cpu={cpus}")
        )
        at += seconds
    records[-1] = msgspec.structs.replace(records[-1], state=state)
    return records


def test_pieces_are_one_run() -> None:
    records = resized((3_600, 8), (1_800, 4), (600, 2))
    (job,) = join_resized(reversed(records))
    assert (job.submitted, job.start, job.end) == (
        records[0].submitted,
        records[0].start,
        records[2].end,
    )
    assert (job.elapsed, job.state, job.tres) == (6_000, "FAILED", "cpu=2")
    assert [(piece.seconds, piece.tres) for piece in job.pieces] == [
        (3_600, "cpu=8"),
        (1_800, "cpu=4"),
    ]
    assert ClusterPrices(CLUSTER).end_price(job) == 60 * 8 + 30 * 4 + 10 * 2


def test_later_record_with_the_start_of_the_job_counts_its_own_time() -> None:
    """slurmdbd stores the start of the job with each record, and counts the time from there."""
    records = resized((3_600, 8), (1_800, 4), (600, 2))
    as_stored = stored(records)
    assert [is_later_piece(record) for record in as_stored] == [False, True, True]
    assert join_resized(as_stored) == join_resized(records)


def test_job_between_two_pieces_is_unfinished() -> None:
    (job,) = join_resized(resized((3_600, 8), state="RESIZING"))
    assert not job.has_ended


def test_whole_charge_of_a_resized_run_agrees() -> None:
    (job,) = join_resized(resized((3_600, 8), (3_600, 4)))
    assert compare_records([job], [bank_run(job, charged=720)]).matched == 1
    assert only_finding(compare_records([job], [bank_run(job, charged=480)])).amount == -240


def test_missing_resized_run_is_reported_with_its_pieces() -> None:
    (job,) = join_resized(resized((3_600, 8), (3_600, 4)))
    finding = only_finding(compare_records([job]))
    assert (finding.category, finding.amount) == (Category.MISSING, 720)
    report = charge_report(job, None, 0, CLUSTER)
    assert (report.tres, report.elapsed) == ("cpu=4", 7_200)
    assert report.pieces == (RunPiece(seconds=3_600, tres="cpu=8"),)


def test_resize_is_no_restart() -> None:
    (job,) = history = join_resized(resized((3_600, 8), (3_600, 4)))
    assert restart_count(job, history) == 0


PIECES = st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 64)), min_size=1, max_size=5)
FINAL = st.sampled_from(["COMPLETED", "FAILED", "REQUEUED", "CANCELLED"])


@given(
    st.lists(st.tuples(PIECES, FINAL, st.integers(3, 500)), min_size=1, max_size=4), st.randoms()
)
def test_history_with_resizes_and_requeues_adds_up_to_the_second(
    executions: list[tuple[list[tuple[int, int]], str, int]], order: object
) -> None:
    """Each execution is one run, with all its seconds, at the sum of its pieces' prices."""
    records: list[AccountingJob] = []
    at = NOW - 500_000
    for pieces, state, pause in executions:
        records += resized(*pieces, submitted=at, state=state)
        at += sum(seconds for seconds, _ in pieces) + pause
    order.shuffle(records)  # type: ignore[attr-defined]
    joined = join_resized(records)
    assert [job.elapsed for job in joined] == [
        sum(seconds for seconds, _ in pieces) for pieces, _, _ in executions
    ]
    prices = ClusterPrices(CLUSTER)
    assert [prices.price(job, job.elapsed) for job in joined] == [
        round_up(Fraction(sum(seconds * cpus for seconds, cpus in pieces), 60))
        for pieces, _, _ in executions
    ]


def stored(records: Sequence[AccountingJob]) -> list[AccountingJob]:
    """Return the records of a resized job as slurmdbd has them: each with the start of the job."""
    start = records[0].start or 0
    return [
        msgspec.structs.replace(record, start=start, elapsed=(record.end or 0) - start)
        for record in records
    ]


@st.composite
def damaged_rows(draw: st.DrawFn, row: str) -> str:
    """Return the row with an unreadable cell, too few or too many cells, or a line end inside."""
    column = draw(st.sampled_from(["Submit", "State", "End", "ElapsedRaw", "AllocTRES"]))
    place = sacct.JOBS.columns.index(column)
    cells = row.rstrip("\n").split("\x1f")
    ways: list[list[str]] = [["?"], [], ["?", "?"], ["?\n?"], ["\n\n"]]
    cells[place : place + 1] = draw(st.sampled_from(ways))
    return "\x1f".join(cells) + "\n"


SHORT_PIECES = st.lists(
    st.tuples(st.integers(1, 5_000), st.integers(1, 64)), min_size=1, max_size=4
)


@given(st.lists(st.lists(SHORT_PIECES, min_size=1, max_size=3), min_size=1, max_size=6), st.data())
def test_unreadable_line_changes_no_other_job(
    jobs: list[list[list[tuple[int, int]]]], data: st.DataObject
) -> None:
    """Whatever line of resized and requeued jobs is damaged, each other run is charged for each of
    its seconds once. If only the price cannot be read, that run is left out, else its whole job.
    """
    rows = [
        (number, place, sacct_row(record))
        for number, executions in enumerate(jobs, 1)
        for place, pieces in enumerate(executions)
        for record in stored(
            resized(
                *pieces,
                number=number,
                submitted=NOW - (4 - place) * 30_000,
                state="REQUEUED" if place + 1 < len(executions) else "FAILED",
            )
        )
    ]
    row = data.draw(st.integers(0, len(rows) - 1))
    damaged = rows[row][:2]
    lines = [line for _, _, line in rows]
    lines[row] = data.draw(damaged_rows(lines[row]))
    read = sacct.JOBS.read("".join(lines))
    findings = compare_records(
        join_resized(read.rows), unreadable={line.job_id for line in read.unreadable}
    ).findings
    charged = sorted(
        (finding.job.job_id, finding.job.start, finding.amount)
        for finding in findings
        if finding.job is not None and finding.category is Category.MISSING
    )
    assert charged == [
        (
            number,
            NOW - (4 - place) * 30_000,
            round_up(Fraction(sum(seconds * cpus for seconds, cpus in pieces), 60)),
        )
        for number, executions in enumerate(jobs, 1)
        for place, pieces in enumerate(executions)
        if (number != damaged[0] if read.unreadable else (number, place) != damaged)
    ]
