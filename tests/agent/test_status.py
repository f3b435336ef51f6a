"""Status of the agent as text, as JSON and as Prometheus metrics."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import msgspec
import pytest

from fairbank.cli.commands.slurm.agent import LINES
from fairbank.cli.framework.exit_codes import FOUND
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, Plugin, epilog_event, prolog_request
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


def page(agent: RunningAgent, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(20)
        wire.connect(str(agent.control))
        wire.sendall(request)
        answer = b""
        while more := wire.recv(65_536):
            answer += more
    return answer


def test_status_as_text_and_as_json(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    site.project(ACCOUNT, 2 * SU)
    plugin.verdict(prolog_request(1))
    plugin.verdict(prolog_request(2))
    plugin.verdict(prolog_request(3))
    plugin.exchange(epilog_event(1, 60))
    agent.wait_until_empty()
    shown = agent.command("agent", "status")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert lines.keys() <= set(LINES), "a heading that --helpformat does not explain"
    assert lines["slurmctld"] == "connected: 22.05.8 of cluster local"
    assert lines["bank"].startswith("answers since 20")
    assert lines["outbox"] == "0 reports wait; 0 of them on disk only"
    assert lines["senders"].endswith("(1 to 4), 0 busy")
    assert lines["prologs"] == "0 waiting; verdicts: granted 2, refused 1"
    assert lines["holds"] == "granted 2, refused 1"
    assert lines["ends"] == "granted 1"
    answer = json.loads(agent.command("agent", "status", "--json").stdout)
    assert (answer["schema"], answer["warnings"]) == ("fairbank.agent-status/1", [])
    status = answer["data"]
    assert {row["verdict"]: row["count"] for row in status["verdicts"]} == {
        "granted": 2,
        "refused": 1,
    }
    assert status["outbox"]["reports"] == 0


def test_cluster_that_the_bank_does_not_know_is_shown_with_its_remedy(
    site: Site, agent: RunningAgent
) -> None:
    end = epilog_event(1)
    with Plugin(agent.socket, "renamed") as plugin:
        plugin.exchange(msgspec.structs.replace(end, run=end.run._replace(cluster="renamed")))
        wait_until(lambda: agent.status()["denied"], "an answer of the bank")
        shown = agent.command("agent", "status")
    assert shown.returncode == FOUND
    lines = " ".join(shown.stdout.split())
    assert "bank answers since 20" in lines
    assert "1 reports of cluster renamed are set aside since 20" in lines
    assert "try: add [clusters.renamed] to the bank's settings" in lines
    assert site.server.command("jobs", "--refused", "-P", "-n").stdout == ""


def test_release_is_off_by_default_and_shows_errors(site: Site, agent: RunningAgent) -> None:
    assert agent.status()["release"] is None
    with agent_at(site.address, tables="[release]\nwhen_paid = true\nevery = 0.1\n") as wanting:
        wait_until(lambda: wanting.status()["release"]["error"], "squeue not to be had", seconds=60)
        assert "jobs that can be paid now are not released: " in wanting.log_text()
        lines = wanting.command("agent", "status").stdout
        assert "released   0 jobs that were held for lack of credit" in lines
        assert "stopped for now: " in lines


def test_status_without_agent_has_a_remedy(agent: RunningAgent) -> None:
    agent.stop()
    shown = agent.command("agent", "status")
    assert shown.returncode == 6
    assert "no agent answers at" in shown.stderr
    assert "fairbank agent" in shown.stderr


def assert_bank_not_reachable(agent: RunningAgent, line: str, *, contacted: bytes) -> None:
    """Assert that command and metrics show a bank that is not reachable."""
    shown = agent.command("agent", "status")
    assert shown.returncode == FOUND
    assert line in shown.stdout
    metrics = page(agent, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert b"fairbank_agent_bank_contacted " + contacted in metrics
    assert b"fairbank_agent_bank_up 0.0" in metrics


def test_bank_is_not_probed_before_a_plugin_connects(agent: RunningAgent) -> None:
    assert_bank_not_reachable(agent, "bank       not contacted yet", contacted=b"0.0")


def test_status_shows_a_bank_that_is_down_before_a_job_starts(tmp_path: Path, site: Site) -> None:
    late = tmp_path / "late.sock"
    with agent_at(f"unix:{late}") as waiting, Plugin(waiting.socket).connect():
        wait_until(
            lambda: waiting.status()["bank"]["reachable"] is False, "the status to show the outage"
        )
        assert_bank_not_reachable(waiting, "bank       down since 20", contacted=b"1.0")
        assert "late.sock" in waiting.log_text()
        late.symlink_to(site.server.socket)
        wait_until(lambda: waiting.status()["bank"]["reachable"], "the bank to be reachable")
        assert waiting.command("agent", "status").returncode == 0


def test_metrics_have_the_format_of_prometheus(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    site.project(ACCOUNT, 2 * SU)
    plugin.verdict(prolog_request(1))
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
def test_bad_requests_harm_nothing(agent: RunningAgent, request_: bytes, status: bytes) -> None:
    assert page(agent, request_)[9:12] == status
    assert agent.status()["bank"]["reachable"] is None
