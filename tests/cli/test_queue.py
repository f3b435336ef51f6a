"""`fairbank queue`: the waiting jobs of a recorded queue, twelve of them, by priority."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from functools import partial
from io import StringIO
from pathlib import Path
from re import Match, sub
from shutil import copytree

import pytest

from fairbank.cli import main
from fairbank.cli.framework import host
from fairbank.scheduling.explain import start_range
from fairbank.slurm.explain import queue_explanation
from tests.cli.conftest import CommandResult, Run, runner
from tests.cli.output_values import fold
from tests.support.golden import GOLDEN

RECORDED = GOLDEN / "slurm-22.05" / "waiting"


@pytest.fixture
def run(clean_env: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object, folder: Path = RECORDED) -> CommandResult:
        return runner(main.run, capsys)("queue", *words, "--utc", "--from", folder)

    return call


def cells(run: Run, *words: object) -> list[list[str]]:
    """Return the rows of the CSV, without its header."""
    return list(csv.reader(StringIO(run(*words, "--csv").out)))[1:]


def test_jobs_are_listed_by_priority_and_held_ones_last(run: Run) -> None:
    """Job 5 has 101,304; 6 and 16 have 101,101, and 6 the lower number; 12 is held."""
    rows = cells(run, "-o", "JOBID,PRIORITY,REASON")
    assert [row[0] for row in rows] == [
        *("5", "6", "16", "17", "7", "8", "9", "10", "11", "13", "15_[1-5,9%2]", "12")
    ]
    assert [int(row[1]) for row in rows[:4]] == [101_304, 101_101, 101_101, 101_100]
    assert rows[-1][1:] == ["0", "JobHeldUser"]


def test_only_own_jobs_are_listed_with_me(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    users = {row[0] for row in cells(run, "-o", "USER")}
    user = min(users)
    monkeypatch.setattr(host, "own_name", lambda: "nobody else")
    assert "No job of yours waits." in run("--me").err
    monkeypatch.setattr(host, "own_name", lambda: user)
    assert {row[0] for row in cells(run, "--me", "-o", "USER")} == {user} != users


def test_table_has_size_limit_age_reason_and_start(run: Run) -> None:
    """slurmctld expects job 5 at 11:11:01, 3 h and 45 s after the recording at 08:10:16, and job 16
    at 08:40:13. All were submitted two seconds before.
    """
    result = run()
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "As of 2026-11-26 08:10:16 +00:00   cluster lab   12 jobs waiting"
    assert "START is what slurmctld expects" in result.err
    assert max(map(len, lines)) <= 80
    by_job = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    heads = "USER PART NODES CPUS GPUS TIME-LIMIT AGE REASON START"
    assert by_job["JOBID"] == heads.split()
    assert by_job["5"] == "alice cpu 6 6 0 02:00:00 2 s Resources in 3 h".split()
    assert by_job["16"] == "carol gpu,gpu+ 2 2 8 01:00:00 2 s Resources in 30 min".split()
    assert by_job["12"][-2:] == ["JobHeldUser", "-"]


def test_partition_selects_jobs_that_may_run_there(run: Run) -> None:
    assert [row[0] for row in cells(run, "-p", "gpu-t4")] == ["16"]
    assert len(cells(run, "-p", "cpu")) == 11
    assert len(cells(run, "-p", "cpu,gpu")) == 12


def test_unknown_partition_is_refused_with_the_known_ones(run: Run, live: Path) -> None:
    """Of a recording without partitions.txt only those with a waiting job are known."""
    for folder, has_all in ((live, True), (RECORDED, False)):
        result = run("-p", "cpu,nope", folder=folder)
        assert (result.code, result.out) == (3, "")
        assert "there is no partition 'nope' that you may see" in result.err
        assert "try: one of cpu, gpu, gpu-t4" in result.err
        advice = "for partitions without jobs record it: TZ=UTC scontrol --all --oneliner show"
        assert (advice in fold(result.err)) is not has_all
    assert run("-p", "cpu,gpu", folder=live).code == 0


def test_partition_is_known_whatever_else_its_line_has(run: Run, tmp_path: Path) -> None:
    folder = copytree(RECORDED, tmp_path / "queue")
    lines = "PartitionName=cpu Nodes=c1 MaxTime=?\nPartitionName=idle Nodes=c1 MaxTime=?\n"
    (folder / "partitions.txt").write_text(lines)
    assert run("-p", "idle", folder=folder).code == 0
    assert "try: one of cpu, gpu, gpu-t4, idle" in run("-p", "nope", folder=folder).err


def test_columns_without_gpus_if_no_job_asks_for_one(run: Run) -> None:
    assert "GPUS" in run("-p", "gpu").out
    assert "GPUS" not in run("-p", "cpu").out


def test_json_has_whole_values(run: Run) -> None:
    document = json.loads(run("--json").out)
    assert (document["schema"], document["as_of"]) == ("fairbank.queue/1", "2026-11-26T08:10:16Z")
    (job,) = [row for row in document["data"] if row["job_id"] == "16"]
    assert job == {
        "job_id": "16",
        "name": None,
        "user": "carol",
        "account": "wg_bio",
        "partition": "gpu,gpu-t4",
        "qos": "normal",
        "priority": 101_101,
        "nodes": 2,
        "cpus": 2,
        "gpus": 8,
        "limit_seconds": 3_600,
        "submitted": "2026-11-26T08:10:14Z",
        "age_seconds": 2,
        "state": "PENDING",
        "left_seconds": None,
        "node_list": "",
        "reason": "Resources",
        "start": "2026-11-26T08:40:13Z",
        "start_in_seconds": 29 * 60 + 57,
        "likely_start": None,
        "likely_start_in_seconds": None,
    }


def whole_queue(folder: Path) -> Path:
    """Write a whole recorded queue of the same jobs, for simulated runs. Return the folder.

    Its time is 2026-11-22T18:01:17. squeue's times are moved by the days between the recordings.
    """
    copytree(GOLDEN / "slurm-22.05" / "queue", folder)
    first, second = map(datetime.fromisoformat, ("2026-11-22T18:01:17", "2026-11-26T08:10:16"))

    def moved(time: Match[str]) -> str:
        return (datetime.fromisoformat(time[0]) - (second - first)).isoformat()

    lines = (RECORDED / "waiting.txt").read_text()
    (folder / "waiting.txt").write_text(sub(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d", moved, lines))
    return folder


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return whole_queue(tmp_path / "live")


def test_likely_starts_of_a_short_queue_are_shown_by_default(run: Run, live: Path) -> None:
    """As with --start."""
    result = run(folder=live)
    assert result.out.splitlines()[2].split()[-1] == "LIKELY"
    assert "LIKELY is from one simulated run" in result.err
    starts = [
        run(*words, "--csv", "-o", "JOBID,LIKELY", folder=live) for words in ((), ("--start",))
    ]
    assert starts[0].out == starts[1].out
    assert "17,2026-11-22T21:01:17+00:00" in starts[0].out.splitlines()
    (live / "history.txt").unlink()
    result = run("--no-likely", folder=live)
    assert "LIKELY" not in result.out + result.err
    assert "no likely start" not in result.err


def test_likely_starts_of_a_long_queue_are_only_computed_on_request(
    run: Run, live: Path, clean_env: pytest.MonkeyPatch
) -> None:
    """squeue has one line for an array, whose 300 tasks count each."""
    jobs, waiting = live / "jobs.txt", live / "waiting.txt"
    few, lines = jobs.read_text(), waiting.read_text()
    note = "! no likely start: more than 200 jobs wait; fairbank queue --start"
    jobs.write_text(few.replace("ArrayTaskId=1-5,9%2", "ArrayTaskId=1-300%2"))
    assert note in fold(run(folder=live).err)
    jobs.write_text(few)
    waiting.write_text(lines * 17)
    result = run(folder=live)
    assert note in fold(result.err)
    assert result.out.splitlines()[2].split()[-1] == "START"
    assert "START is what slurmctld expects; a likely start: fairbank queue --start" in result.err
    assert "LIKELY" in run("--start", folder=live).out
    clean_env.setenv("FAIRBANK_FORMAT_QUEUE", "JOBID,LIKELY,GPUS")
    assert run("-p", "cpu", folder=live).out.splitlines()[2].split() == ["JOBID", "LIKELY", "GPUS"]


def test_recording_without_the_queue_has_the_start_that_slurmctld_expects(run: Run) -> None:
    result = run()
    assert (result.code, result.out.splitlines()[2].split()[-1]) == (0, "START")
    assert "! no likely start: there is no nodes.txt, partitions.txt" in fold(result.err)


def test_start_simulates_a_likely_start_of_each_job(run: Run, live: Path) -> None:
    """The middle of a hundred runs that `why 17` makes is the same time. Held jobs and those that
    no partition accepts start in no run.
    """
    rows = json.loads(run("--start", "--json", folder=live).out)["data"]
    likely = {row["job_id"]: row["likely_start"] for row in rows}
    assert likely["17"] == "2026-11-22T21:01:17Z"
    assert (likely["12"], likely["13"], likely["10"]) == (None, None, None)
    (row,) = [row for row in rows if row["job_id"] == "17"]
    assert row["likely_start_in_seconds"] == 3 * 3_600


def test_start_without_accounting_says_what_is_missing(run: Run, live: Path) -> None:
    (live / "history.txt").unlink()
    result = run("--start", "--json", folder=live)
    assert (result.code, {row["likely_start"] for row in json.loads(result.out)["data"]}) == (
        0,
        {None},
    )
    assert "! no likely start: there is no history.txt" in result.err


def test_unreadable_line_is_reported_and_the_others_are_shown(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    copytree(RECORDED, folder)
    waiting = folder / "waiting.txt"
    waiting.write_text(waiting.read_text().replace("2:00:00 ", "soon    ", 1))
    result = run("--csv", folder=folder)
    assert result.code == 8
    assert "! not read: squeue, line 1, TimeLimit: 'soon' is not a length of time" in result.err
    assert len(result.out.splitlines()) == 12


def test_name_of_another_script_keeps_its_columns_apart(run: Run, tmp_path: Path) -> None:
    """squeue counts the width of a column in bytes."""
    folder = tmp_path / "some"
    copytree(RECORDED, folder)
    waiting = folder / "waiting.txt"
    waiting.write_text(waiting.read_text().replace("alice ", "zoé  ", 1))
    (first, *_) = json.loads(run("--json", folder=folder).out)["data"]
    assert (first["user"], first["account"], first["reason"]) == ("zoé", "wg_astro", "Resources")


def test_missing_output_is_named_at_once_with_the_commands_that_record_it(
    run: Run, tmp_path: Path
) -> None:
    result = run(folder=tmp_path)
    assert result.code == 3
    error = fold(result.err)
    assert "there is no waiting.txt, config.txt in " in error
    assert "squeue --all --noheader --states=PENDING --Format=JobArrayID" in error
    assert f"; TZ=UTC scontrol show config > {tmp_path}/config.txt" in error
    error = fold(run("--start", folder=tmp_path).err)
    assert (
        "config.txt, nodes.txt, partitions.txt, reservations.txt, licenses.txt, limits.txt" in error
    )
    assert f"TZ=UTC scontrol --all --oneliner show license > {tmp_path}/licenses.txt; TZ=" in error


def test_cluster_is_the_one_of_the_recording(run: Run, clean_env: pytest.MonkeyPatch) -> None:
    clean_env.setenv("FAIRBANK_CLUSTER", "darwin")
    assert "   cluster lab   12 jobs waiting" in run().out
    assert json.loads(run("--json").out)["cluster"] == "lab"


def test_likely_start_of_each_job_is_that_of_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten simulated runs for each range are enough: its likely start is not from these."""
    monkeypatch.setattr(
        queue_explanation, "SimulatedRuns", partial(start_range.SimulatedRuns, limit=10)
    )
    folder = str(GOLDEN / "slurm-22.05" / "queue")
    starts = queue_explanation.likely_starts(folder)
    assert starts is not None
    assert len(starts.by_name) > 5
    for job, start in starts.by_name.items():
        why = queue_explanation.explain(
            job, folder, advice=False, likely=True, quote=None, progress=None
        ).row.why
        assert why.likely is not None
        assert why.likely.likely == start, job
