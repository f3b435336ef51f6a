"""Faults with real processes: killed agent, bank that is down, full disk, repeated messages."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from fairbank.agent.protocol import Ack, Verdict
from tests.agent.conftest import SU, Site
from tests.agent.plugin import ACCOUNT, Plugin, epilog_event, limit_event, prolog_request
from tests.agent.running_agent import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK
from tests.support.small_disk import fill, small_disk

pytestmark = pytest.mark.slow

MUCH = 1_000_000 * SU


@contextmanager
def frozen(site: Site) -> Iterator[None]:
    """Pause the bank's process during the block: it accepts connections and does not answer."""
    os.kill(site.server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(site.server.pid, signal.SIGCONT)


def test_killed_agent_sends_open_requests_again(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    with frozen(site):
        numbers = plugin.send(*(prolog_request(job) for job in range(1, 51)))
        wait_until(
            lambda: plugin.receive() and agent.status()["prologs_waiting"] == 50,
            "the requests to arrive",
        )
        plugin.exchange(epilog_event(99))  # acknowledged, so earlier messages are on disk
        agent.kill()
        plugin.hang_up()
        agent.start()
    agent.wait_until_empty()
    assert site.sums(allocation) == (SU, 50 * SU)
    plugin.connect()
    assert {answer.action for answer in plugin.wait(numbers) if isinstance(answer, Verdict)} == {
        "run"
    }
    assert site.sums(allocation) == (SU, 50 * SU)


def test_open_policy_runs_and_reports_later(site: Site) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    with (
        agent_at(site.address, tables='[terms]\noutage_policy = "open"\npatience = 0.2') as agent,
        Plugin(agent.socket) as plugin,
    ):
        site.server.kill()
        assert plugin.verdict(prolog_request(1)).action == "run"
        assert plugin.verdict(prolog_request(2)).action == "run"
        plugin.exchange(epilog_event(2, 600), limit_event(1, 7_200))
        assert agent.status()["verdicts"] == {"open: run": 2}
        shown = agent.command("agent", "status")
        assert shown.returncode == 8
        assert "down since" in shown.stdout
        site.server.start()
        agent.wait_until_empty()
        assert site.sums(allocation) == (10, 2 * SU)


def test_closed_policy_defers_and_reconnects_when_the_bank_is_back(site: Site) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    tables = '[terms]\npatience = 0.2\n[partitions.gpu]\noutage_policy = "open"'
    with (
        agent_at(site.address, tables=tables) as agent,
        Plugin(agent.socket) as plugin,
        Plugin(agent.socket, slurm="prolog") as prolog,
    ):
        assert prolog.receive(10), "the agent's welcome"
        site.server.kill()
        verdict = plugin.verdict(prolog_request(1))
        assert (verdict.action, verdict.reason) == ("hold", "Fairbank_does_not_answer")
        assert plugin.verdict(prolog_request(2, partition="gpu")).action == "run"
        plugin.exchange(
            epilog_event(1, 0, begun=False, state="REQUEUED"), epilog_event(2, partition="gpu")
        )
        site.server.start()
        wait_until(
            lambda: not plugin.receive(),
            "the agent to hang up, so that the plug-in releases the deferred jobs",
        )
        assert prolog.receive(), "the agent hung up on a prolog, which waits for a verdict"
        plugin.connect()
        assert (
            plugin.verdict(prolog_request(1, run=prolog_request(1).run._replace(restart=1))).action
            == "run"
        )
        agent.wait_until_empty()
        assert site.sums(allocation) == (0, SU)


def test_only_the_first_job_waits_in_an_outage_and_the_bank_is_found_again_without_reports(
    site: Site,
) -> None:
    site.project(ACCOUNT, MUCH)
    tables = "[terms]\npatience = 3"
    with agent_at(site.address, tables=tables) as agent, Plugin(agent.socket) as plugin:
        assert plugin.verdict(prolog_request(1)).action == "run"
        site.server.kill()
        assert plugin.verdict(prolog_request(2)).action == "hold"
        begin = time.monotonic()
        assert plugin.verdict(prolog_request(3)).action == "hold"
        assert time.monotonic() - begin < 2
        assert agent.status()["outbox"]["reports"] == 0
        site.server.start()
        wait_until(lambda: not plugin.receive(), "the agent to hang up")
        assert agent.status()["bank"]["reachable"]


def test_credit_policy_runs_what_the_last_balance_pays(site: Site) -> None:
    site.project(ACCOUNT, 3 * SU)
    with (
        agent_at(site.address, tables='[terms]\noutage_policy = "credit"\npatience = 0.2') as agent,
        Plugin(agent.socket) as plugin,
    ):
        assert plugin.verdict(prolog_request(1)).action == "run"
        agent.stop()  # its knowledge is on disk
        site.server.kill()
        agent.start()
        plugin.connect()
        assert [plugin.verdict(prolog_request(job)).action for job in (2, 3, 4)] == [
            "run",
            "run",
            "hold",
        ]


def test_repeated_messages_count_once(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    jobs = range(1, 31)
    for messages in (
        [prolog_request(job) for job in jobs],
        [limit_event(job, 7_200) for job in jobs],
        [epilog_event(job, 1_200) for job in jobs],
    ):
        for _ in range(3):
            plugin.exchange(*messages, *messages, *messages)
            plugin.connect()
    agent.wait_until_empty()
    assert site.sums(allocation) == (30 * 20, 0)
    assert len(site.jobs()) == 30


def test_reports_beyond_memory_survive_a_kill(
    site: Site, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    site.server.kill()
    jobs = range(1, 6_001)
    for first in range(0, len(jobs), 1_000):
        plugin.exchange(*(epilog_event(job, 60) for job in jobs[first : first + 1_000]))
    outbox = agent.status()["outbox"]
    assert outbox["reports"] == 6_000
    assert outbox["on_disk_only"] > 1_000
    agent.kill()
    agent.start()
    assert agent.status()["outbox"]["reports"] == 6_000
    site.server.start()
    agent.wait_until_empty(seconds=60)
    assert site.sums(allocation) == (6_000, 0)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """Provide a disk of 256 KiB."""
    with small_disk(tmp_path / "small", "256k") as folder:
        yield folder


def test_full_disk_stops_nothing_while_the_bank_answers(site: Site, tmpfs: Path) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    with (
        agent_at(site.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        fill(tmpfs)
        jobs = range(1, 501)
        answers = plugin.exchange(*(prolog_request(job, tres="cpu=1," + "x" * 200) for job in jobs))
        assert {answer.action for answer in answers if isinstance(answer, Verdict)} == {"run"}
        assert all(
            isinstance(answer, Ack)
            for answer in plugin.exchange(*(epilog_event(job, 60) for job in jobs))
        )
        assert (
            "the outbox cannot be written: database or disk is full; free space" in agent.log_text()
        )
        wait_until(lambda: site.sums(allocation) == (500, 0), "all to be charged")
        assert agent.command("agent", "status").returncode == 8


def test_full_disk_without_bank_acknowledges_nothing(site: Site, tmpfs: Path) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    with (
        agent_at(site.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        fill(tmpfs)
        site.server.kill()
        numbers = plugin.send(*(epilog_event(job, 60) for job in range(1, 1_001)))
        wait_until(
            lambda: plugin.receive() and agent.status()["outbox"]["error"], "the disk to be full"
        )
        unheard = plugin.unanswered
        assert unheard > 0
        (tmpfs / "filler").unlink()
        grow(tmpfs)
        plugin.wait(numbers)
        agent.kill()
        agent.start()
        site.server.start()
        agent.wait_until_empty()
        assert site.sums(allocation) == (1_000, 0)


def test_full_disk_is_emptied_when_the_bank_answers(site: Site, tmpfs: Path) -> None:
    """Delete acknowledged reports without any new space on the disk."""
    allocation = site.project(ACCOUNT, MUCH)
    with (
        agent_at(site.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        site.server.kill()
        numbers = plugin.send(*(epilog_event(job, 60) for job in range(1, 1_001)))
        wait_until(
            lambda: plugin.receive() and agent.status()["outbox"]["error"], "the disk to be full"
        )
        fill(tmpfs)
        site.server.start()
        plugin.wait(numbers)
        agent.wait_until_empty()
        wait_until(
            lambda: agent.status()["outbox"]["error"] is None, "the outbox to be written again"
        )
        assert site.sums(allocation) == (1_000, 0)


def grow(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)


def test_stopped_agent_loses_no_report(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    site.server.kill()
    plugin.exchange(*(epilog_event(job, 60) for job in range(1, 101)))
    agent.stop()
    agent.start()
    site.server.start()
    agent.wait_until_empty()
    assert site.sums(allocation) == (100, 0)


def test_killed_bank_charges_each_run_once(site: Site, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = site.project(ACCOUNT, MUCH)
    for round_ in range(4):
        jobs = range(round_ * 200 + 1, round_ * 200 + 201)
        plugin.send(*(epilog_event(job, 60, billing=Fraction(2)) for job in jobs))
        wait_until(lambda: plugin.receive() and plugin.unanswered < 150, "some to be noted")
        site.server.kill()
        site.server.start()
    agent.wait_until_empty()
    assert site.sums(allocation) == (1_600, 0)
    assert site.server.command("audit", "verify").returncode == 0


def test_two_agents_cannot_share_an_outbox(site: Site, agent: RunningAgent) -> None:
    other = RunningAgent(site.address, outbox=agent.outbox)
    ended = subprocess.run(
        [FAIRBANK, "agent", "--config", str(other.config)],
        env=other.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    other.close()
    assert ended.returncode == 7
    assert "another agent uses the outbox" in ended.stderr
    assert "outbox.path" in ended.stderr
