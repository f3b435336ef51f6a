"""Tests of `fairbank whatif`: its table, its JSON and invalid input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run, session
from tests.cli.workloads import HEAD, line
from tests.support.golden import GOLDEN, kept

FOLDER = GOLDEN / "whatif"
STORIES = {
    "machine": "whatif week.swf --add-procs 8",
    "nodes": "whatif nodes.swf --add-nodes=-2 --drop-user 3",
    "job": "whatif week.swf --job 39 --size 14 --limit 4:00:00",
    "too-wide": "whatif week.swf --add-procs=-28",
    "weights": "whatif week.swf --policy slurm --to-policy fairer.toml",
    "shares": "whatif week.swf --policy easy --to-policy slurm --shares shares.csv --by group",
    "perturbed": "whatif week.swf --add-procs 4 --perturbed 5 --seed 3",
    "bank": "whatif week.swf --drop-group 2 --grant 80 --periods 2 --perturbed 3",
    "json": "whatif week.swf --add-procs 8 --perturbed 3 --json",
    "accounting": "whatif sacct.txt --procs 8 --drop-user carol --drop-group bio",
}


@pytest.mark.parametrize("name", STORIES)
def test_output_matches_the_golden_file(name: str, run: Run) -> None:
    lines = session(f"fairbank {STORIES[name]}", run(STORIES[name]))
    assert lines == kept(FOLDER / f"{name}.txt", lines)


@pytest.mark.parametrize("name", [name for name in STORIES if name != "json"])
def test_eighty_columns_are_enough(name: str) -> None:
    output = (FOLDER / f"{name}.txt").read_text().splitlines()[1:]
    assert [line for line in output if len(line) > 80] == []


def test_both_sides_equal_the_simulation(run: Run) -> None:
    """The recorded side has the machine as it is; the changed side another machine and policy."""
    data = json.loads(
        run("whatif week.swf --policy fcfs --to-policy easy --add-procs 8 --json").out
    )
    for side, words in (("recorded", "--policy fcfs"), ("changed", "--policy easy --procs 40")):
        row = json.loads(run(f"simulate week.swf {words} --json").out)["data"][0]
        assert data[side] | {"fingerprint": None} == row | {"fingerprint": None}
        assert {measure["measure"]: measure[side] for measure in data["data"]} == {
            measure["measure"]: row[measure["measure"]] for measure in data["data"]
        }


def test_seed_determines_the_result(run: Run) -> None:
    words = "whatif week.swf --job 17 --size 2 --perturbed 2 --json"
    assert run(words).out == run(words).out != run(f"{words} --seed 2").out


def test_change_without_effect_has_no_difference(run: Run) -> None:
    """Both sides use the same copies of the trace, so any difference comes from the change."""
    data = json.loads(run("whatif week.swf --add-procs 8 --perturbed 3 --json").out)
    same = json.loads(
        run("whatif week.swf --scale-limits 101 --policy fcfs --perturbed 3 --json").out
    )
    assert any(row["perturbed"]["difference"]["mean"] for row in data["data"])
    assert all(
        row["perturbed"]["difference"] == {"mean": 0, "low": 0, "high": 0} for row in same["data"]
    )


@pytest.mark.parametrize(
    ("words", "message", "remedy"),
    [
        ("whatif", "FILE", ""),
        ("whatif nothing.swf --add-procs 1", "cannot read nothing.swf", "name a trace"),
        ("whatif week.swf", "nothing would change", "--drop-user"),
        ("whatif week.swf --add-procs 4 --seed 3", "--seed needs --perturbed", "add --perturbed N"),
        ("whatif week.swf --to-policy easy", "nothing would change", "--to-policy"),
        ("whatif week.swf --to-policy ezzy", "there is no policy 'ezzy'", "there are: fifo"),
        ("whatif week.swf --job 3", "--job needs --size or --limit", "--size N or --limit TIME"),
        ("whatif week.swf --size 3", "--size and --limit need --job", "add --job N"),
        (
            "whatif week.swf --job 9999 --size 3",
            "there is no job 9999 in this trace",
            "number in the trace",
        ),
        ("whatif week.swf --job 3 --size 0", "is not a whole number from 1 on", ""),
        ("whatif week.swf --job 3 --limit soon", "'soon' is not a finite time limit", "d-hh:mm:ss"),
        (
            "whatif week.swf --drop-user bob",
            "no job of this trace is user bob's",
            "as the trace does",
        ),
        (
            "whatif week.swf --drop-group 77",
            "no job of this trace is group 77's",
            "as the trace does",
        ),
        ("whatif week.swf --add-nodes 2", "how many processors a node has", "--add-procs N"),
        ("whatif week.swf --add-procs=-32", "a machine of 0 processors", "take away fewer"),
        ("whatif week.swf --add-procs many", "'many' is not a whole number", ""),
        ("whatif week.swf --to-policy credit.toml", "uses remaining credit", "--grant PERCENT"),
        (
            "whatif week.swf --policy fairer.toml --to-policy ./fairer.toml",
            "two policies are called 'fairer'",
            "name the files differently",
        ),
        (
            "whatif week.swf --add-procs 8 --perturbed 1",
            "1 perturbed copies",
            "one copy has no spread",
        ),
        (
            "whatif week.swf --add-procs 8 --perturbed 1001",
            "1001 perturbed copies",
            "from 2 to 1000",
        ),
        ("whatif week.swf --add-procs 8 --periods 2", "--periods", "add --grant PERCENT"),
    ],
)
def test_invalid_options_are_reported_with_the_remedy(
    run: Run, words: str, message: str, remedy: str
) -> None:
    result = run(words)
    assert result.code != 0
    assert result.out == ""
    flat = " ".join(result.err.split())
    assert message in flat
    assert remedy in flat


def test_job_with_an_ambiguous_number_is_not_changed(run: Run, tmp_path: Path) -> None:
    """Partial runs have the number of the whole job, and the tasks of an array have the number of
    the array.
    """
    (tmp_path / "twice.swf").write_text(
        HEAD + line(1) + line(2, status=2) + line(2) + line(1, submit=5)
    )
    result = run("whatif twice.swf --job 1 --size 2")
    assert (result.code, result.out) == (2, "")
    assert "there are 2 jobs 1 in this trace" in " ".join(result.err.split())
    assert run("whatif twice.swf --job 2 --size 2").code == 0
    assert run("whatif sacct.txt --procs 8 --job 4 --size 1").code == 0


def test_omitted_job_is_not_changed(run: Run) -> None:
    """Job 2 never ran and job 3 has no size; job 5 requests more processors than there are, until
    it is changed.
    """
    for words, why in (
        ("2 --size 3", "never ran, or for an unknown time"),
        ("3 --limit 1:00", "no number of processors"),
    ):
        result = run(f"whatif dirt.swf --job {words}")
        assert (result.code, result.out) == (3, "")
        assert f"job {words[0]} is not simulated: {why}" in " ".join(result.err.split())
    assert run("whatif dirt.swf --job 5 --size 8").code == 0
    assert run("whatif dirt.swf --job 1 --size 9").code == 0


def test_progress_names_each_simulation(run: Run, tmp_path: Path) -> None:
    line = "{0} {0} -1 10 -1 -1 -1 1 20 -1 1 7 7 -1 1 1 -1 -1\n"
    (tmp_path / "long.swf").write_text(
        "; MaxProcs: 8\n" + "".join(line.format(number) for number in range(1, 5_000))
    )
    output = run("whatif long.swf --add-procs 8 --perturbed 2 --progress plain").err
    for stage in ("as recorded", "changed", "perturbed 1 of 2", "perturbed 2 of 2, changed"):
        assert re.search(rf"^{stage} [4-9]\d%$", output, re.MULTILINE), stage
