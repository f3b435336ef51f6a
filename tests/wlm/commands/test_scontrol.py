"""scontrol: requests of its commands, and what they print."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.report.slurm.job_rows import JobLine
from fairbank.wlm.protocol.commands import RowsRequest
from fairbank.wlm.protocol.messages import error_message
from tests.wlm.client.recording_controller import RecordingController
from tests.wlm.commands.conftest import RunCommand
from tests.wlm.commands.row_answers import answer_with, rows_answer

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "hold": ("hold 7 8_[1-3,5],9", {"jobs": ("7", "8_[1-3,5]", "9")}),
    "hold-with-key": ("hold JobId=7", {"jobs": ("7",)}),
    "uhold": ("uhold 7", {"jobs": ("7",)}),
    "release": ("release 7", {"jobs": ("7",)}),
    "requeue": ("requeue 7", {"jobs": ("7",), "held": False, "special": False}),
    "requeuehold": ("requeuehold 7", {"jobs": ("7",), "held": True, "special": False}),
    "special": ("requeuehold State=SpecialExit 7", {"held": True, "special": True}),
    "top": ("top 7,8", {"jobs": ("7", "8")}),
    "notify": ("notify 7 half is done", {"jobs": ("7",), "text": "half is done"}),
    "update-job": (
        "update JobId=7,8 TimeLimit=+10 Partition=p",
        {"jobs": ("7", "8"), "fields": {"TimeLimit": "+10", "Partition": "p"}},
    ),
    "update-job-without-equals": (
        "update job 7 nice timelimit 5",
        {"jobs": ("7",), "fields": {"nice": "100", "timelimit": "5"}},
    ),
    "update-node": (
        "update nodename=n[1-2] state=drain reason=disk",
        {"nodes": "n[1-2]", "fields": {"state": "drain", "reason": "disk"}},
    ),
    "update-partition": (
        "upd PartitionName=p State=DOWN",
        {"entity": "partition", "fields": {"PartitionName": "p", "State": "DOWN"}},
    ),
    "update-reservation": (
        "update Reservation=r PartitionName=p",
        {"entity": "reservation", "fields": {"ReservationName": "r", "PartitionName": "p"}},
    ),
    "create-reservation": (
        "create reservation nodes=n1 starttime=2030-01-02T03:04:05Z duration=60",
        {
            "entity": "reservation",
            "fields": {"nodes": "n1", "starttime": "@1893553445", "duration": "60"},
        },
    ),
    "create-named-reservation": (
        "create ReservationName=r Users=a=b",
        {"entity": "reservation", "fields": {"ReservationName": "r", "Users": "a=b"}},
    ),
    "create-partition": (
        "create PartitionName=p Nodes=n1",
        {"entity": "partition", "fields": {"PartitionName": "p", "Nodes": "n1"}},
    ),
    "delete": (
        "delete Reservation=r",
        {"entity": "reservation", "fields": {"ReservationName": "r"}},
    ),
    "set-debug": ("setdebug debug2 nodes=n[1-2]", {"level": "debug2", "nodes": "n[1-2]"}),
    "shutdown": ("shutdown", {}),
}


def answers(request: Any) -> dict[str, Any]:
    return {"results": [], "name": "r", "notes": ["the port of n1 needs a restart"]}


@pytest.mark.parametrize("name", REQUESTS)
def test_command_makes_its_request(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    words, fields = REQUESTS[name]
    controller.answer = answers
    out = "Reservation created: r\n" if "reservation" in name and "create" in name else ""
    assert command("scontrol", *words.split()) == (0, out, "")
    (request,) = controller.requests
    sent = msgspec.structs.asdict(request)
    assert {name: sent[name] for name in fields} == fields


def test_failure_of_one_job_ends_with_the_sentence_of_slurm(
    command: RunCommand, controller: RecordingController
) -> None:
    error = msgspec.to_builtins(error_message(NotFound("there is no job 8", field="job")))
    results = [{"job": "7", "error": None}, {"job": "8", "error": error}]
    controller.answer = lambda request: {"results": results}
    assert command("scontrol", "hold", "7,8") == (
        1,
        "",
        "scontrol: there is no job 8\nInvalid job id specified for job 8\n",
    )


NAMED = [JobLine(7), JobLine(8, array_job=8, tasks_left="4-9")]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("hold jobname=x", "HoldRequest"),
        ("release Name=x", "ReleaseRequest"),
        ("update JobName=x Nice=4", "UpdateJobRequest"),
    ],
)
def test_jobs_are_named_by_their_name(
    command: RunCommand, controller: RecordingController, words: str, kind: str
) -> None:
    rows = [*NAMED]
    controller.answer = lambda request: (
        rows_answer(request, rows) if isinstance(request, RowsRequest) else {"results": []}
    )
    assert command("scontrol", *words.split()).code == 0
    search, request = controller.requests
    assert isinstance(search, RowsRequest)
    assert search.filter.names == ("x",)
    assert type(request).__name__ == kind
    assert msgspec.structs.asdict(request)["jobs"] == ("7", "8_[4-9]")
    rows.clear()
    is_update = words.startswith("update")
    error = "scontrol: error: No jobs with name 'x'\n" if is_update else ""
    assert command("scontrol", *words.split()) == (int(is_update), "", error)


@pytest.mark.parametrize("field", ["StartTime", "endtime", "Deadline"])
def test_time_is_in_the_zone_of_the_user(
    command: RunCommand,
    controller: RecordingController,
    monkeypatch: pytest.MonkeyPatch,
    field: str,
) -> None:
    controller.answer = answers
    sent = []
    for zone in ("Asia/Tokyo", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        command("scontrol", "update", "JobId=7", f"{field}=2030-01-02T03:04:05")
        sent.append(msgspec.structs.asdict(controller.requests[-1])["fields"])
    assert sent == [{field: "@1893521045"}, {field: "@1893553445"}]


@pytest.mark.parametrize(
    ("field", "error", "line"),
    [
        ("numcpus=foo", InvalidInput("x", field="NumCPUs"), "Invalid NumCPUs value: foo"),
        ("timelim=foo", InvalidInput("x", field="TimeLimit"), "Invalid TimeLimit value"),
    ],
)
def test_value_that_cannot_be_read_is_named_as_slurm_does(
    command: RunCommand,
    controller: RecordingController,
    field: str,
    error: FairbankError,
    line: str,
) -> None:
    body = msgspec.to_builtins(error_message(error))
    controller.answer = lambda request: {"results": [{"job": "7", "error": body}]}
    assert command("scontrol", "update", "JobId=7", field) == (
        1,
        "",
        f"scontrol: x\nscontrol: error: {line}\n",
    )


@pytest.mark.parametrize(
    ("field", "sentence"),
    [("Licenses", "Invalid license specification"), ("Dependency", "Job dependency problem")],
)
def test_value_that_slurmctld_reads_has_its_sentence(
    command: RunCommand, controller: RecordingController, field: str, sentence: str
) -> None:
    body = msgspec.to_builtins(error_message(InvalidInput("x", field=field)))
    controller.answer = lambda request: {"results": [{"job": "7", "error": body}]}
    assert command("scontrol", "update", "JobId=7", f"{field.lower()}=foo") == (
        1,
        "",
        f"scontrol: x\n{sentence} for job 7\n",
    )


FAILURES: dict[str, tuple[str, FairbankError, str]] = {
    "node": (
        "update NodeName=n9 State=RESUME",
        NotFound("x", field="node"),
        "slurm_update error: Invalid node name specified\n",
    ),
    "reservation": (
        "create reservation Nodes=n1",
        Forbidden("only operators may create reservations", field="user"),
        "Error creating the reservation: Access/permission denied\n",
    ),
    "delete": (
        "delete reservation=r",
        NotFound("there is no reservation 'r'", field="reservation"),
        "Error deleting the reservation: Requested reservation is invalid\n",
    ),
    "reconfigure": (
        "reconfigure",
        Forbidden("only operators may do this", field="user"),
        "slurm_reconfigure error: Access/permission denied\n",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_refusal_ends_with_the_sentence_of_slurm(
    command: RunCommand, controller: RecordingController, name: str
) -> None:
    words, error, sentence = FAILURES[name]
    controller.answer = lambda request: error
    code, out, err = command("scontrol", *words.split())
    assert (code, out) == (1, "")
    assert err == f"scontrol: {error.message}\n{sentence}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "no command"),
        ("jump 7", "invalid keyword: jump"),
        ("re 7", "invalid keyword: re"),
        ("hold", "too few arguments for keyword:hold"),
        ("ping 7", "too many arguments for keyword:ping"),
        ("requeuehold State=SpecialExit", "no job is named"),
        ("requeuehold State=Other 7", "Invalid state specification other"),
        ("update JobId=7 TimeLimit", "Invalid input: TimeLimit"),
        ("update JobId= TimeLimit=7", "no job is named"),
        ("update TimeLimit=7", "No valid entity in update command"),
        ("create node=n1", "neither a partition nor a reservation"),
        ("write script 7", "invalid write argument: script"),
        ("pidinfo me", "Invalid process id: me"),
        ("setdebug info n1", "invalid setdebug argument: n1"),
        ("takeover 7", "takeover is not supported"),
        ("--zzz", "unrecognized option '--zzz'"),
    ],
    ids=[
        "nothing", "keyword", "ambiguous", "few", "many", "no-job", "state", "word", "no-id",
        "entity", "create", "write", "pid", "setdebug", "takeover", "option",
    ],
)  # fmt: skip
def test_bad_command_line_is_refused(
    command: RunCommand, controller: RecordingController, words: str, sentence: str
) -> None:
    code, out, err = command("scontrol", *words.split())
    assert (code, out) == (1, "")
    assert sentence in err
    assert controller.requests == []


def test_script_of_a_job_is_written(
    command: RunCommand, controller: RecordingController, tmp_path: Path
) -> None:
    controller.answer = lambda request: {"script": "IyEvYmluL3NoCg=="}
    line = "batch script for job 7 written to slurm-7.sh\n"
    assert command("scontrol", "write", "batch_script", "7") == (0, line, "")
    script = tmp_path / "slurm-7.sh"
    assert script.read_bytes() == b"#!/bin/sh\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
    assert command("scontrol", "write", "batch_script", "7", "-").out == "#!/bin/sh\n"
    code, _, err = command("scontrol", "write", "batch_script", "7", "no/file")
    assert (code, err) == (1, "failed to open file `no/file`: No such file or directory\n")


def test_wait_job_waits_until_the_job_has_started(
    command: RunCommand, controller: RecordingController
) -> None:
    states = [["PENDING", ""], None, ["RUNNING", "CONFIGURING"], ["RUNNING", ""]]

    def rows(request: Any) -> dict[str, Any]:
        assert isinstance(request, RowsRequest)
        line = states[len(controller.requests) - 1]
        if line is None:
            return {"change": request.change, "unchanged": True}
        return {"change": 4, "columns": [], "rows": [line], "after": None, "now": 0, "cluster": ""}

    controller.answer = rows
    assert command("scontrol", "wait_job", "7") == (0, "", "")
    assert len(controller.requests) == len(states)


@pytest.mark.parametrize(("lines", "code"), [([["FAILED", ""]], 1), ([], 1)])
def test_wait_job_fails_for_a_job_that_has_ended_or_is_unknown(
    command: RunCommand, controller: RecordingController, lines: list[list[str]], code: int
) -> None:
    page = {"change": 1, "columns": [], "rows": lines, "after": None, "now": 0, "cluster": ""}
    controller.answer = lambda request: page
    assert command("scontrol", "wait_job", "7").code == code


def test_ping_says_whether_the_controller_runs(
    command: RunCommand,
    controller: RecordingController,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    controller.answer = lambda request: {"release": "x", "host": "h1", "pid": 1, "up": 2}
    assert command("scontrol", "ping") == (0, "Slurmctld(primary) at h1 is UP\n", "")
    monkeypatch.setenv("FAIRBANK_CLUSTER", str(tmp_path))
    code, out, _ = command("scontrol", "ping")
    assert (code, out) == (1, f"Slurmctld(primary) at {os.uname().nodename} is DOWN\n")


def test_processes_of_jobs_are_listed(command: RunCommand, controller: RecordingController) -> None:
    answer_with(controller, jobs=[JobLine(7)])
    table = (
        "PID      JOBID    STEPID   LOCALID GLOBALID\n"
        "41       9        batch    0       0\n"
        "42       9        batch    -       -\n"
    )  # fmt: skip
    for words in (["7"], []):
        out = command("scontrol", "listpids", *words).out
        assert "\n".join(line.rstrip() for line in out.splitlines()) + "\n" == table


def test_job_of_a_process_is_shown(
    command: RunCommand, controller: RecordingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    answer: dict[str, Any] = {"job": 7, "ends": 0}
    controller.answer = lambda request: answer
    assert command("scontrol", "pidinfo", "12").out == (
        "Slurm job id 7 ends at Thu Jan  1 00:00:00 1970\nslurm_get_rem_time is 0\n"
    )
    answer["ends"] = None
    assert command("scontrol", "pidinfo", "12").out == "Slurm job id 7 has no time limit\n"
    answer["job"] = None
    assert command("scontrol", "pidinfo", "12").code == 1


def test_notes_of_a_reconfiguration_are_printed(
    command: RunCommand, controller: RecordingController
) -> None:
    controller.answer = answers
    assert command("scontrol", "reconfigure").out == "the port of n1 needs a restart\n"


def test_help_lists_the_commands(command: RunCommand) -> None:
    for words in (["--help"], ["help"]):
        out = command("scontrol", *words).out
        assert "requeuehold [State=SpecialExit] JOBS" in out
        assert "--oneliner" in out
