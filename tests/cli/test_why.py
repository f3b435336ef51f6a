"""Tests of `fairbank why` for a job of a trace: its table, its JSON and invalid input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, session
from tests.support.golden import GOLDEN, kept

FOLDER = GOLDEN / "why"
STORIES = {
    "seed": "why 2 --trace seed.swf",
    "seed-behind": "why 3 --trace seed.swf",
    "head": "why 117 --trace week.swf",
    "fifo": "why 117 --trace week.swf --policy fifo",
    "fcfs": "why 120 --trace week.swf --policy fcfs",
    "conservative": "why 120 --trace week.swf --policy conservative --at 2025-09-04T08:30Z",
    "slurm": "why 120 --trace week.swf --policy slurm",
    "policy-file": "why 120 --trace week.swf --policy fairer.toml",
    "later": "why 2 --trace seed.swf --at 3600",
    "accounting": "why 2 --trace sacct.txt --procs 8",
    "json": "why 3 --trace seed.swf --json",
}
HEAD = "; UnixStartTime: 1000000020\n; MaxProcs: 8\n"


def line(number: int, submit: int, requested: int, limit: int, run: int, user: int = 7) -> str:
    size = f"{requested} -1 -1 {requested}"
    return f"{number} {submit} -1 {run} {size} {limit} -1 1 {user} 7 -1 1 1 -1 -1\n"


SEED = (
    line(1, 0, 2, 10_800, 10_800),
    line(2, 0, 8, 36_000, 36_000),
    line(3, 1, 4, 14_400, 7_200),
    line(4, 2, 4, 10_740, 10_740),
)
"""Jobs 1 to 4 on eight nodes: one holds two nodes for three hours, one requests all eight, and two
request four nodes, for four hours and for a minute less than three.
"""

ACCOUNTING = """\
JobID|Submit|Start|End|Elapsed|State|User|Account|Timelimit|AllocCPUS|Suspended
1|@08:00:00|@08:00:00|@09:00:00|01:00:00|COMPLETED|alice|astro|02:00:00|4|00:00:00
2|@08:00:01|@09:00:00|@09:40:00|00:40:00|COMPLETED|bob|bio|01:10:00|8|00:00:00
""".replace("@", "2026-11-21T")


@pytest.fixture
def run(run: Run, tmp_path: Path) -> Run:
    """Run commands next to the week on 32 processors, RCAC's example, and the jobs of two
    accounts.
    """
    (tmp_path / "seed.swf").write_text(
        HEAD + "".join(SEED) + line(5, 90_000, 9, 60, 60) + line(6, 90_000, 1, 60, -1)
    )
    (tmp_path / "sacct.txt").write_text(ACCOUNTING)
    return run


@pytest.mark.parametrize("name", STORIES)
def test_output_matches_the_golden_file(name: str, run: Run) -> None:
    lines = session(f"fairbank {STORIES[name]}", run(STORIES[name]))
    assert lines == kept(FOLDER / f"{name}.txt", lines)


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("why 2 --trace nothing.swf", "cannot read nothing.swf", 3),
        ("why 2 --policy easy", "it has no effect on a job at Slurm", 2),
        ("why 2 --trace seed.swf --no-advice", "it has no effect on a job of a trace", 2),
        ("why two --trace seed.swf", "'two' is not a job of a trace", 2),
        ("why 99 --trace seed.swf", "there is no job 99 in this trace", 3),
        (
            "why 5 --trace seed.swf",
            "job 5 is not simulated: more processors than the machine has",
            3,
        ),
        ("why 6 --trace seed.swf", "job 6 is not simulated: never ran", 3),
        (
            "why 4 --trace seed.swf",
            "job 4 did not wait: under easy it started when it was submitted, at"
            " 2001-09-08 21:47:02",
            3,
        ),
        (
            "why 3 --trace seed.swf --at 0",
            "job 3 is submitted later: at 2001-09-08 21:47:01, second 1 of the trace",
            2,
        ),
        (
            "why 2 --trace seed.swf --at 10800",
            "job 2 does not wait any more: under easy it started at 2001-09-09 00:47:00",
            2,
        ),
        ("why 2 --trace seed.swf --at soon", "--at", 2),
        ("why 2 --trace seed.swf --policy ezzy", "there is no policy 'ezzy'", 3),
        ("why 2 --trace seed.swf --policy lost.toml", "cannot read lost.toml", 3),
        (
            "why 2 --trace seed.swf --policy credit.toml",
            "credit uses remaining credit, and there is no bank here",
            2,
        ),
        ("why 2 --trace seed.swf --procs 0", "is not a whole number from 1 on", 2),
        ("why 2 --trace seed.swf --runs 9", "from 10 to 10000", 2),
        ("why 2 --trace sacct.txt", "--procs", 2),
        ("why 2 --trace short.swf", "line 2: 3 columns", 2),
        (
            "why 2 --trace twice.swf",
            "there are two jobs 2 in this trace, of second 0 and of second 95000",
            2,
        ),
    ],
)
def test_impossible_values_are_reported(
    run: Run, tmp_path: Path, words: str, message: str, code: int
) -> None:
    (tmp_path / "short.swf").write_text("; MaxProcs: 8\n1 2 3\n")
    (tmp_path / "twice.swf").write_text(HEAD + "".join(SEED) + line(2, 95_000, 1, 60, 60))
    result = run(words)
    assert (result.code, result.out) == (code, "")
    assert message in " ".join(result.err.split())


def test_seed_determines_the_simulated_runs(run: Run) -> None:
    def likely(words: str) -> object:
        return json.loads(run(f"why 120 --trace week.swf --policy fcfs --json {words}").out)[
            "data"
        ][0]["likely"]

    assert likely("") == likely("--seed 1")
    assert likely("--runs 10") != likely("--runs 10 --seed 2")
    assert (
        json.loads(run("why 120 --trace week.swf --policy fcfs --json --runs 10").out)["data"][0][
            "likely"
        ]["simulated_runs"]
        == 10
    )


def test_missing_start_range_is_explained(run: Run, tmp_path: Path) -> None:
    """Before the last job 15,000 jobs have the machine for a minute each: more passes than one
    simulated run may take.
    """
    (tmp_path / "long.swf").write_text(
        "; MaxProcs: 1\n" + "".join(line(number, 0, 1, 60, 60) for number in range(1, 15_003))
    )
    document = json.loads(run("why 15002 --trace long.swf --policy fcfs --runs 10 --json").out)
    assert document["data"][0]["likely"] is None
    assert document["warnings"] == [
        "no likely start: with 15,000 jobs ahead it is too far off to be simulated here"
    ]


@pytest.mark.parametrize(("policy", "sooner"), [("fifo", "-p 'short$'"), ("fcfs", None)])
def test_another_partition_is_suggested_if_it_has_its_own_queue(
    run: Run, tmp_path: Path, policy: str, sooner: str | None
) -> None:
    """Job 4 waits behind job 3, which needs all eight processors; the partition of job 2 has no
    queue. Its name is quoted for the shell.
    """
    specs = [(1, 2, 1), (2, 2, 2), (3, 8, 1), (4, 2, 1)]
    jobs = [
        line(number, number, requested, 60, 60).replace(" 1 1 -1 -1", f" 1 {partition} -1 -1")
        for number, requested, partition in specs
    ]
    (tmp_path / "apart.swf").write_text(
        f"; MaxProcs: 8\n; Partition: 1 long\n; Partition: 2 short$\n{''.join(jobs)}"
    )
    data = json.loads(run(f"why 4 --trace apart.swf --policy {policy} --json").out)["data"][0]
    assert (data["suggestion"] and data["suggestion"]["option"]) == sooner
    assert data["tried"] == (["-p 'short$'", "-n 1"] if policy == "fifo" else ["-n 1"])


def test_suggested_option_gives_the_suggested_start(run: Run, tmp_path: Path) -> None:
    """Job 3, of four hours, would start at once with 02:59:00, the time that the plan for job 2
    leaves.
    """
    data = json.loads(run("why 3 --trace seed.swf --json").out)["data"][0]
    assert data["suggestion"] == {"option": "-t 02:59:00", "start": "2001-09-09T01:47:01Z"}
    changed = (SEED[0], SEED[1], line(3, 1, 4, 179 * 60, 7_200), SEED[3])
    (tmp_path / "other.swf").write_text(HEAD + "".join(changed))
    result = run("why 3 --trace other.swf")
    assert (
        "job 3 did not wait: under easy it started when it was submitted, at 2001-09-08 21:47:01"
        in " ".join(result.err.split())
    )


def test_ignored_policy_settings_are_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "vain.toml").write_text('base = "slurm"\n[scheduler]\nbf_licenses = true\n')
    result = run("why 120 --trace week.swf --policy vain.toml")
    assert result.code == 0
    assert result.err == "policy vain: not simulated, and passed over: bf_licenses\n"
    assert json.loads(run("why 120 --trace week.swf --policy vain.toml --json").out)[
        "warnings"
    ] == ["policy vain: not simulated, and passed over: bf_licenses"]
