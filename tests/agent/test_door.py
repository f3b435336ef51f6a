"""Whoever is not slurmctld, and whatever is no frame: a clear line in the log, the connection closed, nothing stuck."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairbank.agent.protocol.codec import encode
from fairbank.agent.protocol.messages import VERSION, Greeting, Welcome
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, CLUSTER, Plugin, asks, ends
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.plugin_codec import encode_plugin_message
from tests.support.server import banking

pytestmark = pytest.mark.slow

NOT_THE_PROTOCOL = "this is not the plug-in's protocol: "
HELLO = encode_plugin_message(Greeting(version=VERSION, slurm="22.05.8", cluster=CLUSTER))
QUESTION = encode_plugin_message(asks(1))


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
def shared() -> Iterator[tuple[Centre, RunningAgent]]:
    with banking() as server:
        centre = Centre(server)
        centre.project(ACCOUNT, 1_000 * SU)
        with agent_at(centre.address) as agent:
            yield centre, agent


def connected(agent: RunningAgent) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(20)
    wire.connect(str(agent.socket))
    return wire


def incident(agent: RunningAgent, kind: str) -> dict[str, Any]:
    """Return the incidents of this kind in its status."""
    return next(
        (dict(each) for each in agent.status()["incidents"] if each["kind"] == kind), {"count": 0}
    )


def is_closed(wire: socket.socket) -> bool:
    """Whether the other end is closed, whatever was said before."""
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
    shared: tuple[Centre, RunningAgent], garbage: bytes
) -> None:
    _, agent = shared
    before = agent.said().count(NOT_THE_PROTOCOL)
    with connected(agent) as wire:
        wire.sendall(garbage)
        assert is_closed(wire)
    wait_until(lambda: agent.said().count(NOT_THE_PROTOCOL) == before + 1, "a line in the log")
    assert f"process {os.getpid()} of uid {os.geteuid()}: {NOT_THE_PROTOCOL}" in agent.said()
    told = incident(agent, "bad connection")
    assert told["count"] > before
    assert told["text"].startswith(
        f"process {os.getpid()} of uid {os.geteuid()}: {NOT_THE_PROTOCOL}"
    )
    assert "Traceback" not in agent.said()
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(asks(1)).action == "run"


def test_a_frame_in_two_pieces_is_one_and_a_truncated_one_is_dropped(
    shared: tuple[Centre, RunningAgent],
) -> None:
    _, agent = shared
    with Plugin(agent.socket) as plugin:
        said = encode_plugin_message(asks(2, number=77))
        for piece in (said[:3], said[3:50], said[50:]):
            plugin.send_raw(piece)
        plugin.wait([77])
        plugin.send_raw(encode_plugin_message(ends(2, number=78))[:-10])
    wait_until(lambda: "closed the connection within a frame" in agent.said(), "a line in the log")
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(asks(3)).action == "run"


def test_a_hello_that_breaks_off_is_garbage_and_a_plug_ins_broken_frame_is_not(
    shared: tuple[Centre, RunningAgent],
) -> None:
    """A slurmctld that was killed while it spoke says all of it again, and nobody need look at it."""
    _, agent = shared
    before, dropped = (
        incident(agent, "bad connection")["count"],
        agent.said().count("closed the connection within a frame"),
    )
    for said in (HELLO[:9], HELLO + QUESTION[:9]):
        with connected(agent) as wire:
            wire.sendall(said)
            wire.shutdown(socket.SHUT_WR)
            assert is_closed(wire)
    wait_until(
        lambda: agent.said().count("closed the connection within a frame") == dropped + 2,
        "two lines in the log",
    )
    told = incident(agent, "bad connection")
    assert (told["count"], told["text"].rpartition(": ")[2]) == (
        before + 1,
        "closed the connection within a frame",
    )


def test_only_slurmctld_and_root_may_speak(shared: tuple[Centre, RunningAgent]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    _, agent = shared
    agent.folder.chmod(0o755)
    for _ in range(3):
        os.seteuid(65_534)
        try:
            wire = connected(agent)
        finally:
            os.seteuid(0)
        with wire:
            assert is_closed(wire)
    told = incident(agent, "rejected user")  # the log has one line of the three
    assert (told["count"], told["text"]) == (
        3,
        "connection from uid 65534 rejected: only SlurmUser and root may connect",
    )
    assert told["since"] <= told["last"] <= time.time()
    wait_until(
        lambda: (
            "connection from uid 65534 rejected: only SlurmUser and root may connect"
            in agent.said()
        ),
        "a line in the log",
    )
    assert "set plugin.slurm_user" in agent.said()


def test_too_many_plug_ins_are_sent_away(shared: tuple[Centre, RunningAgent]) -> None:
    _, agent = shared
    wires = [connected(agent) for _ in range(9)]
    try:
        assert is_closed(wires[-1])
        assert "plug-ins are connected already" in agent.said()
    finally:
        for wire in wires:
            wire.close()
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(asks(4)).action == "run"


def test_a_plug_in_that_reads_nothing_is_not_listened_to_for_ever(
    shared: tuple[Centre, RunningAgent],
) -> None:
    _, agent = shared
    with connected(agent) as wire:
        wire.setblocking(False)
        wire.sendall(HELLO)
        asked = encode_plugin_message(asks(1)) * 200
        taken = 0
        for _ in range(100_000):
            try:
                taken += wire.send(asked)
            except BlockingIOError:
                if "does not read its answers" in agent.said():
                    break
        assert taken < 200 * 1024 * 1024
        with Plugin(agent.socket) as plugin:
            assert plugin.verdict(asks(5)).action == "run"
    with Plugin(agent.socket) as plugin:
        assert plugin.verdict(asks(6)).action == "run"
