"""Jobs of accounting in columns and in JSON, which are the same jobs."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.slurm.parsers import sacct
from fairbank.slurm.parsers.values import AccountingJob
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


@given(st.lists(JOBS, max_size=5))
def test_both_forms_read_the_same_jobs(jobs: list[AccountingJob]) -> None:
    columns = sacct.JOBS.read("".join(map(sacct_row, jobs)))
    from_json = sacct.read_json(json.dumps({"jobs": list(map(sacct_json, jobs))}).encode())
    assert from_json.unreadable == columns.unreadable == ()
    assert from_json.rows == tuple(jobs)
    assert tuple(map(without_uid, columns.rows)) == tuple(jobs)


@pytest.mark.parametrize("state", ["PENDING", "CANCELLED"])
@pytest.mark.parametrize("partition", ["cpu,gpu", ""])
@pytest.mark.parametrize("account", ["chem", ""])
def test_job_that_never_started_needs_no_partition_or_account(
    state: str, partition: str, account: str
) -> None:
    job = a_job(1, state="PENDING", partition=partition, account=account, tres="cpu=1")
    job = msgspec.structs.replace(job, state=state)
    columns = sacct.JOBS.read(sacct_row(job))
    from_json = sacct.read_json(json.dumps({"jobs": [sacct_json(job)]}).encode())
    for (read,) in (columns.rows, from_json.rows):
        assert (read.partition, read.account, read.gap) == (partition, account, None)


@given(st.sampled_from(["", "1x", "-1", str(2**40)]), st.sampled_from(["Submit", "State", "End"]))
def test_unreadable_line_names_its_job_if_it_can(job_id: str, field: str) -> None:
    for number in (job_id, "7"):
        cells = dict(zip(sacct.JOBS.columns, sacct_row(a_job(7)).split("\x1f"), strict=True))
        damaged = "\x1f".join((cells | {"JobIDRaw": number, field: "?"}).values())
        (line,) = sacct.JOBS.read(damaged.rstrip("\n")).unreadable
        assert line.job_id == (7 if number == "7" else None)
