"""Bank that accepts every request and answers none during a whole run: the partitions' outage
policy decides, and Slurm never waits for the bank.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.agent.running_agent import RunningAgent
from tests.slurm.accounting_audit import words_of
from tests.slurm.bank_cluster import Office, opened
from tests.slurm.conftest import Tell
from tests.slurm.faulty_socket import Mood, RequestMischief
from tests.slurm.lab.cluster import Cluster
from tests.slurm.load import Haste, Look, told
from tests.slurm.prep_cluster import PATIENCE as PLUGIN_PATIENCE
from tests.slurm.prep_cluster import build, socket_of
from tests.slurm.test_charged_runs import wait_for_accounting
from tests.support.conditions import wait_until
from tests.support.server import made

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

PATIENCE = 8  # seconds that a question of a job waits for the bank; less than the plug-in's own
BANK_TIMEOUT = 120.0
TERMS = f"""
[terms]
patience = {PATIENCE}
[partitions.cpu]
patience = {PATIENCE}
outage_policy = "open"
[partitions.gpu]
patience = {PATIENCE}
outage_policy = "closed"
"""
ROUNDS, JOBS, LEAST = 3, 6, 3
assert PATIENCE < PLUGIN_PATIENCE


@dataclass
class Stage:
    """Full stack with a proxy between agent and bank."""

    office: Office
    hole: RequestMischief


@pytest.fixture
def stage(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[Stage]:
    cluster.calm()
    plugin = build(checkout, tmp_path / "plugins")
    with made() as bank:
        proxy = RequestMischief(tmp_path / "bank.sock", bank.socket, random.Random(1))
        agent = RunningAgent(
            f"unix:{proxy.path}",
            tables=TERMS,
            socket=socket_of(cluster),
            slurm_user='"slurm"',
            timeout=BANK_TIMEOUT,
        )
        proxy.start()
        try:
            with opened(cluster, plugin, bank, agent) as office:
                yield Stage(office, proxy)
                cluster.calm()
        finally:
            proxy.mood = Mood.CALM
            proxy.stop()


def test_slurm_does_not_wait_for_a_silent_bank(stage: Stage, tell: Tell) -> None:
    office, slurm, proxy = stage.office, stage.office.slurm, stage.hole
    since = float(int(time.time()))
    proxy.mood = Mood.MUTE
    polls: list[Look] = []
    running, deferred = [], []
    for number in range(ROUNDS):
        running += (held := [slurm.submit("alice", "--hold", "--time=5") for _ in range(JOBS)])
        deferred.append(
            slurm.submit("carol", "--hold", "--time=5", "--partition=gpu", "--gres=gpu:1")
        )
        slurm.root("scontrol", "release", ",".join(map(str, [*held, deferred[-1]])))
        wait_until(lambda: _open(office), "a job to ask", seconds=60)
        new_polls = _looks_while_nobody_is_answered(office)
        assert len(new_polls) >= LEAST, (
            f"round {number}: squeue was answered {len(new_polls)} times while jobs waited for the"
            " bank"
        )
        polls += new_polls
        wait_until(lambda: not _open(office), "the partitions' policy to decide", seconds=60)
    for job in running:
        slurm.wait_for(job, "COMPLETED", seconds=120)
    for job in deferred:
        wait_until(partial(_is_put_off, slurm, job), "the job to be put off")
    assert proxy.done[Mood.MUTE.value] > 0, "the agent has asked"
    assert office.rows("/job") == []
    assert all(poll.answered for poll in polls)
    tell(
        f"bank silent for {time.time() - since:.0f} s, {len(running)} jobs run and"
        f" {len(deferred)} deferred; squeue meanwhile: {told(polls)}"
    )

    proxy.mood = Mood.CALM
    for job in running:
        (job_run,) = office.settled(job)
        assert job_run["state"] in ("charged", "released")
    haste = Haste(slurm)
    for job in deferred:
        wait_until(partial(_is_over, slurm, job, haste), f"job {job} to run at last", seconds=120)
    wait_for_accounting(office, since)
    office.agent.wait_until_empty()
    reconciled = office.reconciled("--starttime", words_of(since))
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert office.bank.command("audit", "verify").returncode == 0


def _is_put_off(slurm: Cluster, job: int) -> bool:
    return slurm.job(job).get("Reason") == "Fairbank_does_not_answer"


def _is_over(slurm: Cluster, job: int, haste: Haste) -> bool:
    haste.see_to_it()
    return slurm.states(job) == ["COMPLETED"]


def _open(office: Office) -> int:
    """Return the number of jobs that wait for a verdict of the agent."""
    return int(office.agent.status()["prologs_waiting"])


def _looks_while_nobody_is_answered(office: Office) -> list[Look]:
    """Poll with squeue until a job gets a verdict; return the polls that ended before. If slurmctld
    waited for the bank or the agent, there would be none.
    """
    polls: list[Look] = []
    verdicts = office.agent.status()["verdicts"]
    while True:
        begun = time.monotonic()
        answered = (
            office.slurm.run("root", "squeue", "--noheader", seconds=BANK_TIMEOUT / 2).code == 0
        )
        poll = Look(begun, time.monotonic(), answered)
        status = office.agent.status()
        if status["verdicts"] != verdicts or not status["prologs_waiting"]:
            return polls
        polls.append(poll)
