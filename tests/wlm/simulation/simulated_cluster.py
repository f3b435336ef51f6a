"""Simulated cluster: the real controller between simulated nodes, an agent and a bank."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairbank.bank.run import RESOLVED
from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError
from fairbank.wlm.controller import clock, core_runner, planner, state_store
from fairbank.wlm.controller.daemon import ControllerDaemon
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter, StateStore
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.state import CoreState
from tests.agent.bank import InProcessBank
from tests.agent.plugin import ACCOUNT, CLUSTER, PARTITION
from tests.wlm.cluster.test_kills import check_cores
from tests.wlm.core.world import submission
from tests.wlm.simulation.simulated_agent import SimulatedAgent
from tests.wlm.simulation.simulated_node import CPUS, SimulatedNode
from tests.wlm.simulation.virtual_loop import VirtualLoop, VirtualTime

NODES = ("n1", "n2", "n3")
SETTINGS = f"""
[cluster]
cluster_name = "{CLUSTER}"
return_to_service = 2
slurmd_timeout = 30
min_job_age = 65533

[jobs]
kill_wait = 1

[bank]
agent = "{{agent}}"
without_agent = "hold"

[[nodes]]
node_name = "n[1-3]"
cpus = {CPUS}
real_memory = 1000

[[partitions]]
partition_name = "{PARTITION}"
nodes = "ALL"
default = true
default_time = "10:00"
"""
_REST_SECONDS = 3_600


class SimulatedCluster:
    """Cluster of a simulation. `accepted` are the jobs of which a user learned the number.

    `controller` is None while it is dead. Its own clients end with it.
    """

    def __init__(
        self, folder: Path, loop: VirtualLoop, credit: int, patch: pytest.MonkeyPatch
    ) -> None:
        self.loop, self.time, self._folder = loop, VirtualTime(loop), folder
        for module in (clock, core_runner, planner, state_store):
            patch.setattr(module, "time", self.time)
        loop.check_call = self._check_call
        (folder / "nodes").mkdir(mode=0o700)
        (folder / "wlm.toml").write_text(SETTINGS.format(agent=folder / "agent.sock"))
        self.bank = InProcessBank(credit)
        self.agent = SimulatedAgent(folder, self.bank, loop, self.time)
        self.nodes = [
            SimulatedNode(name, str(folder / "nodes" / f"{name}.sock"), loop, self.time, self._cpus)
            for name in NODES
        ]
        self.has_full_disk = False
        self.accepted: set[int] = set()
        self.controller: ControllerDaemon | None = None
        self._main: asyncio.Task[None] | None = None
        self._clients: set[asyncio.Task[Any]] = set()

    @property
    def random(self) -> Random:
        return self.loop.random

    def _check_call(self, function: Any) -> None:
        if self.has_full_disk and function.__name__ == "write":
            raise sqlite3.OperationalError("database or disk is full")

    def _cpus(self, run: Run, node: str) -> int:
        job = None if self.controller is None else self.controller.runner.state.job_of(run)
        grants = () if job is None or job.run is None else job.run.allocation.grants
        return sum(grant.cpus for grant in grants if grant.binding.node == node)

    # ------------------------------------------------------------------ the controller

    def start(self) -> None:
        self.controller = ControllerDaemon(self._folder)
        self._main = self.loop.create_task(self.controller.run(lambda: None))

    async def kill(self) -> None:
        """Kill the controller: what it has not committed is lost."""
        assert self._main is not None
        tasks = [*self._clients, self._main]
        self.controller = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def until_dead(self, work: Coroutine[Any, Any, None]) -> None:
        """Do some work, and kill the controller at its end or failure."""
        try:
            await work
        finally:
            if self.controller is not None:
                await self.kill()

    @property
    def state(self) -> CoreState:
        assert self.controller is not None
        return self.controller.runner.state

    # ------------------------------------------------------------------ users

    def client(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a user make a request, which is lost with the controller."""

        async def run() -> None:
            with suppress(FairbankError):
                await work

        task = self.loop.create_task(run())
        self._clients.add(task)
        task.add_done_callback(self._end_client)

    def _end_client(self, task: asyncio.Task[Any]) -> None:
        self._clients.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.loop.failures.append({"exception": error})

    async def submit(self, seconds: float, status: int, **fields: Any) -> None:
        """Submit a job whose script takes some seconds and has a wait status at its end."""
        assert self.controller is not None
        runner = self.controller.runner
        key = await runner.put_content(f"#!/bin/sh\n# {seconds} {status}".encode())
        caller = ev.Caller(1000, "alice")
        body = submission(caller, script=key, account=ACCOUNT, **fields)
        answer: Any = await runner.request(caller, body)
        self.accepted.add(answer.number)

    async def request(self, body: ev.RequestBody) -> None:
        assert self.controller is not None
        await self.controller.runner.request(ev.Caller(0, "root"), body)

    # ------------------------------------------------------------------ checks

    def check(self) -> None:
        """Check what must hold at any time: no failure anywhere, and no core has two jobs."""
        for context in self.loop.failures:
            raise AssertionError(context.get("message")) from context.get("exception")
        for name in NODES if self.controller is not None else ():
            cores: Counter[int] = Counter()
            for job in self.state.jobs_on(name):
                grants = () if job.run is None else job.run.allocation.grants
                for grant in grants:
                    if grant.binding.node == name:
                        cores.update(grant.binding.cores)
            assert all(count == 1 for count in cores.values()), f"W1: {name}"

    async def settle(self) -> None:
        """Wait until all jobs have ended and the bank knows it."""
        until = self.loop.time() + _REST_SECONDS
        while not self._is_at_rest():
            assert self.loop.time() < until, self._open_work()
            await asyncio.sleep(1)
            self.check()

    def _is_at_rest(self) -> bool:
        if self.controller is None or self._clients or not self.agent.is_idle:
            return False
        has_ended = all(job.state.is_final for job in self.state.jobs.values())
        has_runs = any(node.runs for node in self.nodes)
        return has_ended and not self.state.messages and not has_runs

    def _open_work(self) -> str:
        jobs = [job for job in self.state.jobs.values() if not job.state.is_final]
        runs = [run.status for node in self.nodes for run in node.runs.values()]
        kinds = [(message.kind, message.run.run) for message in self.state.messages.values()]
        shown = [(job.name, job.state.value, job.reason) for job in jobs]
        return f"not at rest: {shown}, {kinds}, {runs}, clients: {len(self._clients)}"

    def check_at_rest(self) -> None:
        """Check by the disk what must hold when all has ended; the controller must be dead."""
        store = StateStore(self._folder / state_store.STATE_FILE)
        runs = store.ended_runs(RunFilter(limit=100_000))
        store.close()
        self._check_ends(runs)
        check_cores(runs)
        self._check_bank(runs)

    def _check_ends(self, runs: list[AccountedRun]) -> None:
        """Check W4 and W2: a final record for each job, one for each run, and a begin for it."""
        records = [run.record for run in runs]
        final = Counter(record.identity.job_id for record in records if record.state != "REQUEUED")
        arrays = {record.request.array or record.request.number for record in records}
        assert self.accepted <= arrays, "W4: a job has no record"
        assert all(final[record.identity.job_id] for record in records), "W4: no final record"
        counts = Counter(record.identity for record in records)
        assert set(counts.values()) <= {1}, "W4: two records"
        begun = {run for node in self.nodes for run in node.begun}
        assert begun <= counts.keys(), "W2: a run began that has no record"
        for record in records:
            if record.state == "COMPLETED":
                assert record.identity in begun, "W2: a run completed that never began"

    def _check_bank(self, runs: list[AccountedRun]) -> None:
        """Check W5: what ran is charged once, by its seconds, and nothing is held."""
        assert self.bank.is_sound()
        assert self.bank.sums()[1] == 0, "W5: a hold is open"
        rows = {row.reported.run: row for row in self.bank.runs()}
        for run in runs:
            row, own = rows.pop(run.record.identity, None), run.record.run
            seconds = 0
            if own is not None and own.started is not None and own.ended is not None:
                seconds = own.ended.mono - own.started.mono
            if row is None:
                assert not seconds, f"W5: {run.record.identity} is not charged"
                continue
            assert row.state in RESOLVED
            assert own is not None
            cost = -(-own.allocation.tres["cpu"] * seconds // 60)
            assert row.charged + row.written_off == cost, f"W5: {row}, {own}"
        assert rows == {}, "W5: a run that is in no accounting"
