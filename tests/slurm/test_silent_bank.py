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
from tests.slurm.accounting_audit import slurm_time
from tests.slurm.bank_cluster import BankStack, running_stack
from tests.slurm.conftest import RecordFigure
from tests.slurm.faulty_socket import FaultyRequestProxy, MessageFault
from tests.slurm.lab.cluster import Cluster
from tests.slurm.load import Operator, Poll, describe_polls
from tests.slurm.prep_cluster import PROLOG_TIMEOUT_SECONDS as PLUGIN_TIMEOUT_SECONDS
from tests.slurm.prep_cluster import build, socket_of
from tests.slurm.test_charged_runs import wait_for_accounting
from tests.support.conditions import wait_until
from tests.support.server import create_bank

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

AGENT_TIMEOUT_SECONDS = 8  # the agent's patience with the bank (s); less than the plug-in's
BANK_TIMEOUT = 120.0
TERMS = f"""
[terms]
patience = {AGENT_TIMEOUT_SECONDS}
[partitions.cpu]
patience = {AGENT_TIMEOUT_SECONDS}
outage_policy = "open"
[partitions.gpu]
patience = {AGENT_TIMEOUT_SECONDS}
outage_policy = "closed"
"""
ROUNDS, JOBS, LEAST = 3, 6, 3
assert AGENT_TIMEOUT_SECONDS < PLUGIN_TIMEOUT_SECONDS


@dataclass
class SilentBankStack:
    """Full stack with a proxy between agent and bank."""

    stack: BankStack
    proxy: FaultyRequestProxy


@pytest.fixture
def silent_stack(cluster: Cluster, checkout: Path, tmp_path: Path) -> Iterator[SilentBankStack]:
    cluster.calm()
    plugin = build(checkout, tmp_path / "plugins")
    with create_bank() as bank:
        proxy = FaultyRequestProxy(tmp_path / "bank.sock", bank.socket, random.Random(1))
        agent = RunningAgent(
            f"unix:{proxy.path}",
            tables=TERMS,
            socket=socket_of(cluster),
            slurm_user='"slurm"',
            timeout=BANK_TIMEOUT,
        )
        proxy.start()
        try:
            with running_stack(cluster, plugin, bank, agent) as stack:
                yield SilentBankStack(stack, proxy)
                cluster.calm()
        finally:
            proxy.fault = MessageFault.NONE
            proxy.stop()


def test_slurm_does_not_wait_for_a_silent_bank(
    silent_stack: SilentBankStack, record_figure: RecordFigure
) -> None:
    stack, slurm, proxy = silent_stack.stack, silent_stack.stack.slurm, silent_stack.proxy
    since = float(int(time.time()))
    proxy.fault = MessageFault.SWALLOW
    polls: list[Poll] = []
    running, deferred = [], []
    for number in range(ROUNDS):
        running += (held := [slurm.submit("alice", "--hold", "--time=5") for _ in range(JOBS)])
        deferred.append(
            slurm.submit("carol", "--hold", "--time=5", "--partition=gpu", "--gres=gpu:1")
        )
        before = stack.agent.status()["verdicts"]
        slurm.root("scontrol", "release", ",".join(map(str, [*held, deferred[-1]])))
        if number == 0:  # once these have waited in vain, no other waits
            wait_until(lambda: _open(stack), "a job to ask", seconds=60)
            polls = _polls_before_a_verdict(stack)
            assert len(polls) >= LEAST, f"squeue was answered {len(polls)} times while jobs waited"
        wait_until(partial(_has_decided, stack, before), "the policy to decide", seconds=60)
    for job in running:
        slurm.wait_for(job, "COMPLETED", seconds=120)
    for job in deferred:
        wait_until(partial(_is_deferred, slurm, job), "the job to be deferred")
    assert proxy.done[MessageFault.SWALLOW.value] > 0, "the agent has asked"
    assert stack.rows("/job") == []
    assert all(poll.answered for poll in polls)
    record_figure(
        f"bank silent for {time.time() - since:.0f} s, {len(running)} jobs run and"
        f" {len(deferred)} deferred; squeue meanwhile: {describe_polls(polls)}"
    )

    proxy.fault = MessageFault.NONE
    for job in running:
        (job_run,) = stack.wait_for_closed_runs(job)
        assert job_run["state"] in ("charged", "released")
    operator = Operator(slurm)
    for job in deferred:
        wait_until(
            partial(_is_over, slurm, job, operator), f"job {job} to run at last", seconds=120
        )
    wait_for_accounting(stack, since)
    stack.agent.wait_until_empty()
    reconciled = stack.reconcile("--starttime", slurm_time(since))
    assert reconciled.returncode == 0, reconciled.stdout + reconciled.stderr
    assert stack.bank.command("audit", "verify").returncode == 0


def _is_deferred(slurm: Cluster, job: int) -> bool:
    return slurm.job(job).get("Reason") == "Fairbank_does_not_answer"


def _is_over(slurm: Cluster, job: int, operator: Operator) -> bool:
    operator.start_requeued_jobs()
    return slurm.states(job) == ["COMPLETED"]


def _has_decided(stack: BankStack, before: object) -> bool:
    """Return True if there were verdicts since, and no job waits for one."""
    return stack.agent.status()["verdicts"] != before and not _open(stack)


def _open(stack: BankStack) -> int:
    """Return the number of jobs that wait for a verdict of the agent."""
    return int(stack.agent.status()["prologs_waiting"])


def _polls_before_a_verdict(stack: BankStack) -> list[Poll]:
    """Poll with squeue until a job gets a verdict; return the polls that ended before. If slurmctld
    waited for the bank or the agent, there would be none.
    """
    polls: list[Poll] = []
    verdicts = stack.agent.status()["verdicts"]
    while True:
        begun = time.monotonic()
        answered = (
            stack.slurm.run("root", "squeue", "--noheader", seconds=BANK_TIMEOUT / 2).code == 0
        )
        poll = Poll(begun, time.monotonic(), answered)
        status = stack.agent.status()
        if status["verdicts"] != verdicts or not status["prologs_waiting"]:
            return polls
        polls.append(poll)
