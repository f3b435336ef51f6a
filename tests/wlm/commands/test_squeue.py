"""squeue: columns, order and selection, as a real Slurm printed them."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from typing import Any

import pytest

from fairbank.report.slurm import squeue
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.notation import Notation
from fairbank.slurm.parsers import squeue as parser
from fairbank.wlm.commands import program
from fairbank.wlm.commands.tables.rows import stored_fields
from tests.report.slurm.test_queue_tables import DEFAULT, JOBS, LONG, MORNING, START
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.row_answers import Run, answer_with, last_rows, run

__all__ = ["run"]
PRIORITIES = {25: 50135, 21: 33805, 23: 0, 18: 33773, 22: 87484, 19: 68202}
QUEUE = [
    job._replace(
        priority=PRIORITIES[job.job_id],
        submitted=MORNING,
        account="wg",
        qos="normal",
        requested_tres="cpu=1,mem=1000M,node=1,billing=1",
    )
    for job in JOBS
]


@pytest.fixture(autouse=True)
def queue(controller: RecordingController) -> None:
    answer_with(controller, jobs=QUEUE[::-1])


def test_queue_is_printed_in_slurms_order(run: Run) -> None:
    assert run("squeue") == DEFAULT
    assert run("squeue", "-h") == DEFAULT.partition("\n")[2]
    assert run("squeue", "-l") == f"Sat Nov 21 07:31:37 2026\n{LONG}"


def test_expected_starts_come_first_known_first(controller: RecordingController, run: Run) -> None:
    after, render, *_ = QUEUE
    starts = [after, render._replace(started=MORNING + 332, planned_nodes="c[03-08]")]
    answer_with(controller, jobs=starts)
    assert run("squeue", "--start") == START
    assert last_rows(controller).filter.states == ("PENDING",)


def test_only_fields_of_the_columns_are_requested(
    controller: RecordingController, run: Run
) -> None:
    assert run("squeue", "-h", "-o", "%i|%Q", "-S", "i").splitlines()[0] == "18|33773"
    assert set(last_rows(controller).columns) == {
        "tasks_left", "array_job", "task", "job_id", "priority", "state",
    }  # fmt: skip


@pytest.mark.parametrize("name", squeue.COLUMNS)
def test_column_follows_from_the_fields_requested_for_it(name: str) -> None:
    column = squeue.COLUMNS[name]
    for job in JOBS:
        fields = stored_fields(JobLine, [column.field])
        part = JobLine(**{"job_id": 0} | {field: getattr(job, field) for field in fields})
        assert column.cell(part, Notation()) == column.cell(job, Notation())


def test_selection_is_sent(controller: RecordingController, run: Run) -> None:
    run(
        "squeue", "-A", "a,b", "-p", "cpu", "-t", "R,pending", "-n", "x", "-q", "high", "-R", "r",
        "-w", "n[1-2]", "-L", "m", "-r", "-a", "--me", "-j", "7_[1-3,5],8",
    )  # fmt: skip
    sent = last_rows(controller).filter
    assert (sent.accounts, sent.partitions, sent.states) == (
        ("a", "b"), ("cpu",), ("RUNNING", "PENDING"),
    )  # fmt: skip
    assert (sent.names, sent.qos, sent.reservations) == (("x",), ("high",), ("r",))
    assert (sent.nodes, sent.licenses, sent.tasks) == (("n1", "n2"), ("m",), True)
    assert sent.users == (pwd.getpwuid(os.getuid()).pw_name,)
    assert sent.jobs == ("7_[1-3,5]", "8")


def test_every_column_is_printed(run: Run) -> None:
    form = ",".join(f"{name}:0|" for name in squeue.COLUMNS)
    lines = run("squeue", "-O", form).splitlines()
    assert {line.count("|") for line in lines} == {len(squeue.COLUMNS)}
    assert len(lines) == len(QUEUE) + 1


def test_states_default_to_those_of_jobs_that_have_not_ended(
    controller: RecordingController, run: Run
) -> None:
    run("squeue")
    assert last_rows(controller).filter.states == ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")
    run("squeue", "-t", "all")
    assert last_rows(controller).filter.states == ()


def test_variables_stand_for_options(
    controller: RecordingController, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUEUE_PARTITION", "cpu")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SQUEUE_SORT", "-i")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%H:%M")
    assert run("squeue", "-h").split()[0] == "25"
    assert last_rows(controller).filter.partitions == ("cpu",)
    assert run("squeue", "-h", "-o", "%V", "-p", "gpu").split()[0] == "07:30"
    assert last_rows(controller).filter.partitions == ("gpu",)
    assert run("squeue", "-l").startswith("Sat Nov 21")


def test_single_unknown_job_is_an_error(controller: RecordingController, run: Run) -> None:
    answer_with(controller, jobs=[])
    assert run("squeue", "-j", "99", fails=True) == (
        "squeue: there is no job 99\nslurm_load_jobs error: Invalid job id specified\n"
    )
    assert run("squeue", "-h", "-j", "98,99") == ""


@pytest.mark.parametrize("name", ["squeue", "sinfo", "sacct", "sprio"])
def test_missing_controller_is_reported_in_slurms_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FAIRBANK_CLUSTER", "/nothing")
    first, _, last = run(name, fails=True).splitlines()
    assert first.startswith(f"{name}: no answer from the controller of /nothing")
    assert last.endswith(" error: Unable to contact slurm controller (connect failure)")


def test_single_job_that_has_ended_is_left_out(controller: RecordingController, run: Run) -> None:
    answer_with(controller, jobs=[JobLine(7, state="COMPLETED")])
    assert run("squeue", "-h", "-j", "7") == ""
    assert run("squeue", "-h", "-j", "7", "-t", "CD", "-o", "%i") == "7\n"


def test_job_is_shown_in_each_of_its_partitions(controller: RecordingController, run: Run) -> None:
    answer_with(controller, jobs=[JobLine(7, partition="cpu,gpu")])
    assert run("squeue", "-h", "-P", "-o", "%P") == "cpu\ngpu\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--foo"], "squeue: error: unrecognized option '--foo'\n"),
        (["-Y"], "squeue: error: invalid option -- 'Y'\n"),
        (["--account"], "squeue: error: option '--account' requires an argument\n"),
        (["--long=3"], "squeue: error: option '--long' doesn't allow an argument\n"),
        (["-t", "bad"], "squeue: error: Invalid job state specified: bad\n"),
        (["-u", "no such user"], "squeue: error: Invalid user: no such user\n"),
        (["-i", "x"], "squeue: error: invalid --iterate value 'x'\n"),
        (["--steps=7.0.1"], "squeue: error: Invalid job_step id: 7.0.1\n"),
        (["-M", "other"], "squeue: error: there is no cluster 'other' here\n"),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, list) else "",
)
def test_bad_option_is_an_error(run: Run, words: list[str], message: str) -> None:
    assert run("squeue", *words, fails=True).startswith(message)


def test_unknown_column_is_reported_and_left_out(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run("squeue", ["-h", "-j", "18,19", "-O", "JobID:4,speed"]) == 0
    output, errors = capsys.readouterr()
    assert output.split()[0] == "25"
    assert errors == "squeue: error: Invalid job format specification: speed\n"


def test_jobs_are_read_back_from_text(run: Run) -> None:
    jobs = parser.QUEUE.read(run("squeue", "-h", "-a", "-t", "all", "-o", parser.QUEUE_FORMAT))
    assert {job.job_id: job.state for job in jobs.rows} == {job.job_id: job.state for job in QUEUE}
    waiting = parser.read_waiting_jobs(run("squeue", "-h", "-O", parser.WAITING_JOBS_FORMAT))
    assert [job.name for job in waiting.rows][:1] == ["25"]


def test_own_jobs_are_read_with_their_names_and_whole_lists_of_nodes(
    controller: RecordingController, run: Run
) -> None:
    nodes = ",".join(f"rack{number}-node" for number in range(30))
    row = next(job for job in QUEUE if job.state == "RUNNING")
    answer_with(controller, jobs=[row._replace(name="Maß, 2. Lauf", nodes=nodes)])
    own = parser.read_own_jobs(run("squeue", "-h", "-O", parser.OWN_JOBS_FORMAT))
    assert not own.unreadable
    (job,) = own.rows
    assert (job.job_name, job.state) == ("Maß, 2. Lauf", "RUNNING")
    assert job.node_list.startswith("rack0-node,rack1-node,")


def test_json_has_slurms_shape(controller: RecordingController, run: Run) -> None:
    row = QUEUE[3]._replace(flag="COMPLETING", exit_code=(3, 0))
    answer_with(controller, jobs=[row])
    document: dict[str, Any] = json.loads(run("squeue", "--json"))
    assert document["errors"] == []
    (job,) = document["jobs"]
    assert (job["job_id"], job["job_state"]) == (18, ["RUNNING", "COMPLETING"])
    assert job["time_limit"] == {"set": True, "infinite": False, "number": 10}
    assert job["exit_code"]["return_code"]["number"] == 3
    assert job["submit_time"]["number"] == MORNING


def test_long_lists_come_in_pages(controller: RecordingController, run: Run) -> None:
    pages = [QUEUE[:3], QUEUE[3:]]

    def answer(request: Any) -> Any:
        page = int(request.after or 0)
        rows = [[getattr(job, name) for name in request.columns] for job in pages[page]]
        after = "1" if page == 0 else None
        return {
            "change": 1, "columns": request.columns, "rows": rows, "after": after, "now": 1,
            "cluster": "lab",
        }  # fmt: skip

    controller.answer = answer
    assert run("squeue") == DEFAULT


def test_queue_is_repeated_until_a_signal(controller: RecordingController) -> None:
    command = [sys.executable, "-m", "fairbank.wlm.commands", "squeue", "-i", "1", "-o", "%i"]
    environment = {**os.environ, "FAIRBANK_CLUSTER": str(controller.directory)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        heads = 0
        for text in process.stdout:
            heads += text == "JOBID\n"
            if heads == 2:
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 130
    assert len(controller.requests) >= 2
