"""Tests of `fairbank simulate --grant`: a simulation with the bank, as table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, session
from tests.cli.workloads import HEAD, line
from tests.support.golden import GOLDEN, kept

FOLDER = GOLDEN / "simulate"
STORIES = {
    "bank": "simulate week.swf --policy easy --policy slurm --grant 70 --periods 3",
    "bank-last": (
        "simulate week.swf --policy easy --policy credit.toml --grant 70 --periods 3 --unpaid last"
        " --staggered"
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_output_matches_the_golden_file(name: str, run: Run) -> None:
    lines = session(f"fairbank {STORIES[name]}", run(STORIES[name]))
    assert lines == kept(FOLDER / f"{name}.txt", lines)


@pytest.mark.parametrize("unpaid", ["refuse", "last"])
@pytest.mark.parametrize("policy", ["fifo", "fcfs", "easy", "conservative", "slurm"])
def test_sufficient_credit_changes_no_start(
    policy: str, unpaid: str, run: Run, tmp_path: Path
) -> None:
    """A hold may be far above the charge: the grant is ten times what the jobs use."""
    run(f"simulate week.swf --policy {policy} --starts without.txt -q")
    result = run(
        f"simulate week.swf --policy {policy} --starts with.txt --grant 1000 --periods 1 --unpaid"
        f" {unpaid} --json"
    )
    assert (tmp_path / "with.txt").read_bytes() == (tmp_path / "without.txt").read_bytes()
    row = json.loads(result.out)["data"][0]
    assert (row["refused_jobs"], row["unpaid_jobs"]) == (0, 0)
    (cpu,) = row["resources"]
    assert cpu["charged_minutes"] + cpu["expired_minutes"] == cpu["granted_minutes"]


def test_credit_is_granted_by_account_name(run: Run) -> None:
    """Two accounts of sacct: one is granted its recorded usage, and the other nothing."""
    data = json.loads(run("simulate sacct.txt --procs 8 --grant 100 --json").out)["credit"]
    assert {row["account"]: row["granted_minutes"] for row in data} == {"astro": 240, "bio": 172}
    none = json.loads(run("simulate sacct.txt --procs 8 --grant 0 --unpaid last --json").out)
    assert {row["account"]: row["unpaid_minutes"] for row in none["credit"]} == {
        "astro": 240,
        "bio": 172,
    }
    assert none["data"][0]["unpaid_jobs"] == none["data"][0]["jobs"]


def test_refused_jobs_are_counted_outside_the_measures(run: Run) -> None:
    """`jobs` counts refused jobs too; the measures are over started jobs only."""
    row = json.loads(
        run("simulate week.swf --grant 70 --periods 3 --starts starts.txt --json").out
    )["data"][0]
    assert row["jobs"] - row["refused_jobs"] == len(Path("starts.txt").read_text().splitlines())
    output = (
        f"refused for lack of credit: {row['refused_jobs']} jobs; the measures are over the others"
    )
    assert output in " ".join(run("simulate week.swf --grant 70 --periods 3").err.split())
    both = " ".join(run("whatif week.swf --grant 70 --periods 3 --drop-group 2").err.split())
    assert f"refused for lack of credit: {row['refused_jobs']} jobs (as recorded), " in both
    assert "lack of credit" not in run("simulate week.swf --grant 1000").err


def test_unknown_accounts_share_one_allocation(run: Run, tmp_path: Path) -> None:
    (tmp_path / "unknown.swf").write_text(
        HEAD + "".join(line(number).replace(" 7 7 ", " -1 -1 ") for number in (1, 2))
    )
    data = json.loads(run("simulate unknown.swf --grant 1000 --json").out)
    assert data["delivered"] == [
        {"policy": "easy", "account": 0, "delivered": 1.0, "entitled": 1.0}
    ]
    assert [(row["account"], row["charged_minutes"]) for row in data["credit"]] == [(0, 2)]


def test_credit_of_two_resources_is_not_added(run: Run, tmp_path: Path) -> None:
    """Both jobs are of one account: 4 processors for an hour on cpu nodes, 2 on gpu nodes."""
    jobs = "".join(
        f"{number} 0 -1 3600 {size} -1 -1 {size} 3600 -1 1 7 7 -1 1 {partition} -1 -1\n"
        for number, size, partition in ((1, 4, 1), (2, 2, 2))
    )
    partitions = "; Partition: 1 batch\n; Partition: 2 gpu-a100\n"
    (tmp_path / "gpus.swf").write_text(HEAD + partitions + jobs)
    words = "gpus.swf --grant 50 --unpaid last"
    printed = json.loads(run(f"simulate {words} --json").out)
    (row,) = printed["data"]
    assert not {"granted_minutes", "unpaid_minutes", "expired_part"} & set(row)
    assert [
        (use["resource"], use["granted_minutes"], use["unpaid_minutes"], use["expired_part"])
        for use in row["resources"]
    ] == [("cpu", 120, 240, 1.0), ("gpu", 60, 120, 1.0)]
    assert [
        (use["account"], use["resource"], use["granted_minutes"]) for use in printed["credit"]
    ] == [(7, "cpu", 120), (7, "gpu", 60)]
    lines = run(f"simulate {words} --policy easy --policy fcfs").out.splitlines()
    assert [line.split(" expired")[0] for line in lines if "expired" in line] == [
        "cpu credit that",
        "gpu credit that",
    ]
    both = json.loads(run(f"whatif {words} --add-procs 4 --json").out)
    assert [
        (line["resource"], line["recorded"])
        for line in both["data"]
        if line["measure"] == "expired_part"
    ] == [("cpu", 1.0), ("gpu", 1.0)]
    columns = "EXPIRED-CPU-MINUTES,EXPIRED-GPU-MINUTES"
    assert run(f"simulate {words} -o {columns} --noheader").out.split() == ["120", "60"]


def test_job_that_fits_only_after_the_change_has_no_credit(run: Run, tmp_path: Path) -> None:
    """Account 8 has only a job that is too wide as recorded, so nothing is granted to it."""
    wide = line(2, allocated=16, requested=16).replace(" 7 7 ", " 8 8 ")
    (tmp_path / "wide.swf").write_text(HEAD + line(1) + wide)
    changed = json.loads(run("whatif wide.swf --grant 1000 --add-procs 8 --json").out)["changed"]
    assert changed["refused_jobs"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate week.swf --periods 2", "add --grant PERCENT"),
        ("simulate week.swf --unpaid last", "add --grant PERCENT"),
        ("simulate week.swf --staggered", "add --grant PERCENT"),
        ("simulate week.swf --grant many", "'many' is not a whole number"),
        ("simulate week.swf --grant 50 --periods 0", "is not a whole number from 1 on"),
        ("simulate week.swf --grant 50 --periods 1001", "a number from 1 to 1000"),
        ("simulate week.swf --grant 50 --unpaid maybe", "invalid choice: 'maybe'"),
        ("simulate week.swf --grant 50 --fair-starts 2", "leave out --fair-starts or --grant"),
        ("simulate week.swf --policy credit.toml", "grant credit: --grant PERCENT"),
        ("simulate nothing.swf --grant 50", "cannot read nothing.swf"),
    ],
)
def test_invalid_grant_is_refused(run: Run, words: str, message: str) -> None:
    result = run(words)
    assert result.code != 0
    assert result.out == ""
    assert message in " ".join(result.err.split())
