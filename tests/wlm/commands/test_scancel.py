"""scancel: which jobs are named to the controller, and exit codes."""

from __future__ import annotations

import io
import os
import pwd
import sys
from typing import Any

import msgspec
import pytest

from fairbank.core.errors import FairbankError, Forbidden, NotFound
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.steps import StepLine
from fairbank.wlm.protocol.commands import CancelRequest, EndStepRequest, RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import error_message
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.conftest import RunCommand
from tests.wlm.commands.row_answers import rows_answer

ME = pwd.getpwuid(os.geteuid()).pw_name
NO_RESULTS: dict[str, Any] = {"results": []}

LINES = {
    "jobs": ("7 8_[1-3,5] 9,10", {"jobs": ("7", "8_[1-3,5]", "9", "10")}),
    "signal": ("-s USR1 7", {"jobs": ("7",), "signal": 10}),
    "signal-number": ("--signal=12 7", {"jobs": ("7",), "signal": 12}),
    "full-name": ("-s sigterm 7", {"jobs": ("7",), "signal": 15}),
    "kill-cancels": ("-s KILL 7", {"jobs": ("7",)}),
    "batch": ("-bs USR2 7", {"jobs": ("7",), "signal": 12, "batch": True}),
    "full": ("-f -s USR2 7", {"jobs": ("7",), "signal": 12, "full": True}),
    "after-jobs": ("7 --batch", {"jobs": ("7",), "batch": True}),
}
FILTERS = {
    "me": ("--me", {"users": (ME,)}),
    "user": ("-u daemon", {"users": ("daemon",)}),
    "states": ("--me -t pd,RUNNING", {"users": (ME,), "states": ("PENDING", "RUNNING")}),
    "several": (
        "-u daemon -A a -n j -p main -q q -R r -w n[1-2]",
        {
            "users": ("daemon",), "accounts": ("a",), "names": ("j",), "partitions": ("main",),
            "qos": ("q",), "reservations": ("r",), "nodes": ("n1", "n2"),
        },
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _accept(controller: RecordingController) -> None:
    controller.answer = lambda request: NO_RESULTS


def sent(controller: RecordingController) -> dict[str, Any]:
    """Return the fields of the only request that differ from their defaults."""
    (request,) = controller.requests
    assert isinstance(request, CancelRequest)
    default = msgspec.structs.asdict(CancelRequest(version=1))
    fields = msgspec.structs.asdict(request)
    return {name: value for name, value in fields.items() if value != default[name]}


@pytest.mark.parametrize("name", LINES)
def test_jobs_are_named_to_the_controller(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    words, fields = LINES[name]
    assert command("scancel", *words.split()) == (0, "", "")
    assert sent(controller) == fields


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_sent(command: RunCommand, controller: RecordingController, name: str) -> None:
    words, fields = FILTERS[name]
    assert command("scancel", *words.split()).code == 0
    (request,) = controller.requests
    assert isinstance(request, CancelRequest)
    assert request.jobs == ()
    sent_filter = msgspec.structs.asdict(request.filter)
    assert {field: value for field, value in sent_filter.items() if value} == fields


def test_filter_without_user_means_own_jobs_unless_root(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid, users in ((0, ()), (os.getuid() or 1, (pwd.getpwuid(os.getuid() or 1).pw_name,))):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        command("scancel", "-p", "main")
        request = controller.requests[-1]
        assert isinstance(request, CancelRequest)
        assert request.filter.users == users


def test_variable_replaces_an_option(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANCEL_PARTITION", "main")
    monkeypatch.setenv("SCANCEL_BATCH", "false")
    command("scancel", "7")
    request = controller.requests[-1]
    assert isinstance(request, CancelRequest)
    assert (request.filter.partitions, request.batch) == (("main",), False)


def test_nothing_named_is_an_error_without_a_terminal(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    line = "scancel: error: No job identification provided\n"
    assert command("scancel") == (1, "", line)
    assert controller.requests == []


@pytest.mark.parametrize(("answer", "number"), [("y\n", 1), ("n\n", 0)])
def test_nothing_named_asks_on_a_terminal(
    command: RunCommand,
    controller: RecordingController,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    number: int,
) -> None:
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert command("scancel").out == f"Cancel all jobs of {ME} [y/n]? "
    assert len(controller.requests) == number
    if number:
        assert sent(controller) == {"filter": RowFilter(users=(ME,))}


STEPS = [
    StepLine(9, "8_2", 8, 2, step="0", name="train", partition="main"),
    StepLine(9, "8_2", 8, 2),
]


@pytest.mark.parametrize(
    ("words", "signal", "line"),
    [
        (["8_2.0"], 0, "Terminating step 8_2.0"),
        (["-s", "USR1", "9.0"], 10, "Signal 10 to step 9.0"),
        (["-s", "KILL", "8_2.0"], 0, "Terminating step 8_2.0"),
    ],
    ids=["end", "signal", "kill"],
)
def test_step_is_ended_or_signalled_alone(
    command: RunCommand, controller: RecordingController, words: list[str], signal: int, line: str
) -> None:
    controller.answer = lambda request: (
        rows_answer(request, STEPS) if isinstance(request, RowsRequest) else {}
    )
    assert command("scancel", "-v", *words) == (0, "", f"scancel: {line}\n")
    assert controller.requests[-1] == EndStepRequest(version=1, job=9, step=0, signal=signal)


@pytest.mark.parametrize(
    ("word", "code", "message"),
    [
        ("8_2.7", 225, "Kill job error on job step id 8_2.7: Invalid job id specified"),
        ("8_2.batch", 1, "Invalid job id 8_2.batch"),
    ],
    ids=["unknown", "batch"],
)
def test_step_that_does_not_run_is_an_error(
    command: RunCommand, controller: RecordingController, word: str, code: int, message: str
) -> None:
    controller.answer = lambda request: rows_answer(request, STEPS)  # type: ignore[arg-type]
    result = command("scancel", word)
    assert result.code == code
    assert result.err.endswith(f"scancel: error: {message}\n")
    assert command("scancel", "-Q", "8_2.7") == (225, "", "")


def test_exit_code_is_that_of_steps_and_jobs(
    command: RunCommand, controller: RecordingController
) -> None:
    controller.answer = lambda request: (
        rows_answer(request, STEPS) if isinstance(request, RowsRequest) else NO_RESULTS
    )
    assert command("scancel", "8_2.7", "9").code == 225


def test_interactive_asks_for_each_job(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        JobLine(7, "a", partition="main"),
        JobLine(8, "b", partition="main", array_job=8, tasks_left="4-9"),
        JobLine(9, "b", partition="main", array_job=8, task=2),
    ]
    controller.answer = lambda request: (
        rows_answer(request, lines) if isinstance(request, RowsRequest) else NO_RESULTS
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\ny\nyes\n"))
    assert command("scancel", "-i", "--me").out == (
        "Cancel job_id=7 name=a partition=main [y/n]? "
        "Cancel job_id=8_[4-9] name=b partition=main [y/n]? "
        "Cancel job_id=8_2 name=b partition=main [y/n]? "
    )
    request = controller.requests[-1]
    assert isinstance(request, CancelRequest)
    assert request.jobs == ("8_[4-9]", "8_2")


def result(job: str, error: FairbankError | None = None) -> dict[str, Any]:
    body = None if error is None else msgspec.to_builtins(error_message(error))
    return {"job": job, "error": body}


def test_exit_code_is_that_of_slurm(command: RunCommand, controller: RecordingController) -> None:
    results = [result("7"), result("8", NotFound("there is no job 8", field="job"))]
    controller.answer = lambda request: {"results": results}
    sentence = "error: Kill job error on job id 8: Invalid job id specified\n"
    # A job that is not known is cancelled already; only a signal cannot reach it.
    assert command("scancel", "7", "8") == (0, "", "")
    code, _, err = command("scancel", "-v", "7", "8")
    assert code == 0
    assert "scancel: Terminating job 7\n" in err
    assert err.endswith(sentence)
    for option in ("-s USR1", "-b"):
        code, _, err = command("scancel", *option.split(), "7", "8")
        assert code == 1
        assert err.endswith(sentence)
    assert command("scancel", "-Q", "-b", "7", "8") == (1, "", "")
    results[:] = [result("9", Forbidden("job 9 is of another user", field="job"))]
    code, _, err = command("scancel", "9")
    assert code == 210
    assert err.endswith("error: Kill job error on job id 9: Access/permission denied\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("-s NOPE 7", "Unknown job signal: 'NOPE'"),
        ("-s 65 7", "Unknown job signal: '65'"),
        ("-t DONE 7", "Invalid job state specified: 'DONE'"),
        ("--zzz 7", "unrecognized option '--zzz'"),
        ("-Z 7", "invalid option -- 'Z'"),
        ("7 -s", "option requires an argument -- 's'"),
        ("--me=x 7", "option '--me' doesn't allow an argument"),
        ("-w n[1- --me", "n[1-"),
        ("-u no-such-user", "Invalid user name: no-such-user"),
    ],
    ids=["signal", "number", "state", "option", "letter", "value", "flag", "hosts", "user"],
)
def test_bad_command_line_is_refused(
    command: RunCommand, controller: RecordingController, words: str, sentence: str
) -> None:
    code, _, err = command("scancel", *words.split())
    assert code == 1
    assert err.startswith("scancel: error: ")
    assert sentence in err
    assert controller.requests == []
