"""Commands against a controller and its node daemon: requests, rights, rows, and bad frames."""

from __future__ import annotations

import getpass
import json
import platform
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairbank import __version__
from fairbank.core.errors import Conflict, FairbankError, InvalidInput, NotFound
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.requests import JobToSubmit
from fairbank.wlm.controller.commands.command_server import CONNECTIONS_MAX
from fairbank.wlm.protocol.frames import BODY_MAX, ERROR, REQUEST, Frame, FrameDecoder, encode_frame
from tests.support.conditions import wait_until
from tests.wlm.controller.small_cluster import SmallCluster
from tests.wlm.protocol.test_commands import BODIES


@pytest.fixture
def controller(shared_cluster: SmallCluster) -> Iterator[Controller]:
    with Controller(shared_cluster.directory) as connection:
        yield connection


def submit(controller: Controller, script: str = "true", **options: str) -> int:
    directory = controller.directory
    options = {name.replace("_", "-"): text for name, text in options.items()}
    job = JobToSubmit(
        f"#!/bin/sh\n{script}\n".encode(), {"output": "/dev/null", **options}, directory
    )
    return requests.submit(controller, job).job


def job(controller: Controller, number: int, *columns: str) -> list[Any]:
    (row,) = requests.rows(controller, "jobs", columns, matching={"jobs": [str(number)]}).rows or ()
    return list(row)


def accounting(controller: Controller, number: int, *columns: str) -> list[Any]:
    """Return the accounting of a job and its steps."""
    matching = {"jobs": [str(number)], "steps": True}
    return list(requests.rows(controller, "accounting", columns, matching=matching).rows or ())


def test_job_runs_and_is_accounted(controller: Controller, shared_cluster: SmallCluster) -> None:
    number = submit(controller, "echo out; exit 3", output="%x-%j", job_name="train")
    assert requests.wait(controller, number) == 3 << 8
    assert (shared_cluster.directory / f"train-{number}").read_text() == "out\n"
    assert job(controller, number, "state", "reason", "exit_code") == [
        "FAILED",
        "NonZeroExitCode",
        [3, 0],
    ]
    columns = ["label", "state", "exit_code", "nodes", "allocated_tres", "step", "processor"]
    for row, step in zip(accounting(controller, number, *columns), ("", "batch"), strict=True):
        assert row[:4] == [str(number), "FAILED", [3, 0], "n1"]
        assert row[4].startswith("cpu=1,mem=")
        assert row[5] == step
        assert (row[6] is None) is (step == "")
    assert requests.script(controller, str(number)).startswith(b"#!/bin/sh\necho out")


def test_job_gets_the_variables_of_its_submission(
    controller: Controller, shared_cluster: SmallCluster
) -> None:
    job = JobToSubmit(
        b"#!/bin/sh\necho $OWN $SLURM_SUBMIT_DIR $SLURM_SUBMIT_HOST $SLURM_CPUS_PER_TASK",
        {"output": "variables", "cpus-per-task": "1"},
        controller.directory,
        environment=[b"OWN=mine", b"SLURM_JOB_ID=7"],
        host="login",
    )
    assert requests.wait(controller, requests.submit(controller, job).job) == 0
    expected = f"mine {controller.directory} login 1\n"
    assert (shared_cluster.directory / "variables").read_text() == expected


def test_job_of_a_process_and_processes_of_a_job(controller: Controller) -> None:
    number = submit(controller, "exec sleep 1000", nodelist="n1")
    wait_for_state(controller, number, "RUNNING")
    (process,) = controller.request("processes", job=str(number))["processes"]
    pid = process.pop("pid")
    assert process == {"job": number, "step": "batch", "local": 0, "rank": 0}
    assert controller.request("job-of-process", pid=pid)["job"] == str(number)
    assert controller.request("job-of-process", pid=1)["job"] is None
    assert requests.change_jobs(controller, "notify", [str(number)], text="soon")[0].error is None
    state, resident = accounting(controller, number, "state", "resident")[1]
    assert (state, resident[1]) == ("RUNNING", "n1")
    requests.change_jobs(controller, "cancel", [str(number)])
    assert requests.wait(controller, number) != 0


def wait_for_state(controller: Controller, number: int, state: str) -> None:
    wait_until(lambda: job(controller, number, "state", "flag") == [state, ""], f"{number} {state}")


def test_usage_of_jobs_on_two_nodes_is_counted_on_each(controller: Controller) -> None:
    script = "(ulimit -t 1; while :; do :; done)"  # one CPU second
    jobs = {node: submit(controller, script, nodelist=node) for node in ("n1", "n2")}
    for node, number in jobs.items():
        requests.wait(controller, number)
        _, step = accounting(controller, number, "nodes", "total_cpu", "processor")
        nodes, milliseconds, processor = step
        assert (nodes, processor[1]) == (node, node)
        assert 500 <= milliseconds < 1_500  # the limit counts clock ticks


def test_only_the_last_run_of_a_requeued_job_is_accounted(controller: Controller) -> None:
    number = submit(controller, '[ "$SLURM_RESTART_COUNT" = 1 ] || exec sleep 1000')
    wait_for_state(controller, number, "RUNNING")
    (result,) = requests.change_jobs(controller, "requeue", [str(number)])
    assert result.error is None
    assert requests.wait(controller, number) == 0
    for duplicates, states in ((False, ["COMPLETED"]), (True, ["REQUEUED", "COMPLETED"])):
        matching = {"jobs": [str(number)], "duplicates": duplicates}
        rows = requests.rows(controller, "accounting", ["state"], matching=matching).rows
        assert rows == [[state] for state in states]


def test_answer_that_is_too_long_is_refused(controller: Controller) -> None:
    number = submit(controller, hold="", array="0-999", comment="x" * 4_000)
    with pytest.raises(InvalidInput, match="the answer would be a frame of"):
        requests.rows(controller, "jobs", ["comment"] * 5, matching={"tasks": True})
    requests.change_jobs(controller, "cancel", [str(number)])


def test_changes_by_scontrol_are_shown(controller: Controller) -> None:
    number = submit(controller, hold="", time="10")
    (result,) = requests.change_jobs(
        controller, "update-job", [str(number)], fields={"TimeLimit": "+5", "Nice": "9"}
    )
    assert result.error is None
    assert job(controller, number, "limit", "nice") == [900, 9]
    (result,) = requests.change_jobs(
        controller, "update-job", [str(number)], fields={"Colour": "x"}
    )
    assert isinstance(result.error, InvalidInput)
    requests.change_jobs(controller, "cancel", [str(number)])
    controller.request("update-node", nodes="n2", fields={"State": "DRAIN", "Reason": "a disk"})
    columns = ["state", "reason", "reason_user"]
    shown = requests.rows(controller, "nodes", columns, matching={"nodes": ["n2"]}).rows
    assert shown == [["IDLE+DRAIN", "a disk", getpass.getuser()]]
    controller.request("update-node", nodes="n2", fields={"State": "RESUME"})
    fields = {"StartTime": "now+1hour", "Duration": "60", "Users": "root", "NodeCnt": "1"}
    name = controller.request("create", entity="reservation", fields=fields)["name"]
    controller.request(
        "update", entity="reservation", fields={"ReservationName": name, "Duration": "120"}
    )
    shown = requests.rows(controller, "reservations", ["name", "nodes", "users"]).rows
    assert shown == [[name, "n1", "root"]]
    for unknown in ("nobody_like_this", "-root"):
        with pytest.raises(NotFound, match="there is no user"):
            controller.request("create", entity="reservation", fields={**fields, "Users": unknown})
    controller.request("delete", entity="reservation", fields={"ReservationName": name})
    with pytest.raises(NotFound):
        controller.request("delete", entity="reservation", fields={"ReservationName": name})


def test_cancel_by_filter_takes_only_what_fits(controller: Controller) -> None:
    first = submit(controller, hold="", job_name="a")
    second = submit(controller, hold="", job_name="b", array="1-3")
    results = requests.change_jobs(
        controller, "cancel", [], filter={"names": ["b"], "states": ["PENDING"]}
    )
    assert [(result.job, result.error) for result in results] == [(f"{second}_[1-3]", None)]
    assert job(controller, first, "state") == ["PENDING"]
    with pytest.raises(InvalidInput, match="no job is named"):
        requests.change_jobs(controller, "cancel", [])
    requests.change_jobs(controller, "cancel", [str(first)])


def test_results_name_each_job_and_its_error(controller: Controller) -> None:
    number = submit(controller, hold="")
    results = requests.change_jobs(controller, "release", [str(number), "99999", "x"])
    assert [result.job for result in results] == [str(number), "99999", "x"]
    assert [type(result.error) for result in results] == [type(None), NotFound, InvalidInput]
    requests.wait(controller, number)
    (result,) = requests.change_jobs(controller, "hold", [str(number)])
    assert isinstance(result.error, Conflict)


def test_rows_come_in_pages_without_repetition(controller: Controller) -> None:
    number = submit(controller, hold="", array="0-999")
    extra = [submit(controller, hold="") for _ in range(3)]
    wanted = {"jobs": [str(number), *map(str, extra)], "tasks": True}
    fields: dict[str, Any] = {"of": "jobs", "columns": ["job_id", "task"], "filter": wanted}
    first = controller.request("rows", **fields)
    assert (len(first["rows"]), first["after"] is None) == (1_000, False)
    second = controller.request("rows", **fields, after=first["after"])
    assert second["rows"] == [[one, None] for one in extra]
    rows = requests.rows(controller, "jobs", ["task"], matching=wanted).rows
    assert rows == [[task] for task in range(1_000)] + [[None]] * 3
    requests.change_jobs(controller, "cancel", [str(number), *map(str, extra)])


def test_unchanged_rows_are_not_sent_again(controller: Controller) -> None:
    number = submit(controller, hold="")
    before = requests.rows(controller, "jobs", ["job_id"])
    assert requests.rows(controller, "jobs", ["job_id"], change=before.change).rows is None
    requests.change_jobs(controller, "cancel", [str(number)])
    assert requests.rows(controller, "jobs", ["job_id"], change=before.change).rows is not None


@pytest.mark.parametrize(
    ("of", "columns", "rows"),
    [
        (
            "nodes",
            ["name", "state", "partitions"],
            [["n1", "IDLE", "main"], ["n2", "IDLE", "main"]],
        ),
        ("partitions", ["name", "nodes", "is_default"], [["main", "n[1-2]", True]]),
        ("reservations", ["name"], []),
        ("licenses", ["name"], []),
    ],
    ids=["nodes", "partitions", "reservations", "licenses"],
)
def test_rows_of_the_machine(
    controller: Controller, of: str, columns: list[str], rows: list[list[object]]
) -> None:
    assert requests.rows(controller, of, columns).rows == rows


def test_rows_of_nodes_have_what_their_hosts_tell(controller: Controller) -> None:
    columns = ["arch", "system", "version", "free_memory", "boot", "daemon_start"]
    rows = requests.rows(controller, "nodes", columns, matching={"nodes": ["n1"]}).rows
    assert rows is not None
    arch, system, version, free, boot, start = rows[0]
    assert (arch, system.split()[0], version) == (platform.machine(), "Linux", __version__)
    assert free > 0
    assert 0 < boot < start


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"of": "jobs", "columns": ["bake"]}, "columns"),
        ({"of": "jobs", "columns": ["job_id"], "after": "x"}, "after"),
        ({"of": "jobs", "columns": ["job_id"], "filter": {"jobs": ["x"]}}, "job"),
        ({"of": "jobs", "columns": ["job_id"], "filter": {"colour": ["x"]}}, "request"),
        ({"of": "cakes", "columns": ["job_id"]}, "request"),
    ],
    ids=["column", "cursor", "job", "filter", "kind"],
)
def test_unknown_names_in_rows_are_refused(
    controller: Controller, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        controller.request("rows", **fields)
    assert refused.value.field == field


def test_refused_submission_names_the_option(controller: Controller) -> None:
    for options, field in (({"x11": "all"}, "--x11"), ({"nodes": "99"}, "nodes")):
        with pytest.raises(FairbankError) as refused:
            submit(controller, **options)
        assert refused.value.field == field


def test_test_only_tells_the_start_and_stores_nothing(controller: Controller) -> None:
    before = requests.rows(controller, "jobs", ["job_id"]).rows
    answer = requests.submit(
        controller,
        JobToSubmit(b"#!/bin/sh\n", {"test-only": "", "ntasks": "2"}, controller.directory),
    )
    assert answer.start is not None
    assert (answer.nodes, answer.cpus, answer.partition) == (["n1"], 2, "main")
    assert requests.rows(controller, "jobs", ["job_id"]).rows == before


@pytest.mark.parametrize(
    "tag", sorted(BODIES.keys() - {"requeue", "shutdown", "update", "update-node"})
)
def test_every_request_has_an_answer_or_a_reason(controller: Controller, tag: str) -> None:
    try:
        controller.request(tag, seconds=60.0, **BODIES[tag])
    except FairbankError as error:
        assert "bug" not in error.message
        assert error.remedy


# --- what is no request ---


def send(directory: Path, *data: bytes) -> list[Frame]:
    """Send data on a connection of its own, and return the frames that come back until it ends."""
    decoder, frames = FrameDecoder(), list[Frame]()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(directory / "controller.sock"))
        for piece in data:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        while received := connection.recv(65_536):
            frames += decoder.decode(received)
    return frames


def frame(body: object, number: int = 7) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return encode_frame(Frame(REQUEST, number, data))


PING = {"request": "ping", "version": 1}
DEEP = b'{"request":"ping","version":1,"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}"


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (frame(b"no JSON"), "cannot read the request"),
        (frame(DEEP), "cannot read the request"),
        (frame({**PING, "version": 2}), "not version 2"),
        (frame({**PING, "loud": True}), "unknown field `loud`"),
        (frame({"request": "bake", "version": 1}), "bake"),
        (encode_frame(Frame(20, 7, b"{}")), "kind 20"),
        (struct.pack("!IBI", BODY_MAX + 1, REQUEST, 7), "a frame of"),
    ],
    ids=["no JSON", "deep", "version", "field", "request", "kind", "too long"],
)
def test_bad_frame_gets_an_error_and_the_controller_lives_on(
    controller: Controller, shared_cluster: SmallCluster, data: bytes, part: str
) -> None:
    (answer,) = send(shared_cluster.directory, data)
    assert answer.kind == ERROR
    assert part in json.loads(answer.body)["message"]
    assert controller.request("ping")["pid"] == shared_cluster.controller.pid


def test_connection_goes_on_after_a_bad_request(shared_cluster: SmallCluster) -> None:
    answers = send(shared_cluster.directory, frame(b"{", 1), frame(PING, 2)[:5], frame(PING, 2)[5:])
    assert {answer.number: answer.kind for answer in answers} == {1: 62, 2: 61}


def test_frame_that_is_cut_short_is_dropped(
    controller: Controller, shared_cluster: SmallCluster
) -> None:
    assert send(shared_cluster.directory, frame(PING)[:-1]) == []
    assert controller.request("ping")["host"] == socket.gethostname()


def test_idle_connections_make_space_for_new_ones(
    controller: Controller, shared_cluster: SmallCluster
) -> None:
    number = submit(controller, hold="")
    with ExitStack() as stack:

        def connect() -> socket.socket:
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(shared_cluster.directory / "controller.sock"))
            return connection

        waiting = connect()
        waiting.sendall(frame({"request": "wait", "version": 1, "job": number}))
        first, *_ = [connect() for _ in range(CONNECTIONS_MAX + 100)]
        with Controller(shared_cluster.directory) as other:
            assert other.request("ping")["pid"] == shared_cluster.controller.pid
            assert first.recv(1) == b""
            requests.change_jobs(other, "cancel", [str(number)])
        assert waiting.recv(9) != b""


def resident(pid: int) -> int:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(kib) // 1_024


def test_ten_thousand_idle_connections_stop_no_other(shared_cluster: SmallCluster) -> None:
    before = resident(shared_cluster.controller.pid)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        with ExitStack() as stack:
            # Fewer where this process may not have so many files.
            for _ in range(min(10_000, limits[1] - 200)):
                connection = stack.enter_context(socket.socket(socket.AF_UNIX))
                connection.connect(str(shared_cluster.directory / "controller.sock"))
            with Controller(shared_cluster.directory) as other:
                assert requests.wait(other, submit(other)) == 0
            assert resident(shared_cluster.controller.pid) < before + 50
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_commands_that_do_not_read_stop_no_other(
    controller: Controller, shared_cluster: SmallCluster
) -> None:
    """Requests of megabytes of answers that stay unread: the controller stops reading them."""
    request = frame({"request": "rows", "version": 1, "of": "nodes", "columns": ["name"] * 400})
    before = resident(shared_cluster.controller.pid)
    with ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(shared_cluster.directory / "controller.sock"))
            connection.setblocking(False)
            sent = 0
            with pytest.raises(BlockingIOError):
                while sent < 200_000_000:
                    sent += connection.send(request * 20)
        assert controller.request("ping")["pid"] == shared_cluster.controller.pid
        # Each has at most the unread answers of its socket, and of `UNREAD_MAX`.
        assert resident(shared_cluster.controller.pid) < before + 20 * 8
