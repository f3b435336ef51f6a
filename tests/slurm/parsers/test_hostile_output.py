"""Hostile output: no wrong value is read from it, and each error names line and field."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core.errors import InvalidInput
from fairbank.core.time import iso
from fairbank.slurm.parsers import config, machine, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.columns import read_rows, split_records
from tests.slurm.reconcile.jobs import a_job, sacct_row

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("|\x1f\n\r\"'\\=, "), max_size=60)
NAMED = (*sacct.JOBS.columns[:2], "JobName", *sacct.JOBS.columns[2:])
JOBS = st.builds(
    a_job,
    st.integers(1, 2**32 - 1),
    submitted=st.integers(10**9, 2 * 10**9),
    elapsed=st.integers(0, 10**6),
    state=st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "REQUEUED"]),
    tres=st.sampled_from(["cpu=1,mem=1G,node=1", "cpu=16,gres/gpu=2,mem=187.50G,node=1"]),
)


@given(st.lists(JOBS, max_size=5))
def test_sacct_rows_round_trip(jobs: list[AccountingJob]) -> None:
    parsed = sacct.JOBS.read("".join(map(sacct_row, jobs)))
    assert (parsed.rows, parsed.unreadable) == (tuple(jobs), ())


@given(st.lists(st.tuples(JOBS, TEXT), max_size=5))
def test_hostile_name_affects_only_its_job(jobs: list[tuple[AccountingJob, str]]) -> None:
    """Even if a user requests names, each job is either read correctly or reported as
    unreadable.
    """
    lines = [sacct_row(job, name=name.replace("\x1f", "")) for job, name in jobs]
    records = split_records("sacct", "".join(lines), NAMED)
    parsed = read_rows("sacct", records, sacct.read_job)
    expected = [job for job, _ in jobs]
    assert all(job in expected for job in parsed.rows)
    assert all(job in parsed.rows for job, name in jobs if "\n" not in name)
    broken = sum(1 for _, name in jobs if "\n" in name)
    assert len(parsed.rows) == len(jobs) - broken
    assert len(parsed.unreadable) >= 2 * broken
    named = {line.job_id for line in parsed.unreadable}
    assert None not in named
    assert {job.job_id for job, name in jobs if "\n" in name} <= named


def test_no_requested_column_is_written_by_users() -> None:
    """A name with a line end could contain a whole record of another user's job. So no such column
    is requested.
    """
    assert {
        "JobName",
        "Comment",
        "AdminComment",
        "WorkDir",
        "SubmitLine",
        "Constraints",
        "NodeList",
    }.isdisjoint(sacct.JOBS.columns)


@given(TEXT)
def test_garbage_is_reported_not_read(text: str) -> None:
    for read in (
        sacct.JOBS.read,
        squeue.QUEUE.read,
        sacctmgr.ASSOCIATIONS.read,
        sacctmgr.QOS.read,
        sacctmgr.COORDINATORS.read,
    ):
        parsed = read(text)
        assert len(parsed.rows) + len(parsed.unreadable) == sum(
            1 for line in text.split("\n") if line
        )
        assert all(line.line >= 1 and line.field and line.why for line in parsed.unreadable)
    for read_objects in (machine.read_partitions, machine.read_nodes):
        assert all(line.field for line in read_objects(text).unreadable)
    sshare.USAGE.read(text)
    config.read_config(text)


@given(st.integers(0, len(sacct.JOBS.columns) - 1), TEXT)
def test_damaged_cell_is_reported_by_its_column(place: int, text: str) -> None:
    job = a_job(7)
    cells = sacct_row(job).rstrip("\n").split("\x1f")
    cells[place] = text.replace("\x1f", "").replace("\n", "")
    parsed = sacct.JOBS.read("\x1f".join(cells) + "\n")
    if parsed.unreadable:
        (line,) = parsed.unreadable
        assert (line.line, parsed.rows) == (1, ())
        assert line.field == sacct.JOBS.columns[place]
        assert line.job_id == (None if place == 0 else 7)
    else:
        (read,) = parsed.rows
        assert isinstance(read, AccountingJob)
        assert all(gap.field == sacct.JOBS.columns[place] for gap in read.gaps)


@pytest.mark.parametrize(
    ("field", "is_price_known"),
    [
        ("UID", True),
        ("TimelimitRaw", True),
        ("Account", False),
        ("Partition", False),
        ("QOS", False),
        ("AllocTRES", False),
    ],
)
def test_unreadable_cell_leaves_the_job_readable(field: str, is_price_known: bool) -> None:
    job = a_job(7)
    cells = dict(zip(sacct.JOBS.columns, sacct_row(job).rstrip("\n").split("\x1f"), strict=True))
    (read,) = sacct.JOBS.read("\x1f".join((cells | {field: "\x7f"}).values())).rows
    (gap,) = read.gaps
    assert (gap.field, gap.job_id) == (field, 7)
    assert read.price_gaps == (() if is_price_known else (gap,))
    assert (read.job_id, read.submitted, read.end) == (job.job_id, job.submitted, job.end)
    assert read.is_complete is is_price_known


@pytest.mark.parametrize("printed", ["", "billing=??"])
def test_run_without_tres_has_a_gap(printed: str) -> None:
    """The requested TRES are no price: the job may have got others."""
    cells = dict(
        zip(sacct.JOBS.columns, sacct_row(a_job(7)).rstrip("\n").split("\x1f"), strict=True)
    )
    (read,) = sacct.JOBS.read("\x1f".join((cells | {"AllocTRES": printed}).values())).rows
    (gap,) = read.price_gaps
    assert (str(gap), read.tres) == ("sacct, line 1, AllocTRES: is empty", "")


@pytest.mark.parametrize("state", ["SOMESTATE", "REQUEUE_HOLD"])
def test_job_of_an_unknown_state_is_left_out(state: str) -> None:
    (left,) = sacct.JOBS.read(sacct_row(a_job(7, state=state))).unreadable
    assert (left.field, left.job_id) == ("State", 7)
    assert left.why == f"'{state}' is not a job state known here"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PATHS = (
    "job_id",
    "account",
    "partition",
    "qos",
    "user",
    "state",
    "tres",
    "time",
    "association",
    "restart_cnt",
)


@given(st.sampled_from(PATHS), VALUES)
def test_damaged_json_is_reported_by_its_field(field: str, value: object) -> None:
    jobs = [json_job(1), {**json_job(2), field: value}, json_job(3)]
    try:
        parsed = sacct.read_json(json.dumps({"jobs": jobs}).encode())
    except (InvalidInput, UnicodeEncodeError):
        return  # a number that JSON cannot hold: no job can be read
    numbers = [job.job_id for job in parsed.rows]
    assert numbers[0] == 1
    assert numbers[-1] == 3
    assert len(parsed.rows) + len(parsed.unreadable) == 3
    assert all(line.line == 2 and line.field for line in parsed.unreadable)


def json_job(number: int) -> dict[str, object]:
    """Return a job as 22.05 writes it; the newer reader accepts it too."""
    return {
        "job_id": number,
        "account": "chem",
        "partition": "cpu",
        "qos": "normal",
        "user": "alice",
        "association": {"user": "alice"},
        "time": {
            "submission": 10**9,
            "start": 10**9,
            "end": 10**9 + 60,
            "elapsed": 60,
            "limit": 30,
        },
        "state": {"current": "COMPLETED", "reason": "None"},
        "tres": {
            "allocated": [{"type": "cpu", "name": None, "id": 1, "count": 4}],
            "requested": [],
        },
    }


def test_times_are_read_as_utc() -> None:
    (job,) = sacct.JOBS.read(sacct_row(a_job(1, submitted=1_795_000_000))).rows
    assert iso(job.submitted) == "2026-11-18T11:06:40Z"
