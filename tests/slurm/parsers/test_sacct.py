"""Jobs of accounting in columns and in JSON, which are the same jobs."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.slurm.parsers import sacct
from tests.slurm.reconcile.jobs import a_job, sacct_json, sacct_row

JOBS = st.builds(
    a_job,
    st.integers(1, 2**32 - 1),
    submitted=st.integers(10**9, 2 * 10**9),
    elapsed=st.integers(0, 10**6),
    state=st.sampled_from(
        ["COMPLETED", "FAILED", "NODE_FAIL", "REQUEUED", "RESIZING", "RUNNING", "PENDING"]
    ),
    tres=st.sampled_from(["", "cpu=1,mem=1000,node=1", "cpu=16,gres/gpu=2,gres/gpu:a100=2"]),
    account=st.sampled_from(["chem", ""]),
    partition=st.sampled_from(["cpu", ""]),
    limit_seconds=st.none() | st.integers(1, 10**6).map(lambda minutes: minutes * 60),
    owner=st.none(),
)


def without_uid(job: AccountingJob) -> AccountingJob:
    return msgspec.structs.replace(job, owner=None)


def without_gaps(job: AccountingJob) -> AccountingJob:
    return msgspec.structs.replace(job, gaps=())


@given(st.lists(JOBS, max_size=5))
def test_both_forms_read_the_same_jobs(jobs: list[AccountingJob]) -> None:
    columns = sacct.JOBS.read("".join(map(sacct_row, jobs)))
    from_json = sacct.read_json(json.dumps({"jobs": list(map(sacct_json, jobs))}).encode())
    assert from_json.unreadable == columns.unreadable == ()
    assert list(map(without_gaps, from_json.rows)) == jobs
    assert [without_uid(without_gaps(job)) for job in columns.rows] == jobs
    for one, other in zip(from_json.rows, columns.rows, strict=True):
        assert [(gap.line, gap.field) for gap in one.gaps] == [
            (gap.line, gap.field) for gap in other.gaps
        ]
        assert {gap.command for gap in one.gaps} <= {"sacct --json"}


@pytest.mark.parametrize("state", ["PENDING", "CANCELLED"])
@pytest.mark.parametrize("partition", ["cpu,gpu", ""])
@pytest.mark.parametrize("account", ["chem", ""])
@pytest.mark.parametrize(("qos", "tres"), [("normal", "cpu=1"), (None, "")])
def test_job_that_never_started_needs_no_partition_account_qos_or_tres(
    state: str, partition: str, account: str, qos: str | None, tres: str
) -> None:
    job = a_job(1, state="PENDING", partition=partition, account=account, tres=tres)
    job = msgspec.structs.replace(job, state=state, qos=qos)
    columns = sacct.JOBS.read(sacct_row(job))
    from_json = sacct.read_json(json.dumps({"jobs": [sacct_json(job)]}).encode())
    for (read,) in (columns.rows, from_json.rows):
        assert (read.partition, read.account, read.price_gaps) == (partition, account, ())


@given(st.sampled_from(["", "1x", "-1", str(2**40)]), st.sampled_from(["Submit", "State", "End"]))
def test_unreadable_line_names_its_job_if_it_can(job_id: str, field: str) -> None:
    for number in (job_id, "7"):
        cells = dict(zip(sacct.JOBS.columns, sacct_row(a_job(7)).split("\x1f"), strict=True))
        damaged = "\x1f".join((cells | {"JobIDRaw": number, field: "?"}).values())
        (line,) = sacct.JOBS.read(damaged.rstrip("\n")).unreadable
        assert line.job_id == (7 if number == "7" else None)


@given(st.integers(1, 30).filter(lambda count: count != len(sacct.JOBS.columns)))
def test_line_with_another_number_of_cells_names_its_job(count: int) -> None:
    cells = [*sacct_row(a_job(7)).rstrip("\n").split("\x1f"), *["x"] * 30][:count]
    parsed = sacct.JOBS.read("\x1f".join(cells))
    assert [line.job_id for line in parsed.unreadable] == [7]


def test_limit_of_the_partition_is_no_unlimited_time() -> None:
    jobs = [a_job(1, limit_seconds=None), a_job(2, limit_seconds=None), a_job(3)]
    jobs[0] = msgspec.structs.replace(jobs[0], has_own_limit=False)
    columns = sacct.JOBS.read("".join(map(sacct_row, jobs)))
    from_json = sacct.read_json(json.dumps({"jobs": list(map(sacct_json, jobs))}).encode())
    for rows in (columns.rows, from_json.rows):
        assert [(job.has_own_limit, job.limit_seconds) for job in rows] == [
            (False, None),
            (True, None),
            (True, 3_600),
        ]


def test_rest_of_a_broken_line_belongs_to_its_job() -> None:
    """Without a broken line before it, a line without a job id may belong to any job."""
    first, second = sacct_row(a_job(7, account="chem\n\nx\ny")), sacct_row(a_job(8))
    rest = first.splitlines()[-1] + "\n"
    parsed = sacct.JOBS.read(first + second + rest)
    assert [job.job_id for job in parsed.rows] == [8]
    lines = [(line.line, line.job_id) for line in parsed.unreadable]
    assert lines == [(1, 7), (3, 7), (4, 7), (6, None)]


def test_job_with_another_encoding_is_named() -> None:
    jobs = [sacct_json(a_job(7, account="?")), sacct_json(a_job(8))]
    text = json.dumps({"jobs": jobs}).encode().replace(b'"?"', b'"\xff"')
    parsed = sacct.read_json(text)
    assert [job.job_id for job in parsed.rows] == [8]
    assert [line.job_id for line in parsed.unreadable] == [7]
