"""Tests of `fairbank simulate` without a trace: a synthetic workload of the default site, or of one
that a file describes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandResult, Run

SITE = """
jobs = 300
days = 5
projects = 3
users = 9
starts = "2026-01-05"

[[pools]]
name = "cpu"
processors = 64

[[pools]]
name = "gpu"
processors = 32
unit = 8
memory_mib = 16384
"""


@pytest.fixture
def run(fairbank: Run, clean_env: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    clean_env.chdir(tmp_path)
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "wide.toml").write_text('days = 5\n\n[[pools]]\nname = "cpu"\nprocessors = 2048\n')

    def call(words: str) -> CommandResult:
        return fairbank(*words.split())

    return call


def first_row(result: CommandResult) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.out)["data"][0]
    return data


def test_seed_determines_schedule_and_trace(run: Run, tmp_path: Path) -> None:
    first = run("simulate --jobs 400 --seed 3 --save one.swf --json")
    second = run("simulate --jobs 400 --seed 3 --save two.swf --json")
    third = run("simulate --jobs 400 --seed 4 --save other.swf --json")
    assert first.out == second.out
    assert (
        (tmp_path / "one.swf").read_bytes()
        == (tmp_path / "two.swf").read_bytes()
        != (tmp_path / "other.swf").read_bytes()
    )
    assert first_row(first)["fingerprint"] != first_row(third)["fingerprint"]


def test_large_numbers_have_separators(run: Run) -> None:
    result = run("simulate --jobs 1000 --model wide.toml")
    assert "of 1,000 jobs on 2,048 processors" in " ".join(result.out.split())


def test_share_figure_names_the_largest_share_errors(run: Run, tmp_path: Path) -> None:
    """It names the account with nearly all shares and nine of the others, which have one share
    each.
    """
    (tmp_path / "shares.csv").write_text(
        "".join(f"{user},{100 if user == 1 else 1}\n" for user in range(1, 41))
    )
    data = json.loads(run("simulate --jobs 400 --shares shares.csv --plots figures --json").out)
    off = {row["account"]: abs(row["delivered"] - row["entitled"]) for row in data["delivered"]}
    furthest = sorted(off, key=lambda account: -off[account])
    drawn = (tmp_path / "figures" / "shares.svg").read_text()
    named = [account for account in furthest if f">{account}</text>" in drawn]
    assert named[:10] == furthest[:10]
    assert f">{len(off) - 10} others</text>" in drawn


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_model_and_its_saved_trace_give_the_same_result(policy: str, run: Run) -> None:
    drawn = run(f"simulate --model site.toml --save week.swf --policy {policy} --json")
    assert drawn.out == run(f"simulate week.swf --policy {policy} --json").out


def test_file_describes_the_site(run: Run, tmp_path: Path) -> None:
    result = first_row(run("simulate --model site.toml --save week.swf --json"))
    assert result["processors"] == 96
    assert result["jobs"] + result["left_out"] == 300
    trace = (tmp_path / "week.swf").read_text()
    assert "; UnixStartTime: 1767571200\n" in trace
    assert "; Partition: 2 gpu\n" in trace
    assert {line.split()[12] for line in trace.splitlines() if not line.startswith(";")} == {
        "1",
        "2",
        "3",
    }
    fewer = first_row(run("simulate --model site.toml --jobs 100 --json"))
    assert fewer["jobs"] + fewer["left_out"] == 100


def test_more_jobs_take_more_time(run: Run) -> None:
    """The default site has 4,000 jobs a month: more jobs take more time and do not fill the machine
    further.
    """
    short, long = (first_row(run(f"simulate --jobs {jobs} --json")) for jobs in (1_000, 8_000))
    assert 6 < long["makespan_seconds"] / short["makespan_seconds"] < 10


def test_several_policies_and_progress(run: Run) -> None:
    result = run("simulate --jobs 3000 --policy fcfs --policy easy --json --progress plain")
    assert [row["policy"] for row in json.loads(result.out)["data"]] == ["fcfs", "easy"]
    assert [line.split()[0] for line in result.err.splitlines() if line.endswith("%")] == [
        "fcfs",
        "fcfs",
        "easy",
        "easy",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate", "name a trace, or --jobs N"),
        ("simulate --seed 4", "name a trace, or --jobs N"),
        ("simulate week.swf --seed 4", "--seed is for a synthetic workload"),
        ("simulate week.swf --model site.toml", "--model is for a synthetic workload"),
        ("simulate --jobs 0", "is not a whole number from 1 on"),
        ("simulate --jobs 1100000", "more than the default site runs in 7,500 days"),
        ("simulate --model nothing.toml", "cannot read nothing.toml"),
        ("simulate --model broken.toml", "broken.toml is not TOML"),
        ("simulate --model strange.toml", "there is no setting pools[0].cores"),
        ("simulate --model empty.toml", "this users of a synthetic centre cannot be"),
        ("simulate --model poolless.toml", "this pools of a synthetic centre cannot be"),
        ("simulate --model twice.toml", "that no other one has"),
        ("simulate --jobs 10 --save no/such/file.swf", "cannot write no/such/file.swf"),
    ],
)
def test_impossible_values_are_reported(run: Run, tmp_path: Path, words: str, message: str) -> None:
    (tmp_path / "broken.toml").write_text("jobs = ")
    (tmp_path / "strange.toml").write_text("[[pools]]\nname = 'cpu'\nprocessors = 4\ncores = 4\n")
    (tmp_path / "empty.toml").write_text("users = 0\n")
    (tmp_path / "poolless.toml").write_text("pools = []\n")
    (tmp_path / "twice.toml").write_text("[[pools]]\nname = 'cpu'\nprocessors = 64\n" * 2)
    result = run(words)
    assert result.code != 0
    assert result.out == ""
    assert message in result.err
