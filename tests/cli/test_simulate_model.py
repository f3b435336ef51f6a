"""Tests of `fairbank simulate` without a trace: a synthetic workload of the default site, or of one
that a file describes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, Said

CENTRE = """
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
def ask(fairbank: Run, surroundings: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    surroundings.chdir(tmp_path)
    (tmp_path / "centre.toml").write_text(CENTRE)
    (tmp_path / "wide.toml").write_text('days = 5\n\n[[pools]]\nname = "cpu"\nprocessors = 2048\n')

    def call(words: str) -> Said:
        return fairbank(*words.split())

    return call


def outcome(said: Said) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(said.out)["data"][0]
    return data


def test_the_same_seed_is_the_same_schedule_and_the_same_trace(ask: Run, tmp_path: Path) -> None:
    one = ask("simulate --jobs 400 --seed 3 --save one.swf --json")
    two = ask("simulate --jobs 400 --seed 3 --save two.swf --json")
    other = ask("simulate --jobs 400 --seed 4 --save other.swf --json")
    assert one.out == two.out
    assert (
        (tmp_path / "one.swf").read_bytes()
        == (tmp_path / "two.swf").read_bytes()
        != (tmp_path / "other.swf").read_bytes()
    )
    assert outcome(one)["fingerprint"] != outcome(other)["fingerprint"]


def test_figures_of_thousands_are_reported_as_such(ask: Run) -> None:
    result = ask("simulate --jobs 1000 --model wide.toml")
    assert "of 1,000 jobs on 2,048 processors" in " ".join(result.out.split())


def test_share_figure_names_the_largest_share_errors(ask: Run, tmp_path: Path) -> None:
    """It names the account with nearly all shares and nine of the others, which have one share
    each.
    """
    (tmp_path / "shares.csv").write_text(
        "".join(f"{user},{100 if user == 1 else 1}\n" for user in range(1, 41))
    )
    data = json.loads(ask("simulate --jobs 400 --shares shares.csv --plots figures --json").out)
    off = {each["account"]: abs(each["delivered"] - each["entitled"]) for each in data["delivered"]}
    furthest = sorted(off, key=lambda account: -off[account])
    drawn = (tmp_path / "figures" / "shares.svg").read_text()
    named = [account for account in furthest if f">{account}</text>" in drawn]
    assert named[:10] == furthest[:10]
    assert f">{len(off) - 10} others</text>" in drawn


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_the_model_is_simulated_as_its_trace_is(policy: str, ask: Run) -> None:
    drawn = ask(f"simulate --model centre.toml --save week.swf --policy {policy} --json")
    assert drawn.out == ask(f"simulate week.swf --policy {policy} --json").out


def test_a_file_describes_the_centre(ask: Run, tmp_path: Path) -> None:
    result = outcome(ask("simulate --model centre.toml --save week.swf --json"))
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
    fewer = outcome(ask("simulate --model centre.toml --jobs 100 --json"))
    assert fewer["jobs"] + fewer["left_out"] == 100


def test_more_jobs_take_more_days(ask: Run) -> None:
    """The default site has 4,000 jobs a month: more jobs take more time and do not fill the machine
    further.
    """
    short, long = (outcome(ask(f"simulate --jobs {jobs} --json")) for jobs in (1_000, 8_000))
    assert 6 < long["makespan_seconds"] / short["makespan_seconds"] < 10


def test_several_policies_and_progress(ask: Run) -> None:
    result = ask("simulate --jobs 3000 --policy fcfs --policy easy --json --progress plain")
    assert [row["policy"] for row in json.loads(result.out)["data"]] == ["fcfs", "easy"]
    assert [line.split()[0] for line in result.err.splitlines() if line.endswith("%")] == [
        "fcfs",
        "fcfs",
        "easy",
        "easy",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("simulate", "name a trace, or --jobs N"),
        ("simulate --seed 4", "name a trace, or --jobs N"),
        ("simulate week.swf --seed 4", "--seed is for a synthetic workload"),
        ("simulate week.swf --model centre.toml", "--model is for a synthetic workload"),
        ("simulate --jobs 0", "is not a whole number from 1 on"),
        ("simulate --jobs 600000", "more than the usual centre runs in 3660 days"),
        ("simulate --model nothing.toml", "cannot read nothing.toml"),
        ("simulate --model broken.toml", "broken.toml is not TOML"),
        ("simulate --model strange.toml", "pools[0].cores is no setting"),
        ("simulate --model empty.toml", "this users of a synthetic centre cannot be"),
        ("simulate --model poolless.toml", "this pools of a synthetic centre cannot be"),
        ("simulate --model twice.toml", "that no other one has"),
        ("simulate --jobs 10 --save no/such/file.swf", "cannot write no/such/file.swf"),
    ],
)
def test_impossible_values_are_reported(ask: Run, tmp_path: Path, words: str, told: str) -> None:
    (tmp_path / "broken.toml").write_text("jobs = ")
    (tmp_path / "strange.toml").write_text("[[pools]]\nname = 'cpu'\nprocessors = 4\ncores = 4\n")
    (tmp_path / "empty.toml").write_text("users = 0\n")
    (tmp_path / "poolless.toml").write_text("pools = []\n")
    (tmp_path / "twice.toml").write_text("[[pools]]\nname = 'cpu'\nprocessors = 64\n" * 2)
    result = ask(words)
    assert result.code != 0
    assert result.out == ""
    assert told in result.err
