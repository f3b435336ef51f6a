"""Requests of the client: each is one that the controller reads, and errors keep their class."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.core.errors import (
    Busy,
    Corrupt,
    FairbankError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unavailable,
)
from fairbank.wlm.client import connection as connection_module
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import SOCKET, Controller, cluster_directory
from fairbank.wlm.protocol.commands import REQUESTS
from fairbank.wlm.protocol.frames import ANSWER, Frame, encode_frame
from tests.wlm.client.recording_controller import RecordingController

JOB = requests.JobToSubmit(b"#!/bin/sh\n\xff", {"time": "5"}, "/tmp", [b"A=\xff", b"B=2"], ["x"])
CALLS: dict[str, tuple[Callable[[Controller], object], dict[str, Any]]] = {
    "submit": (lambda to: requests.submit(to, JOB), {"job": 7, "start": None, "nodes": []}),
    "cancel": (
        lambda to: requests.change_jobs(to, "cancel", ["7"], filter={"users": ["a"]}),
        {"results": []},
    ),
    "rows": (
        lambda to: requests.rows(to, "jobs", ["job_id"], matching={"tasks": True}, change=3),
        {"change": 3, "unchanged": True},
    ),
    "config": (requests.settings, {"settings": [["ClusterName", "c"]]}),
    "script": (lambda to: requests.script(to, "7"), {"script": "AAE="}),
    "wait": (lambda to: requests.wait(to, 7), {"status": 256}),
}


@pytest.mark.parametrize("name", CALLS)
def test_function_sends_the_request_that_the_controller_reads(
    controller: RecordingController, name: str
) -> None:
    function, answer = CALLS[name]
    controller.answer = lambda request: answer
    with Controller(controller.directory) as connection:
        function(connection)
    (request,) = controller.requests
    assert type(request) is REQUESTS[name]


def test_submission_arrives_byte_for_byte(controller: RecordingController) -> None:
    controller.answer = lambda request: {"job": 7, "start": None, "nodes": []}
    with Controller(controller.directory) as connection:
        assert requests.submit(connection, JOB).job == 7
    (request,) = controller.requests
    fields = msgspec.structs.asdict(request)
    assert fields["script"] == b"#!/bin/sh\n\xff"
    assert fields["environment"] == b"A=\xff\0B=2"
    assert (fields["options"], fields["arguments"]) == ({"time": "5"}, ("x",))


def test_pages_are_joined(controller: RecordingController) -> None:
    def page(request: Any) -> dict[str, Any]:
        number = int(request.after or 0)
        after = str(number + 1) if number < 2 else None
        return {
            "change": 9, "columns": ["job_id"], "rows": [[number]], "after": after, "now": 5,
            "cluster": "c",
        }  # fmt: skip

    controller.answer = page
    with Controller(controller.directory) as connection:
        answer = requests.rows(connection, "jobs", ["job_id"])
    assert answer == (9, ["job_id"], [[0], [1], [2]], 5, "c")


@pytest.mark.parametrize("kind", [NotFound, Forbidden, Corrupt, Unavailable])
def test_refusal_keeps_class_field_and_remedy(
    controller: RecordingController, kind: type[FairbankError]
) -> None:
    controller.answer = lambda request: kind("no", field="job", remedy="do this")
    with Controller(controller.directory) as connection, pytest.raises(kind, match="no") as raised:
        connection.request("ping")
    assert (raised.value.field, raised.value.remedy) == ("job", "do this")


def test_busy_controller_keeps_the_remedy(controller: RecordingController) -> None:
    controller.answer = lambda request: Busy("full", retry_after_seconds=3)
    with Controller(controller.directory) as connection, pytest.raises(Busy) as raised:
        connection.request("ping")
    assert raised.value.remedy == "try again in 3 s; the request was not carried out"


def test_result_of_each_job_has_its_error(controller: RecordingController) -> None:
    error = {"kind": "NotFound", "message": "there is no job 8", "field": "job", "remedy": None}
    results = [{"job": "7", "error": None}, {"job": "8", "error": error}]
    controller.answer = lambda request: {"results": results}
    with Controller(controller.directory) as connection:
        first, second = requests.change_jobs(connection, "hold", ["7", "8"])
    assert first == ("7", None)
    assert isinstance(second.error, NotFound)


def test_next_request_connects_again_after_a_lost_answer(controller: RecordingController) -> None:
    answers = [None, {"up": 1}]
    controller.answer = lambda request: answers.pop(0)
    with Controller(controller.directory) as connection:
        with pytest.raises(Unavailable, match="no answer"):
            connection.request("ping")
        assert connection.request("ping") == {"up": 1}


def test_directory_without_controller_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no answer from the controller of") as raised:
        Controller(tmp_path).request("ping")
    assert "fairbank cluster up" in (raised.value.remedy or "")


def test_directory_is_that_of_variable_user_file_own_cluster_or_site(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.delenv("FAIRBANK_CLUSTER", raising=False)
    monkeypatch.setattr(connection_module, "SITE_FILE", str(tmp_path / "site.toml"))
    own, user_file = tmp_path / "STATE/fairbank/cluster", tmp_path / "CONFIG/fairbank/client.toml"
    assert cluster_directory() == str(own)
    (tmp_path / "site.toml").write_text('cluster = "/site"')
    assert cluster_directory() == "/site"
    own.mkdir(parents=True)
    assert cluster_directory() == str(own)
    user_file.parent.mkdir(parents=True)
    user_file.write_text('server = "unix:/bank"\ncluster = "/user"\n')
    assert cluster_directory() == "/user"
    monkeypatch.setenv("FAIRBANK_CLUSTER", "darwin")  # of a cluster beside Slurm
    assert cluster_directory() == "/user"
    monkeypatch.setenv("FAIRBANK_CLUSTER", "/c")
    assert cluster_directory() == "/c"
    user_file.write_text("speed = 3")
    assert cluster_directory() == "/c"
    monkeypatch.delenv("FAIRBANK_CLUSTER")
    with pytest.raises(InvalidInput, match="'speed' is not a setting"):
        cluster_directory()


def test_relative_path_in_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRBANK_CLUSTER", "relative/queue")
    with pytest.raises(InvalidInput, match="relative path") as refused:
        cluster_directory()
    assert refused.value.field == "FAIRBANK_CLUSTER"


def test_user_without_a_home_directory_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for an unknown user id
    monkeypatch.delenv("FAIRBANK_CLUSTER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    with pytest.raises(InvalidInput, match="no home directory") as refused:
        cluster_directory()
    assert refused.value.field == "XDG_STATE_HOME"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/tmp/me")
    assert cluster_directory() == "/var/tmp/me/fairbank/cluster"


def test_command_waits_while_too_many_connect(tmp_path: Path) -> None:
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(tmp_path / SOCKET))
        listener.listen(0)
        waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
        waiting.connect(str(tmp_path / SOCKET))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        controller = stack.enter_context(Controller(str(tmp_path)))
        answer = pool.submit(controller.request, "ping")
        for _ in range(2):  # the second is that of the command
            accepted = stack.enter_context(listener.accept()[0])
        assert accepted.recv(9)
        accepted.sendall(encode_frame(Frame(ANSWER, 1, b'{"pid": 7}')))
        assert answer.result() == {"pid": 7}
