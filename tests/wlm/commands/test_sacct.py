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
from fairbank.wlm.protocol.commands import AnyRequest, RowsRequest
from tests.report.slurm.test_accounting_tables import ALIGN, BARS, PADDED
from tests.wlm.client.recording_controller import Answer, RecordingController
from tests.wlm.commands.row_answers import NOW, Run, answer_with, last_rows, rows_answer, run

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
    derived_exit_code=(0, 0),
    user_cpu=0,
    total_cpu=59_250,
)
BATCH = AccountingLine(
    9,
    "9",
    "batch",
    name="batch",
    account=RUN.account,
    state="COMPLETED",
    started=NOW - 90,
    ended=NOW - 30,
    elapsed=60,
    nodes="g01",
    node_count=1,
    allocated_nodes=1,
    cpus=16,
    tasks=1,
    total_cpu=59_250,
    resident=TaskUsage(2**20, "g01", 0, 2**20),
)
STEPS = [
    BATCH._replace(step=str(number), name="hostname", cpus=2, tasks=2, resident=None)
    for number in range(2)
]


def answer_with_runs(controller: RecordingController, *rows: AccountingLine) -> None:
    """Let the controller answer with these rows; steps only if they are asked for."""

    def answer(request: AnyRequest) -> Answer:
        if isinstance(request, RowsRequest):
            wanted = request.filter
            shown = [row for row in rows if wanted.steps or not row.step]
            shown = [row for row in shown if not wanted.jobs or row.label in wanted.jobs]
            return rows_answer(request, shown)
        return other(request)

    answer_with(controller)
    other, controller.answer = controller.answer, answer


@pytest.fixture(autouse=True)
def accounting(controller: RecordingController) -> None:
    answer_with_runs(controller, RUN, BATCH)


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


@pytest.mark.parametrize("state", ["CANCELLED", "TIMEOUT", "REQUEUED"])
def test_exit_code_of_a_run_that_was_ended_is_that_of_its_script_only(
    controller: RecordingController, run: Run, state: str
) -> None:
    ended = RUN._replace(state=state, exit_code=(0, 15))
    answer_with_runs(controller, ended, BATCH._replace(state="CANCELLED", exit_code=(0, 15)))
    assert run("sacct", "-n", "-P", "-o", "jobid,state,exitcode").split() == [
        f"9|{state}|0:0", "9.batch|CANCELLED|0:15",
    ]  # fmt: skip


def test_steps_come_after_the_batch_script(controller: RecordingController, run: Run) -> None:
    earlier = RUN._replace(job_id=8, label="8")
    answer_with_runs(controller, RUN, BATCH, *STEPS, earlier)
    words = ("sacct", "-n", "-P", "-o", "jobid,jobname,alloccpus,ntasks")
    assert run(*words).split() == [
        "8|align|16|", "9|align|16|", "9.batch|batch|16|1",
        "9.0|hostname|2|2", "9.1|hostname|2|2",
    ]  # fmt: skip
    assert run(*words, "-j", "9.1").split() == ["9.1|hostname|2|2"]
    assert run(*words, "-j", "9.1,8").split() == ["8|align|16|", "9.1|hostname|2|2"]
    assert run(*words, "-X").split() == ["8|align|16|", "9|align|16|"]


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
    rows = [row._replace(state="RUNNING", ended=None) for row in (RUN, BATCH, *STEPS)]
    answer_with_runs(controller, *rows)
    words = ("sstat", "-n", "-P", "-o", "jobid,maxrss,maxrssnode,ntasks", "-j")
    assert run(*words, "9.batch") == "9.batch|1M|g01|1\n"
    assert run(*words, "9.1") == "9.1|||2\n"
    assert run(*words, "9") == "9.0|||2\n"
    assert run(*words, "9", "-a") == "9.batch|1M|g01|1\n9.0|||2\n9.1|||2\n"
    assert last_rows(controller).filter.states == ("RUNNING", "SUSPENDED")
    assert last_rows(controller).filter.jobs == ("9",)


def test_processes_of_a_running_job_are_printed(controller: RecordingController, run: Run) -> None:
    rows = [row._replace(state="RUNNING", ended=None) for row in (RUN, BATCH)]
    answer_with_runs(controller, *rows)
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
