"""sacct and sstat: columns, steps and selection, as a real Slurm printed them."""

from __future__ import annotations

import json
import os
import pwd
import time
from typing import Any

import pytest

from fairbank.core.time import parse_instant
from fairbank.report.slurm.notation import Notation
from fairbank.report.slurm.sacct import SACCT, SSTAT, AccountingLine, TaskUsage
from fairbank.slurm.parsers import sacct as parser
from fairbank.slurm.parsers.columns import DELIMITER
from fairbank.wlm.commands.tables.rows import stored_fields
from tests.report.slurm.test_accounting_tables import ALIGN, BARS, PADDED
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import NOW, Run, answer_with, last_rows, run

__all__ = ["run"]
RUN = ALIGN._replace(
    user="bob",
    uid=1001,
    gid=100,
    qos="normal",
    submitted=NOW - 100,
    eligible=NOW - 100,
    started=NOW - 90,
    ended=NOW - 30,
    elapsed=60,
    limit=600,
    nodes="g01",
    node_count=1,
    allocated_nodes=1,
    allocated_tres="cpu=16,mem=64G,node=1,billing=24,gres/gpu=2",
    requested_tres="cpu=16,mem=64G,node=1,billing=24,gres/gpu=2",
    batch_cpus=16,
    batch_tres="cpu=16,mem=64G,node=1,gres/gpu=2",
    batch_exit_code=(0, 0),
    total_cpu=59_250,
    resident=TaskUsage(2**20, "g01", 0, 2**20),
    tasks=1,
)


@pytest.fixture(autouse=True)
def accounting(controller: RecordingController) -> None:
    answer_with(controller, accounting=[RUN])


def test_run_has_a_batch_step(run: Run) -> None:
    assert run("sacct", "-j", "9") == PADDED
    assert run("sacct", "-j", "9", "-P") == BARS
    assert run("sacct", "-j", "9", "-p", "-X", "-n") == BARS.splitlines()[1] + "|\n"
    assert run("sacct", "-X", "-n", "-b") == "9             COMPLETED      0:0 \n"


def test_usage_is_that_of_the_batch_step_and_the_run_adds_it_up(run: Run) -> None:
    columns = "jobid,maxrss,totalcpu,user,usercpu"
    assert run("sacct", "-n", "-P", "-o", columns) == (
        "9||00:59.250|bob|00:00:00\n9.batch|1M|00:59.250||\n"
    )
    # Slurm adds up the steps that it lists.
    assert run("sacct", "-n", "-P", "-X", "-o", columns) == "9||00:00:00|bob|00:00:00\n"


@pytest.mark.parametrize(
    ("state", "exit_code", "shown"),
    [
        ("CANCELLED", (0, 15), "9|CANCELLED|0:0 9.batch|CANCELLED|0:15"),
        ("CANCELLED", (3, 0), "9|CANCELLED|0:0 9.batch|FAILED|3:0"),
        ("TIMEOUT", (0, 15), "9|TIMEOUT|0:0 9.batch|CANCELLED|0:15"),
        ("REQUEUED", (0, 15), "9|REQUEUED|0:0 9.batch|CANCELLED|0:15"),
        ("FAILED", (0, 9), "9|FAILED|0:9 9.batch|CANCELLED|0:9"),
        ("FAILED", (3, 0), "9|FAILED|3:0 9.batch|FAILED|3:0"),
        ("RUNNING", (0, 0), "9|RUNNING|0:0 9.batch|RUNNING|0:0"),
    ],
)
def test_batch_step_ends_as_its_script_whatever_the_run_is(
    controller: RecordingController, run: Run, state: str, exit_code: tuple[int, int], shown: str
) -> None:
    answer_with(
        controller,
        accounting=[RUN._replace(state=state, exit_code=exit_code, batch_exit_code=exit_code)],
    )
    assert run("sacct", "-n", "-P", "-o", "jobid,state,exitcode").split("\n")[:2] == shown.split()


def test_job_that_never_started_has_no_step(controller: RecordingController, run: Run) -> None:
    answer_with(controller, accounting=[AccountingLine(7, "7", state="CANCELLED", cancelled_by=5)])
    assert run("sacct", "-n", "-P", "-o", "jobid,state") == "7|CANCELLED by 5\n"


def test_runs_are_in_the_order_of_jobs_and_tasks(controller: RecordingController, run: Run) -> None:
    labels = ["12_10", "12_2", "9", "100"]
    answer_with(controller, accounting=[AccountingLine(7, label) for label in labels])
    assert run("sacct", "-X", "-n", "-P", "-o", "jobid").split() == ["9", "12_2", "12_10", "100"]


def test_selection_is_sent(controller: RecordingController, run: Run) -> None:
    run(
        "sacct", "-A", "a", "-u", "root", "-r", "cpu,gpu", "-s", "CD,f", "--name", "x", "-q", "q",
        "-N", "n[1-2]", "-D", "-S", "2026-11-21T07:00", "-E", "2026-11-21T08:00", "-j", "7_3,9.0",
    )  # fmt: skip
    sent = last_rows(controller).filter
    assert (sent.accounts, sent.users, sent.partitions) == (("a",), ("root",), ("cpu", "gpu"))
    assert (sent.states, sent.names, sent.qos) == (("COMPLETED", "FAILED"), ("x",), ("q",))
    assert (sent.nodes, sent.duplicates, sent.jobs) == (("n1", "n2"), True, ("7_3", "9"))
    assert sent.start == parse_instant("2026-11-21T07:00:00")
    assert sent.end == parse_instant("2026-11-21T08:00:00")


def test_period_is_today_and_with_jobs_any_time(controller: RecordingController, run: Run) -> None:
    run("sacct")
    start = last_rows(controller).filter.start
    assert start is not None
    assert start % 86_400 == 0
    run("sacct", "-j", "9")
    assert last_rows(controller).filter.start is None


def test_users_see_their_own_jobs(controller: RecordingController, run: Run) -> None:
    run("sacct")
    name = pwd.getpwuid(os.getuid()).pw_name
    assert last_rows(controller).filter.users == (() if os.getuid() == 0 else (name,))
    run("sacct", "-a")
    assert last_rows(controller).filter.users == ()


def test_only_fields_of_the_columns_are_requested(
    controller: RecordingController, run: Run
) -> None:
    run("sacct", "-X", "-o", "jobid")
    columns = set(last_rows(controller).columns)
    assert "label" in columns
    assert not columns & {"resident", "submit_line", "std_out"}


@pytest.mark.parametrize("name", SACCT)
def test_column_follows_from_the_fields_requested_for_it(name: str) -> None:
    column = SACCT[name]
    waits = AccountingLine(7, "7_3", state="PENDING")
    for line in (RUN, waits, RUN._replace(state="CANCELLED", cancelled_by=5, started=None)):
        fields = stored_fields(AccountingLine, [column.field])
        own: dict[str, Any] = {field: getattr(line, field) for field in fields}
        part = AccountingLine(**{"job_id": 0, "label": "", **own})
        assert column.cell(part, Notation()) == column.cell(line, Notation())


def test_zone_of_summer_counts_for_its_days(
    controller: RecordingController, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    run("sacct", "-S", "2026-07-01T12:00", "-E", "2026-12-01T12:00")
    sent = last_rows(controller).filter
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert sent.start == parse_instant("2026-07-01T10:00:00")
    assert sent.end == parse_instant("2026-12-01T11:00:00")


def test_period_cuts_starts_and_ends(run: Run) -> None:
    line = run(
        "sacct", "-X", "-n", "-P", "-T", "-S", f"@{NOW - 60}", "-E", f"@{NOW - 40}",
        "-o", "start,end,elapsed",
    )  # fmt: skip
    assert line == "2026-11-21T07:30:37|2026-11-21T07:30:57|00:00:20\n"


def test_number_of_nodes_selects(run: Run) -> None:
    assert run("sacct", "-X", "-n", "-i", "2-4") == ""
    assert run("sacct", "-X", "-n", "-i", "1", "-o", "jobid") == "9            \n"


def test_units_are_those_asked_for(controller: RecordingController, run: Run) -> None:
    answer_with(controller, accounting=[RUN._replace(requested_memory=2560)])
    words = ("sacct", "-X", "-n", "-P", "-o", "reqmem")
    assert run(*words) == "2.50G\n"
    assert run(*words, "--units=M") == "2560M\n"
    assert run(*words, "--units=k") == "2621440K\n"
    assert run(*words, "--noconvert") == "2560M\n"


def test_batch_script_is_printed(run: Run) -> None:
    text = run("sacct", "-B", "-j", "9")
    assert text.startswith(f"Batch Script for 9\n{'-' * 80}\n")
    assert text.endswith("#!/bin/sh\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sacct", "-o", "nonsense"], 'sacct: error: Invalid field requested: "nonsense"'),
        (["sacct", "-s", "nonsense"], "sacct: error: unrecognized job state value"),
        (["sacct", "-S", "nonsense"], "sacct: error: --starttime: 'nonsense' is not a time"),
        (["sacct", "--units=X"], "sacct: error: Invalid --units value 'X'"),
        (["sacct", "-i", "x"], "sacct: error: invalid --nnodes value 'x'"),
        (["sstat"], "sstat: error: You didn't give me any jobs to stat."),
    ],
    ids=["column", "state", "time", "unit", "nodes", "jobs"],
)
def test_bad_option_is_an_error(run: Run, words: list[str], message: str) -> None:
    assert run(*words, fails=True).splitlines()[0] == message


def test_columns_are_listed(run: Run) -> None:
    assert run("sacct", "-e").split() == list(SACCT)
    assert run("sstat", "-e").split() == list(SSTAT)


def test_usage_of_a_running_job_is_printed(controller: RecordingController, run: Run) -> None:
    words = ("sstat", "-n", "-P", "-a", "-j", "9.batch", "-o", "jobid,maxrss,maxrssnode,ntasks")
    assert run(*words) == "9.batch|1M|g01|1\n"
    assert last_rows(controller).filter.states == ("RUNNING",)
    assert last_rows(controller).filter.jobs == ("9",)


def test_processes_of_a_running_job_are_printed(run: Run) -> None:
    assert run("sstat", "-n", "-P", "-i", "-j", "9") == "9.batch|g01|41,42\n"


def test_accounting_is_read_back(run: Run) -> None:
    table = parser.JOBS
    form = ("-X", "-D", "-n", "-P", f"--delimiter={DELIMITER}", "-o", ",".join(table.columns))
    (job,) = table.read(run("sacct", "-a", *form)).rows
    assert (job.job_id, job.owner, job.user, job.limit_seconds) == (9, 1001, "bob", 600)
    (same,) = parser.read_json(run("sacct", "--json").encode()).rows
    names = ("job_id", "submitted", "start", "end", "elapsed", "state", "account")
    for name in names:
        assert getattr(same, name) == getattr(job, name)
    assert sorted(same.tres.split(",")) == job.tres.replace("64G", "65536").split(",")


def test_json_has_steps(run: Run) -> None:
    (job,) = json.loads(run("sacct", "--json"))["jobs"]
    assert job["state"]["current"] == ["COMPLETED"]
    assert [step["step"]["id"] for step in job["steps"]] == ["9.batch"]
    assert job["time"]["limit"] == {"set": True, "infinite": False, "number": 10}
