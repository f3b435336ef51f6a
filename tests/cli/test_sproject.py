"""HADM's command: its subcommands, filters, detail, order and output formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.site import AYLA, JORGE, STRANGER


def rows(hadm: Run, *words: object) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(hadm(*words, "--json").out)["data"]
    return data


def test_subcommands_are_listed(hadm: Run) -> None:
    verbs = ["projects", "allocations", "jobs", "failures"]
    assert [verb for verb in verbs if f"\n  {verb} " in hadm().out] == verbs
    assert hadm("project").code == 2
    assert "did you mean projects" in hadm("project").err


def test_filters_by_group_account_resource_user_and_activity(hadm: Run) -> None:
    assert [row["account"] for row in rows(hadm, "projects", "-g", "biofold")] == ["bio_fold"]
    assert [row["account"] for row in rows(hadm, "projects", "-g", "50002")] == ["bio_fold"]
    assert [row["account"] for row in rows(hadm, "projects", "-A", "chem_qmc")] == ["chem_qmc"]
    assert [row["id"] for row in rows(hadm, "allocations", "-r", "gpu")] == [2, 3]
    assert [row["id"] for row in rows(hadm, "allocations", "-a", "-g", "biofold")] == [3]
    assert {row["job_id"] for row in rows(hadm, "jobs", "-g", "biofold")} == {702_001}
    assert {row["job_id"] for row in rows(hadm, "jobs", "-r", "gpu", "-u", JORGE)} == {
        701_001,
        812_330,
    }
    assert [row["job_id"] for row in rows(hadm, "failures", "-a", "-r", "gpu")] == [812_350]
    assert rows(hadm, "failures", "-r", "cpu") == []
    assert [row["id"] for row in rows(hadm, "allocations", "--as", AYLA)] == [1, 2]
    assert hadm("allocations", "--as", STRANGER).out == ""


def test_projects_by_resource_and_activity(hadm: Run) -> None:
    assert {row["account"] for row in rows(hadm, "projects", "-r", "gpu")} == {
        "chem_qmc",
        "bio_fold",
    }
    assert [
        row["account"] for row in rows(hadm, "projects", "-r", "cpu", "-a", "-A", "chem_qmc")
    ] == ["chem_qmc"]
    assert [row["account"] for row in rows(hadm, "projects", "-r", "cpu", "-g", "biofold")] == []
    assert {row["resource"] for row in rows(hadm, "projects", "-r", "gpu", "--detail")} == {"gpu"}
    assert len(rows(hadm, "projects", "-a")) <= len(rows(hadm, "projects"))


@pytest.mark.parametrize("verb", ["jobs", "failures", "allocations", "projects"])
def test_unknown_filter_value_is_an_error(hadm: Run, verb: str) -> None:
    for words, field in ((("-g", "99999"), "-g"), (("-A", "nope"), "-A"), (("-r", "nosuch"), "-r")):
        result = hadm(verb, *words)
        assert (result.code, result.out) == (3, "")
        assert f"field: {field}" in result.err
        assert "try: " in result.err


def test_remedies_name_sproject_commands(hadm: Run, fairbank: Run) -> None:
    for words in (("projects", "-A", "nope"), ("jobs", "-g", "nope")):
        assert "try: list yours with: sproject projects\n" in hadm(*words).err
    assert "try: list yours with: fairbank project list\n" in fairbank("balance", "-A", "nope").err


def test_detail_adds_credit_running_and_completed_debit_and_balance(hadm: Run) -> None:
    heads = hadm("allocations", "--detail", "-P").out.splitlines()[0].split("|")
    assert heads[-4:] == ["CREDIT", "RUN+CMPLT", "DEBIT", "BALANCE"]
    line = (
        hadm("allocations", "--detail", "-P", "-n", "-g", "chem_qmc", "-r", "cpu")
        .out.strip()
        .split("|")
    )
    assert line[-4:] == ["100000", "4352", "36240", "59408"]
    projects = [
        line.split("|")
        for line in hadm("projects", "--detail", "-P", "-n", "-g", "chem_qmc").out.splitlines()
    ]
    assert [line[4:] for line in projects if line[4] == "cpu"] == [
        ["cpu", "100000", "4352", "36240", "59408"]
    ]
    assert hadm("jobs", "--detail", "--helpformat").out.split()[-1] == "DEBIT"
    assert hadm("failures", "--detail", "--helpformat").out.split()[-1] == "SHORT"


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("BALANCE", [2, 3, 1]),
        ("-BALANCE", [1, 3, 2]),
        ("resource,-credit", [1, 3, 2]),
        ("-end", [1, 2, 3]),
    ],
)
def test_sort_order(hadm: Run, sort: str, order: list[int]) -> None:
    assert [row["id"] for row in rows(hadm, "allocations", "--detail", "--sort", sort)] == order


def test_unknown_sort_column_is_reported(hadm: Run) -> None:
    result = hadm("allocations", "--sort", "NOPE")
    assert result.code == 2
    assert "BALANCE" not in result.err  # a column of --detail only
    assert "ALLOC-ID" in result.err


def test_states_are_named_as_in_hadm(hadm: Run) -> None:
    assert {row["status"] for row in rows(hadm, "jobs")} == {"executing", "completed"}
    assert "not enough credit" in " ".join(hadm("failures", "-l").out.split())
