"""Filters of refusals and jobs when some jobs requested a resource for which their project has no
allocation.
"""

from __future__ import annotations

import csv
import json

import pytest

from fairbank.bank.refusals import Reason
from fairbank.cli import main
from fairbank.cli.commands.bank import sproject
from fairbank.cli.commands.bank.job_rows import REFUSED
from fairbank.core.time import parse_instant
from fairbank.report.columns import DisplayFormat
from fairbank.report.tables import JsonSource, envelope, table
from fairbank.rest.client import Client, Refused, parse_address
from tests.cli.conftest import Run, runner
from tests.cli.output_values import job_numbers, output_of
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, GPU, JORGE

GPU_TOO_EARLY, CPU_WITHOUT_ALLOCATION, SECOND_TRY = 900_001, 900_002, 900_003


def test_shortfall_is_the_same_everywhere() -> None:
    """The missing amount is the difference of the two figures shown next to it, not 83253.07, the
    rounded difference in minutes.
    """
    row = {"requested": 5_000_000, "available": 4_816, "shortfall": 4_995_184}
    columns = [column for column in (*REFUSED, *sproject.FAILURE_DETAIL) if column.head == "SHORT"]
    assert [column.cell(row, DisplayFormat()) for column in columns] == ["83253.07"] * 2
    (shown,) = envelope("x", JsonSource(), [row], (), DisplayFormat())["data"]
    assert shown["display"] == {
        "requested": "83333.33",
        "available": "80.27",
        "shortfall": "83253.07",
    }


def test_reason_of_a_refusal_is_shown_in_80_columns() -> None:
    """With the longest reason and large figures: what is available is dropped before it."""
    reason = max(Reason, key=lambda reason: len(reason.name)).name
    row = {
        "at": "2025-11-20T10:00:00Z",
        "job_id": 123_456_789,
        "account": "chem_qmc_long_name",
        "resource": "gpu-a100",
        "requested": 123_456_789 * 60,
        "available": 98_765_432 * 60 + 7,
        "reason": reason,
    }
    made = table(REFUSED, [row], DisplayFormat(), 80)
    assert made.lines[1].endswith(reason.lower().replace("_", " "))
    assert len(made.lines[1]) <= 80
    assert made.dropped == ["RESOURCE", "AVAILABLE"]


@pytest.fixture(scope="module", autouse=True)
def refused_jobs(own_bank: Bank) -> None:
    """Refuse three jobs: gpu before its allocation starts, cpu without any allocation, and one for
    more than is left.
    """
    client = Client(parse_address(own_bank.unix))
    for job, account, partition, start in (
        (GPU_TOO_EARLY, "chem_qmc", "gpu-v100", "2026-06-01T00:00:00Z"),
        (CPU_WITHOUT_ALLOCATION, "bio_fold", "idle-std", "2026-11-21T12:00:00Z"),
        (SECOND_TRY, "chem_qmc", "gpu-v100", "2026-11-21T12:00:00Z"),
    ):
        report = {
            "do": "hold",
            "cluster": "darwin",
            "job_id": job,
            "submitted": parse_instant(start) - 60,
            "owner_uid": JORGE,
            "account": account,
            "partition": partition,
            "start": parse_instant(start),
            "time_limit": 3600,
            "amount": 60_000_000,
        }
        with pytest.raises(Refused):
            client.post("/job", report)


@pytest.fixture
def own_sproject(
    own_bank: Bank, clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    clean_env.setenv("FAIRBANK_SERVER", own_bank.unix)
    return runner(sproject.run, capsys)


def job_ids(run: Run, *words: object) -> list[int]:
    return job_numbers(run(*words, "--json"))


def test_refusal_has_the_requested_resource(own_sproject: Run) -> None:
    assert job_ids(own_sproject, "failures", "-r", "gpu") == [SECOND_TRY, GPU_TOO_EARLY, 812_350]
    assert job_ids(own_sproject, "failures", "-r", "cpu") == [CPU_WITHOUT_ALLOCATION]
    assert job_ids(own_sproject, "failures", "-g", "biofold") == [CPU_WITHOUT_ALLOCATION]
    assert job_ids(own_sproject, "failures", "-g", "50001", "-u", AYLA) == []


def test_active_omits_refusals_without_an_allocation(own_sproject: Run) -> None:
    assert job_ids(own_sproject, "failures", "-a") == [SECOND_TRY, 812_350]


def test_jobs_of_a_frozen_allocation_are_active(changing: Run, own_sproject: Run) -> None:
    assert changing("alloc", "freeze", GPU, "--reason", "audit").code == 0
    try:
        assert GPU not in [
            row["id"] for row in json.loads(own_sproject("allocations", "-a", "--json").out)["data"]
        ]
        assert 812_330 in job_ids(own_sproject, "jobs", "-a")
    finally:
        assert changing("alloc", "thaw", GPU, "--reason", "done").code == 0


def test_refused_job_that_ran_later_is_marked(changing: Run) -> None:
    """Job 812350 of Jorge is refused; with a shorter limit it runs, and is charged."""
    refused = ("jobs", "--refused", "-j", 812_350)
    assert "LATER" not in changing(*refused).out
    job = ("-A", "chem_qmc", "-p", "gpu-v100", "-u", JORGE, "--tres", "cpu=1,gres/gpu=1")
    output_of(changing("hold", 812_350, *job, "-t", "1:00:00"))
    for words in (refused, ("-a", "--as", JORGE)):
        out = changing(*words).out
        assert "LATER" in out
        assert "insufficient credit running" in " ".join(out.split())
    output_of(changing("release", 812_350, "--reason", "x"))
    (row,) = json.loads(output_of(changing(*refused, "--json")))["data"]
    assert row["later_state"] == "released"


def test_limit_applies_to_refusals_of_named_jobs_and_clusters(
    own_sproject: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    fairbank = runner(main.run, capsys)
    words = ("jobs", "--refused", "-a", "-M", "darwin", "--limit", 2)
    assert job_ids(fairbank, *words) == [SECOND_TRY, CPU_WITHOUT_ALLOCATION]
    assert "There are more" in fairbank(*words).err
    assert job_ids(fairbank, "jobs", "--refused", "-j", f"{GPU_TOO_EARLY},812350") == [
        GPU_TOO_EARLY,
        812_350,
    ]


def test_refusal_unrelated_to_credit_shows_only_the_requested_amount(
    own_bank: Bank, own_sproject: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    start = parse_instant("2026-11-21T12:00:00Z")
    run = {
        "cluster": "darwin",
        "owner_uid": AYLA,
        "account": "chem_qmc",
        "partition": "idle-std",
        "amount": 10,
    }
    early = {
        "do": "hold",
        "job_id": 900_011,
        "submitted": start,
        "start": start + 86_400,
        "time_limit": 60,
    }
    unheld = {
        "do": "adjust",
        "job_id": 900_012,
        "submitted": start - 60,
        "start": start,
        "time_limit": 60,
    }
    client = Client(parse_address(own_bank.unix))
    for change in (early, unheld):
        with pytest.raises(Refused):
            client.post("/job", run | change)
    fairbank = runner(main.run, capsys)
    words = ("jobs", "--refused", "-j", "900011,900012")
    rows = json.loads(fairbank(*words, "--json").out)["data"]
    assert {
        row["reason"]: (row["requested"], row["available"], row["shortfall"]) for row in rows
    } == dict.fromkeys(("TIMESTAMP_IN_FUTURE", "NO_HOLD"), (10, None, None))
    explained = fairbank(*words).err
    assert "Job 900011: " in explained
    assert "Job 900012: " in explained
    assert "-j JOBID" in fairbank("jobs", "--refused", "-a").err
    chosen = (*words, "-o", "JOBID,REQUEST,AVAILABLE,SHORT")
    lines = [
        line.split()
        for line in fairbank(*chosen).out.splitlines()
        if line.lstrip().startswith("9000")
    ]
    assert sorted(lines) == [["900011", "0.17", "-", "-"], ["900012", "0.17", "-", "-"]]
    assert set(fairbank(*chosen, "--csv", "-n").out.splitlines()) == {
        "900011,0.17,,",
        "900012,0.17,,",
    }
    failed = own_sproject("failures", "-u", AYLA, "--detail", "--json").out
    rows = [row for row in json.loads(failed)["data"] if row["job_id"] in (900_011, 900_012)]
    assert [(row["requested"], row["available"], row["shortfall"]) for row in rows] == [
        (10, None, None)
    ] * 2
    table = [
        row
        for row in csv.DictReader(
            own_sproject("failures", "-u", AYLA, "--detail", "--csv").out.splitlines()
        )
        if row["JOB-ID"].startswith("9000")
    ]
    assert [(row["AMOUNT"], row["BALANCE"], row["SHORT"]) for row in table] == [
        ("0.17", "", "")
    ] * 2
    short = fairbank(
        "jobs", "--refused", "-j", SECOND_TRY, "-o", "REQUEST,AVAILABLE,SHORT", "--csv", "-n"
    ).out
    assert "" not in short.strip().split(",")
    assert own_sproject("failures", "-u", AYLA, "--detail").code == 0
