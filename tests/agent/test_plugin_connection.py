"""Connections that are not slurmctld's, and bad frames: a log line, a closed connection, and no
effect on others.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairbank.agent.plugin_connection import CONNECTIONS_MAX
from fairbank.agent.protocol import VERSION, Greeting, Welcome, encode
from fairbank.wlm.controller.plugin_codec import encode_plugin_message
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, CLUSTER, Plugin, epilog_event, prolog_request
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.server import run_bank

pytestmark = pytest.mark.slow

NOT_THE_PROTOCOL = "this is not the plug-in's protocol: "
HELLO = encode_plugin_message(Greeting(version=VERSION, slurm="22.05.8", cluster=CLUSTER))
QUESTION = encode_plugin_message(prolog_request(1))


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


GARBAGE = {
    "an endless frame": b"\xff\xff\xff\xff",
    "an oversized frame": HELLO + frame(b"x" * 16_385),
    "nothing in a frame": HELLO + frame(b""),
    "no hello": QUESTION,
    "another version": frame(b"hello\nversion=9\nslurm=22.05.8\ncluster=c\n"),
    "two hellos": HELLO + HELLO,
    "an unknown kind": HELLO + frame(b"give me root\n"),
    "no UTF-8": HELLO + frame(b"prolog\nnumber=\xff\n"),
    "a key twice": HELLO + frame(b"prolog\nnumber=1\nnumber=2\n"),
    "not understood before the hello": frame(b"prolog\nnumber=1\n"),
    "a number of its own making": HELLO + frame(b"prolog\nnumber=1e3\n"),
    "an answer": HELLO + frame(encode(Welcome())[4:]),
    "a web browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Site, RunningAgent]]:
    with run_bank() as server:
        site = Site(server)
        site.project(ACCOUNT, 1_000 * SU)
        with agent_at(site.address) as agent:
            yield site, agent


def open_socket(agent: RunningAgent) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(str(agent.socket))
    wire.settimeout(20)  # not before: connect() would fail while many wait to be accepted
    return wire


def incident(agent: RunningAgent, kind: str) -> dict[str, Any]:
    """Return the incidents of this kind in its status."""
    return next(
        (dict(incident) for incident in agent.status()["incidents"] if incident["kind"] == kind),
        {"count": 0},
    )


def is_closed(wire: socket.socket) -> bool:
    """Return whether the peer closes the connection."""
    try:
        while wire.recv(4_096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_logged_and_closes_the_connection(
    shared: tuple[Site, RunningAgent], garbage: bytes
) -> None:
    _, agent = shared
    before = agent.log_text().count(NOT_THE_PROTOCOL)
    with open_socket(agent) as wire:
        wire.sendall(garbage)
        assert is_closed(wire)
    wait_until(lambda: agent.log_text().count(NOT_THE_PROTOCOL) == before + 1, "a line in the log")
    assert f"process {os.getpid()} of uid {os.geteuid()}: {NOT_THE_PROTOCOL}" in agent.log_text()
    record = incident(agent, "bad connection")
    assert record["count"] > before
    assert record["text"].startswith(
        f"process {os.getpid()} of uid {os.geteuid()}: {NOT_THE_PROTOCOL}"
    )
    assert "Traceback" not in agent.log_text()
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(1)).action == "run"


def test_split_frame_is_read_and_truncated_one_dropped(shared: tuple[Site, RunningAgent]) -> None:
    _, agent = shared
    with Plugin(agent.socket) as plugin:
        data = encode_plugin_message(prolog_request(2, number=77))
        for piece in (data[:3], data[3:50], data[50:]):
            plugin.send_raw(piece)
        plugin.wait([77])
        plugin.send_raw(encode_plugin_message(epilog_event(2, number=78))[:-10])
    wait_until(
        lambda: "closed the connection within a frame" in agent.log_text(), "a line in the log"
    )
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(3)).action == "run"


def test_truncated_hello_is_an_incident_and_truncated_frame_is_not(
    shared: tuple[Site, RunningAgent],
) -> None:
    """Ignore a truncated frame of a killed slurmctld: its successor sends everything again."""
    _, agent = shared
    before, dropped = (
        incident(agent, "bad connection")["count"],
        agent.log_text().count("closed the connection within a frame"),
    )
    for data in (HELLO[:9], HELLO + QUESTION[:9]):
        with open_socket(agent) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            assert is_closed(wire)
    wait_until(
        lambda: agent.log_text().count("closed the connection within a frame") == dropped + 2,
        "two lines in the log",
    )
    record = incident(agent, "bad connection")
    assert (record["count"], record["text"].rpartition(": ")[2]) == (
        before + 1,
        "closed the connection within a frame",
    )


def test_only_slurm_user_and_root_may_connect(shared: tuple[Site, RunningAgent]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    _, agent = shared
    agent.folder.chmod(0o755)
    for _ in range(3):
        os.seteuid(65_534)
        try:
            wire = open_socket(agent)
        finally:
            os.seteuid(0)
        with wire:
            assert is_closed(wire)
    record = incident(agent, "rejected user")  # the log has one line of the three
    assert (record["count"], record["text"]) == (
        3,
        "connection from uid 65534 rejected: only SlurmUser and root may connect",
    )
    assert record["since"] <= record["last"] <= time.time()
    wait_until(
        lambda: (
            "connection from uid 65534 rejected: only SlurmUser and root may connect"
            in agent.log_text()
        ),
        "a line in the log",
    )
    assert "set plugin.slurm_user" in agent.log_text()


def test_connections_beyond_the_limit_are_closed(shared: tuple[Site, RunningAgent]) -> None:
    _, agent = shared
    wires = [open_socket(agent) for _ in range(CONNECTIONS_MAX + 1)]
    try:
        assert is_closed(wires[-1])
        assert "plug-ins are connected already" in agent.log_text()
    finally:
        for wire in wires:
            wire.close()
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(4)).action == "run"


def test_peer_that_reads_no_answers_is_not_read_from(shared: tuple[Site, RunningAgent]) -> None:
    _, agent = shared
    with open_socket(agent) as wire:
        wire.setblocking(False)
        wire.sendall(HELLO)
        requests = encode_plugin_message(prolog_request(1)) * 200
        taken = 0
        for _ in range(100_000):
            try:
                taken += wire.send(requests)
            except BlockingIOError:
                if "does not read its answers" in agent.log_text():
                    break
        assert taken < 200 * 1024 * 1024
        with Plugin(agent.socket) as plugin:
            assert plugin.verdict(prolog_request(5)).action == "run"
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(6)).action == "run"
