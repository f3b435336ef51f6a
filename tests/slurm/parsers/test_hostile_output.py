"""Hostile output: no wrong value comes of it, and no error but the one that names line and
field.
"""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import iso
from fairbank.slurm.parsers import config, machine, sacct, sacctmgr, squeue, sshare
from fairbank.slurm.parsers.columns import read_rows, split_records
from fairbank.slurm.parsers.values import AccountingJob
from tests.slurm.reconcile.jobs import a_job, row_of

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
def test_what_is_written_is_read_back(jobs: list[AccountingJob]) -> None:
    found = sacct.JOBS.read("".join(map(row_of, jobs)))
    assert (found.rows, found.unreadable) == (tuple(jobs), ())


@given(st.lists(st.tuples(JOBS, TEXT), max_size=5))
def test_a_name_spoils_no_more_than_its_own_job(jobs: list[tuple[AccountingJob, str]]) -> None:
    """Even if a user asked for names: what is read is what was there, or it is told that it
    was not read.
    """
    lines = [row_of(job, name=name.replace("\x1f", "")) for job, name in jobs]
    records = split_records("sacct", "".join(lines), NAMED)
    found = read_rows("sacct", records, sacct.read_job)
    there = [job for job, _ in jobs]
    assert all(job in there for job in found.rows)
    assert all(job in found.rows for job, name in jobs if "\n" not in name)
    broken = sum(1 for _, name in jobs if "\n" in name)
    assert len(found.rows) == len(jobs) - broken
    assert len(found.unreadable) >= 2 * broken


def test_no_column_that_we_ask_for_is_written_by_users() -> None:
    """A name with a line end could hold a whole record of another user's job: so none is asked
    for.
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
def test_garbage_is_told_not_believed(text: str) -> None:
    for read in (
        sacct.JOBS.read,
        squeue.QUEUE.read,
        sacctmgr.ASSOCIATIONS.read,
        sacctmgr.QOS.read,
        sacctmgr.COORDINATORS.read,
    ):
        found = read(text)
        assert len(found.rows) + len(found.unreadable) == sum(
            1 for line in text.split("\n") if line
        )
        assert all(each.line >= 1 and each.field and each.why for each in found.unreadable)
    for look in (machine.read_partitions, machine.read_nodes):
        assert all(each.field for each in look(text).unreadable)
    sshare.USAGE.read(text)
    config.read_config(text)


@given(st.integers(0, len(sacct.JOBS.columns) - 1), TEXT)
def test_a_damaged_cell_is_reported_by_its_column(place: int, text: str) -> None:
    job = a_job(7)
    cells = row_of(job).rstrip("\n").split("\x1f")
    cells[place] = text.replace("\x1f", "").replace("\n", "")
    found = sacct.JOBS.read("\x1f".join(cells) + "\n")
    if found.unreadable:
        (told,) = found.unreadable
        assert (told.line, found.rows) == (1, ())
        assert told.field == sacct.JOBS.columns[place]
    else:
        (read,) = found.rows
        assert isinstance(read, AccountingJob)


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
        answer = sacct.read_json(json.dumps({"jobs": jobs}).encode())
    except (InvalidInput, UnicodeEncodeError):
        return  # a number that JSON cannot hold: no job can be read
    numbers = [job.job_id for job in answer.rows]
    assert numbers[0] == 1
    assert numbers[-1] == 3
    assert len(answer.rows) + len(answer.unreadable) == 3
    assert all(each.line == 2 and each.field for each in answer.unreadable)


def json_job(number: int) -> dict[str, object]:
    """As 22.05 writes it, which the newer reader takes as well."""
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


def test_the_time_of_a_line_is_in_utc() -> None:
    (job,) = sacct.JOBS.read(row_of(a_job(1, submitted=1_795_000_000))).rows
    assert iso(job.submitted) == "2026-11-18T11:06:40Z"
