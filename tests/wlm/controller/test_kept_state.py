"""State file of version 4, whose records have no fields at their defaults. A new field without a
default, or a table of another form, fails here.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.usage import QosLimits
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.wlm.controller.state_store import RunFilter, StateStore
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import AgentMessage, CoreEffect, Send
from fairbank.wlm.core.jobs import HeldBy, Moment
from fairbank.wlm.core.settings import AccountingSettings, BankLink, DaemonSettings, WlmSettings
from fairbank.wlm.core.snapshot import pass_snapshot
from tests.support.golden import GOLDEN
from tests.wlm.core.world import run_status

NOW = Moment(1_700_000_400, 450)
NODES = tuple(Node(name=name, cpus=4, memory=1_000) for name in ("n0", "n1"))
SETTINGS = WlmSettings(
    cluster=DaemonSettings(cluster_name="lab"),
    accounting=AccountingSettings(
        enforced=Enforced(limits=True), qos={"night": QosLimits(name="night")}
    ),
    bank=BankLink(socket="agent", server="bank"),
    nodes=NODES,
    partitions=(PartitionRules(name="main", is_default=True, partition_qos="night"),),
)
RUNNING, ARRAY, HELD, CONFIGURING = 2, 3, 4, 5


def test_kept_state_is_read_and_its_jobs_go_on(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript((GOLDEN / "stores" / "state-4.sql").read_text())
    store = StateStore(path)
    core = Core(SETTINGS)

    def handle(event: ev.CoreEvent) -> list[CoreEffect]:
        return core.handle(event, NOW)

    effects = core.load(store.rows(), NOW)
    (ended,) = store.ended_runs(RunFilter())
    store.close()
    assert (ended.record.request.number, ended.record.state) == (1, "COMPLETED")
    assert ended.outcome is not None
    assert (ended.outcome.usage.cpu_seconds, ended.outcome.usage.resident_max_kib) == (58.25, 4096)
    messages = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [one.kind for one in messages if isinstance(one, AgentMessage)] == ["prolog"]
    state = core.state
    assert (set(state.partitions), set(state.reservations)) == ({"main", "short"}, {"maint"})
    assert state.jobs[HELD].request.licenses == {"ansys": 2}
    assert state.reservations["maint"].licenses == {"ansys": 1}
    assert ended.record.request.licenses == {"ansys": 3}
    runs = {number: job.run for number, job in state.jobs.items()}
    running, starting = runs[RUNNING], runs[CONFIGURING]
    assert running is not None
    assert starting is not None
    for node in NODES:
        known = (run_status(running.run, "running"),)
        handle(ev.NodeRegistered(node, "boot 1", known))
    handle(ev.VerdictGiven(4, starting.run, "run", "", ""))
    for name in running.left:
        handle(ev.RunChanged(name, run_status(running.run, "cleared")))
    handle(ev.PlanMade(run_passes(pass_snapshot(state, NOW), SchedulerParameters(), NOW.wall)))
    tasks = [job for job in state.jobs.values() if job.request.array == ARRAY]
    assert [(job.state.base, job.tasks) for job in tasks] == [("PENDING", (1, 2)), ("RUNNING", ())]
    shown = {number: (job.state.value, job.held_by) for number, job in state.jobs.items()}
    assert shown[RUNNING] == ("COMPLETED", None)
    assert shown[HELD] == ("PENDING", HeldBy.USER)
    assert shown[CONFIGURING] == ("RUNNING CONFIGURING", None)
    assert state.usage["bio alice "].wall > 300
    assert state.qos_usage["night"].wall == pytest.approx(100, rel=1e-3)
