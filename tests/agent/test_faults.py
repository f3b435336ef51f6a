"""What goes wrong around the agent, with real processes: itself killed, the bank away, the disk full, everything said thrice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from fairbank.agent.protocol.messages import Ack, Verdict
from tests.agent.conftest import SU, Centre
from tests.agent.plugin import ACCOUNT, Plugin, asks, ends, limits
from tests.agent.running import RunningAgent, agent_at
from tests.support.conditions import wait_until
from tests.support.server import FAIRBANK
from tests.support.small_disk import fill, small_disk

pytestmark = pytest.mark.slow

MUCH = 1_000_000 * SU


@contextmanager
def frozen(centre: Centre) -> Iterator[None]:
    """The bank takes connections and says nothing."""
    os.kill(centre.server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(centre.server.pid, signal.SIGCONT)


def test_an_agent_killed_with_questions_open_asks_the_bank_again_by_itself(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    with frozen(centre):
        numbers = plugin.say(*(asks(job) for job in range(1, 51)))
        wait_until(
            lambda: plugin.hear() and agent.status()["prologs_waiting"] == 50,
            "the questions to be heard",
        )
        plugin.settle(ends(99))  # noted, so that what was heard before it is on the disk
        agent.kill()
        plugin.hang_up()
        agent.start()
    agent.wait_until_empty()
    assert centre.sums(allocation) == (SU, 50 * SU)
    plugin.connect()
    assert {each.action for each in plugin.wait(numbers) if isinstance(each, Verdict)} == {"run"}
    assert centre.sums(allocation) == (SU, 50 * SU)


def test_open_lets_run_and_reports_later(centre: Centre) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    with (
        agent_at(centre.address, tables='[terms]\noutage_policy = "open"\npatience = 0.2') as agent,
        Plugin(agent.socket) as plugin,
    ):
        centre.server.kill()
        assert plugin.verdict(asks(1)).action == "run"
        assert plugin.verdict(asks(2)).action == "run"
        plugin.settle(ends(2, 600), limits(1, 7_200))
        assert agent.status()["verdicts"] == {"open: run": 2}
        shown = agent.command("agent", "status")
        assert shown.returncode == 8
        assert "away since" in shown.stdout
        centre.server.start()
        agent.wait_until_empty()
        assert centre.sums(allocation) == (10, 2 * SU)


def test_closed_puts_off_and_calls_the_plug_in_again_when_the_bank_is_back(centre: Centre) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    tables = '[terms]\npatience = 0.2\n[partitions.gpu]\noutage_policy = "open"'
    with agent_at(centre.address, tables=tables) as agent, Plugin(agent.socket) as plugin:
        centre.server.kill()
        said = plugin.verdict(asks(1))
        assert (said.action, said.reason) == ("hold", "Fairbank_does_not_answer")
        assert plugin.verdict(asks(2, partition="gpu")).action == "run"
        plugin.settle(ends(1, 0, begun=False, state="REQUEUED"), ends(2, partition="gpu"))
        centre.server.start()
        wait_until(
            lambda: not plugin.hear(),
            "the agent to hang up, so that the plug-in releases what was put off",
        )
        plugin.connect()
        assert plugin.verdict(asks(1, run=asks(1).run._replace(restart=1))).action == "run"
        agent.wait_until_empty()
        assert centre.sums(allocation) == (0, SU)


def test_credit_lets_run_what_the_last_known_balance_pays(centre: Centre) -> None:
    centre.project(ACCOUNT, 3 * SU)
    with (
        agent_at(
            centre.address, tables='[terms]\noutage_policy = "credit"\npatience = 0.2'
        ) as agent,
        Plugin(agent.socket) as plugin,
    ):
        assert plugin.verdict(asks(1)).action == "run"
        agent.stop()  # what it knows survives it
        centre.server.kill()
        agent.start()
        plugin.connect()
        assert [plugin.verdict(asks(job)).action for job in (2, 3, 4)] == ["run", "run", "hold"]


def test_everything_said_thrice_and_over_many_connections_counts_once(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    jobs = range(1, 31)
    for told in (
        [asks(job) for job in jobs],
        [limits(job, 7_200) for job in jobs],
        [ends(job, 1_200) for job in jobs],
    ):
        for _ in range(3):
            plugin.settle(*told, *told, *told)
            plugin.connect()
    agent.wait_until_empty()
    assert centre.sums(allocation) == (30 * 20, 0)
    assert len(centre.jobs()) == 30


def test_more_than_memory_holds_waits_on_the_disk_and_survives_a_kill(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    centre.server.kill()
    jobs = range(1, 6_001)
    for first in range(0, len(jobs), 1_000):
        plugin.settle(*(ends(job, 60) for job in jobs[first : first + 1_000]))
    outbox = agent.status()["outbox"]
    assert outbox["reports"] == 6_000
    assert outbox["on_disk_only"] > 1_000
    agent.kill()
    agent.start()
    assert agent.status()["outbox"]["reports"] == 6_000
    centre.server.start()
    agent.wait_until_empty(seconds=60)
    assert centre.sums(allocation) == (6_000, 0)


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A disk of a quarter of a megabyte."""
    with small_disk(tmp_path / "small", "256k") as folder:
        yield folder


def test_a_full_disk_stops_nothing_while_the_bank_answers(centre: Centre, tmpfs: Path) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    with (
        agent_at(centre.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        fill(tmpfs)
        jobs = range(1, 501)
        said = plugin.settle(*(asks(job, tres="cpu=1," + "x" * 200) for job in jobs))
        assert {each.action for each in said if isinstance(each, Verdict)} == {"run"}
        assert all(
            isinstance(each, Ack) for each in plugin.settle(*(ends(job, 60) for job in jobs))
        )
        assert "the outbox cannot be written: database or disk is full; free space" in agent.said()
        wait_until(lambda: centre.sums(allocation) == (500, 0), "all to be charged")
        assert agent.command("agent", "status").returncode == 8


def test_with_a_full_disk_and_no_bank_nothing_is_acknowledged_until_there_is_room(
    centre: Centre, tmpfs: Path
) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    with (
        agent_at(centre.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        fill(tmpfs)
        centre.server.kill()
        numbers = plugin.say(*(ends(job, 60) for job in range(1, 1_001)))
        wait_until(
            lambda: plugin.hear() and agent.status()["outbox"]["error"], "the disk to be full"
        )
        unheard = plugin.unanswered
        assert unheard > 0
        (tmpfs / "filler").unlink()
        grow(tmpfs)
        plugin.wait(numbers)
        agent.kill()
        agent.start()
        centre.server.start()
        agent.wait_until_empty()
        assert centre.sums(allocation) == (1_000, 0)


def test_what_waits_on_a_full_disk_goes_as_soon_as_the_bank_answers(
    centre: Centre, tmpfs: Path
) -> None:
    """No room has to come back for that: what is not needed any more makes it."""
    allocation = centre.project(ACCOUNT, MUCH)
    with (
        agent_at(centre.address, outbox=tmpfs / "outbox.sqlite") as agent,
        Plugin(agent.socket) as plugin,
    ):
        centre.server.kill()
        numbers = plugin.say(*(ends(job, 60) for job in range(1, 1_001)))
        wait_until(
            lambda: plugin.hear() and agent.status()["outbox"]["error"], "the disk to be full"
        )
        fill(tmpfs)
        centre.server.start()
        plugin.wait(numbers)
        agent.wait_until_empty()
        wait_until(
            lambda: agent.status()["outbox"]["error"] is None, "the outbox to be written again"
        )
        assert centre.sums(allocation) == (1_000, 0)


def grow(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)


def test_an_orderly_end_loses_nothing(centre: Centre, agent: RunningAgent, plugin: Plugin) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    centre.server.kill()
    plugin.settle(*(ends(job, 60) for job in range(1, 101)))
    agent.stop()
    agent.start()
    centre.server.start()
    agent.wait_until_empty()
    assert centre.sums(allocation) == (100, 0)


def test_a_bank_killed_again_and_again_charges_everything_once(
    centre: Centre, agent: RunningAgent, plugin: Plugin
) -> None:
    allocation = centre.project(ACCOUNT, MUCH)
    for round_ in range(4):
        jobs = range(round_ * 200 + 1, round_ * 200 + 201)
        plugin.say(*(ends(job, 60, billing=Fraction(2)) for job in jobs))
        wait_until(lambda: plugin.hear() and plugin.unanswered < 150, "some to be noted")
        centre.server.kill()
        centre.server.start()
    agent.wait_until_empty()
    assert centre.sums(allocation) == (1_600, 0)
    assert centre.server.command("audit", "verify").returncode == 0


def test_two_agents_cannot_share_an_outbox(centre: Centre, agent: RunningAgent) -> None:
    other = RunningAgent(centre.address, outbox=agent.outbox)
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
