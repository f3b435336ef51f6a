"""What the agent tells of itself: to people, to programs, to Prometheus."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from fairbank.cli.framework.exit_codes import FOUND
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


def page(agent: RunningAgent, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(20)
        wire.connect(str(agent.control))
        wire.sendall(request)
        said = b""
        while more := wire.recv(65_536):
            said += more
    return said


def test_status_in_words_and_as_json(centre: Centre, agent: RunningAgent, plugin: Plugin) -> None:
    centre.project(ACCOUNT, 2 * SU)
    plugin.verdict(asks(1))
    plugin.verdict(asks(2))
    plugin.verdict(asks(3))
    plugin.settle(ends(1, 60))
    agent.wait_until_empty()
    shown = agent.command("agent", "status")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert lines["slurmctld"] == "connected: 22.05.8 of cluster local"
    assert lines["bank"].startswith("answers since 20")
    assert lines["outbox"] == "0 reports wait; 0 of them on disk only"
    assert lines["senders"].endswith("(1 to 4), 0 busy")
    assert lines["prologs"] == "0 waiting; verdicts: granted 2, refused 1"
    assert lines["holds"] == "granted 2, refused 1"
    assert lines["ends"] == "granted 1"
    told = json.loads(agent.command("agent", "status", "--json").stdout)
    assert told["verdicts"] == {"granted": 2, "refused": 1}
    assert told["outbox"]["reports"] == 0


def test_releasing_is_off_unless_wanted_and_its_troubles_are_told(
    centre: Centre, agent: RunningAgent
) -> None:
    assert agent.status()["release"] is None
    with agent_at(centre.address, tables="[release]\nwhen_paid = true\nevery = 0.1\n") as wanting:
        wait_until(lambda: wanting.status()["release"]["error"], "squeue not to be had", seconds=60)
        assert "jobs that can be paid now are not released: " in wanting.said()
        lines = wanting.command("agent", "status").stdout
        assert "released   0 jobs that were held for lack of credit" in lines
        assert "no more just now: " in lines


def test_nobody_there_is_told_with_the_remedy(agent: RunningAgent) -> None:
    agent.stop()
    shown = agent.command("agent", "status")
    assert shown.returncode == 6
    assert "no agent answers at" in shown.stderr
    assert "fairbank agent" in shown.stderr


def assert_told(agent: RunningAgent, line: str, *, asked: bytes) -> None:
    """That no bank answers is told by the command, with this line, and by the metrics."""
    shown = agent.command("agent", "status")
    assert shown.returncode == FOUND
    assert line in shown.stdout
    metrics = page(agent, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert b"fairbank_agent_bank_contacted " + asked in metrics
    assert b"fairbank_agent_bank_up 0.0" in metrics


def test_a_bank_is_not_asked_before_a_plugin_has_said_for_which_cluster(
    agent: RunningAgent,
) -> None:
    assert_told(agent, "bank       not asked yet", asked=b"0.0")


def test_a_bank_that_is_not_there_is_told_before_a_job_wants_it_and_found_when_it_is(
    tmp_path: Path, centre: Centre
) -> None:
    late = tmp_path / "late.sock"
    with agent_at(f"unix:{late}") as waiting, Plugin(waiting.socket).connect():
        wait_until(
            lambda: waiting.status()["bank"]["reachable"] is False,
            "that nobody answers to be known",
        )
        assert_told(waiting, "bank       away since 20", asked=b"1.0")
        assert "late.sock" in waiting.said()
        late.symlink_to(centre.server.socket)
        wait_until(lambda: waiting.status()["bank"]["reachable"], "the bank to be found")
        assert waiting.command("agent", "status").returncode == 0


def test_metrics_in_prometheus_own_words(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    centre.project(ACCOUNT, 2 * SU)
    plugin.verdict(asks(1))
    head, _, body = page(agent, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"text/plain; version=0.0.4" in head
    for line in (
        b'fairbank_agent_verdicts_total{result="granted"} 1.0',
        b"fairbank_agent_bank_up 1.0",
        b"fairbank_agent_verdict_seconds_count 1.0",
    ):
        assert line in body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /status HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /health HTTP/1.1\r\n\r\n", b"200"),
        (b"GET /" + b"x" * 20_000 + b"\r\n\r\n", b""),
        (b"\x00\xff\r\n\r\n", b"405"),
    ],
)
def test_whatever_is_asked_there_harms_nothing(
    agent: RunningAgent, request_: bytes, status: bytes
) -> None:
    assert page(agent, request_)[9:12] == status
    assert agent.status()["bank"]["reachable"] is None
