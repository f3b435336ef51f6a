"""Child project that uses its parent's shared credit: where its jobs are listed, and the hints that
its users get.
"""

from __future__ import annotations

import json
import re
import shlex

import pytest

from fairbank.core.time import parse_instant
from fairbank.rest.client import Client, parse_address
from tests.cli.conftest import Run
from tests.cli.served_site import Bank
from tests.cli.site import AYLA, DANA, GPU, STRANGER

START, END = "2026-11-20T00:00:00Z", "2026-11-20T02:00:00Z"
CHILD_JOB, PARENT_JOB = 950_001, 950_002
OUTSIDER = 61_010


@pytest.fixture(scope="module", autouse=True)
def child_project(own_bank: Bank) -> None:
    """Make chem_sub, of which the stranger is a member: it may use chem_qmc's gpu, has used up its
    storage, and its tape is unused.
    """
    client = Client(parse_address(own_bank.unix))
    client.post("/project", {"gname": "chemsub", "gid": 50_020, "account": "chem_sub", "parent": 1})
    client.put(f"/project/3/member/{STRANGER}", {"role": "member"})
    client.patch(f"/alloc/{GPU}", {"shared": True, "comment": "for the child"})
    for resource, amount in (("storage", 6_000), ("tape", 600_000)):
        terms = {
            "start": "2026-01-01",
            "end": "2027-01-01",
            "amount": amount,
            "shared": True,
            "comment": "for the child",
        }
        client.post(
            "/alloc", {"account": "chem_qmc", "resource": resource, "category": "research", **terms}
        )
    for job, account, amount in ((CHILD_JOB, "chem_sub", 4_000), (PARENT_JOB, "chem_qmc", 2_000)):
        report = {
            "cluster": "darwin",
            "job_id": job,
            "submitted": parse_instant(START) - 60,
            "owner_uid": DANA,
            "account": account,
            "partition": "idle-std",
            "resource": "storage",
            "start": parse_instant(START),
            "time_limit": 7_200,
            "amount": amount,
        }
        client.post("/job", {"do": "hold", **report})
        client.post(
            "/job",
            {
                "do": "complete",
                "end": parse_instant(END),
                "elapsed": 7_200,
                "state": "COMPLETED",
                **report,
            },
        )


@pytest.mark.parametrize("uid", [STRANGER, AYLA])
def test_commands_suggested_by_balance_work(changing: Run, uid: int) -> None:
    words = ("balance", "-r", "gpu,storage,tape", "--as", uid, "--json")
    warnings = json.loads(changing(*words).out)["warnings"]
    assert [warning.partition("  ")[0] for warning in warnings] == [
        "! chem_qmc/gpu: empty in 12 days at the mean pace since 2026-07-01.",
        "!! chem_qmc/storage: empty; further use has no credit.",
        "! chem_qmc/tape: under-used, 40 days left.",
    ]
    for warning in warnings:
        result = changing(*shlex.split(warning.partition("See: fairbank ")[2]), "--as", uid)
        assert (result.code, "error" in result.err) == (0, False), warning


def test_usage_of_shared_credit_is_limited_to_visible_users(changing: Run) -> None:
    words = ("usage", "--alloc", 4, "-S", "2026-01-01", "--json", "--as")
    assert [row["charged"] for row in json.loads(changing(*words, STRANGER).out)["data"]] == [4_000]
    assert [row["charged"] for row in json.loads(changing(*words, AYLA).out)["data"]] == [6_000]


def test_jobs_and_usage_belong_to_the_child_project(changing: Run) -> None:
    def jobs(*words: object) -> list[tuple[str, int]]:
        return [
            (row["account"], row["job_id"])
            for row in json.loads(changing("jobs", "--json", *words).out)["data"]
        ]

    child, parent = ("chem_sub", CHILD_JOB), ("chem_qmc", PARENT_JOB)
    assert jobs("-A", "chem_sub", "--as", STRANGER) == [child]
    assert jobs("-A", "chem_sub") == [child]
    assert jobs("-A", "chem_qmc", "-j", f"{CHILD_JOB},{PARENT_JOB}", "--as", AYLA) == [parent]
    assert jobs("--alloc", 4, "--as", AYLA) == [parent, child]
    assert jobs("--alloc", 4, "--as", STRANGER) == [child]
    for uid in (STRANGER, 0):
        assert [
            row["charged"]
            for row in json.loads(changing("usage", "-A", "chem_sub", "--json", "--as", uid).out)[
                "data"
            ]
        ] == [4_000]


def test_members_of_parent_see_child_jobs_that_they_paid(changing: Run) -> None:
    assert [
        row["job_id"]
        for row in json.loads(changing("jobs", "-a", "-A", "chem_sub", "--json", "--as", AYLA).out)[
            "data"
        ]
    ] == [CHILD_JOB]
    assert [
        row["charged"]
        for row in json.loads(changing("usage", "-A", "chem_sub", "--json", "--as", AYLA).out)[
            "data"
        ]
    ] == [4_000]
    for words in (
        ("jobs", "-a", "--failed"),
        ("jobs", "-a", "--refused"),
        ("usage", "-S", "2026-11-21"),
    ):  # there are no such rows
        assert changing(*words, "-A", "chem_sub", "--as", AYLA).code == 0, words
    for command in ("jobs -a", "jobs -a --refused", "usage"):  # no rows of the child project
        result, unknown = (
            changing(*command.split(), "-A", account, "--as", OUTSIDER)
            for account in ("chem_sub", "chem_sux")
        )
        assert (result.code, result.err.replace("chem_sub", "chem_sux")) == (3, unknown.err), (
            command
        )


def test_child_project_cannot_read_parents_statement(changing: Run) -> None:
    result = changing("statement", 4, "--as", STRANGER)
    assert (result.code, "allocation 4 is your parent project's" in result.err) == (4, True)
    (command,) = re.findall(r"see what yours used of it: fairbank (.*)", result.err)
    assert changing(*shlex.split(command), "--as", STRANGER).code == 0
    assert changing("statement", 4, "--as", OUTSIDER).code == 3
