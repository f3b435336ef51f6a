"""Tests of the controller's parts: clocks, state store, settings of the core."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import Corrupt
from fairbank.core.tres import parse_weights
from fairbank.priority.limits.usage import LimitRecord
from fairbank.unix_users import user_name
from fairbank.wlm.controller.clock import ClockReading, ControllerClock, Timers
from fairbank.wlm.controller.commands.account_lines import shown_accounts
from fairbank.wlm.controller.commands.figures import statistics
from fairbank.wlm.controller.configuration import dropped_rows, read_settings, stored_state
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.state_store import CommitData, RunFilter, StateStore, digest
from fairbank.wlm.core.controller import Core
from fairbank.wlm.core.effects import SetTimer, StoredRow
from fairbank.wlm.core.events import CancelJob, NodeRegistered, TimerFired, TimerKind, UpdateNode
from fairbank.wlm.core.settings import AccountingSettings, BankLink, WlmSettings
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.steps.step import StepUsage, WlmStep
from fairbank.wlm.protocol.messages import RunOutcome, RunUsage
from tests.support.conditions import wait_until
from tests.wlm.config.files import MACHINE_TOML
from tests.wlm.core.world import ALICE, OPERATOR, World, named, submission


def test_clock_for_limits_goes_on_over_a_boot() -> None:
    first = ControllerClock(None).reading()
    later = first.mono + 1_000_000
    booted = ControllerClock(ClockReading("an earlier boot", 1_000_000, later))
    assert booted.now().mono - later in (0, 1)


def test_clock_for_limits_counts_the_time_without_a_controller() -> None:
    last = ControllerClock(None).reading()
    earlier = last._replace(since_boot=last.since_boot - 100, mono=5_000)
    assert ControllerClock(earlier).now().mono - 5_100 in (0, 1)


def test_both_clocks_begin_a_second_together() -> None:
    clock = ControllerClock(None)
    first = clock.now()
    moments = [first]

    def has_changed() -> bool:
        moments.append(clock.now())
        return moments[-1].wall != first.wall

    wait_until(has_changed, "the next second")
    assert len({moment.wall - moment.mono for moment in moments}) == 1


def test_timers_fire_once_each_on_their_clock() -> None:
    async def run() -> list[TimerFired]:
        fired: list[TimerFired] = []
        clock, done = ControllerClock(ClockReading("an earlier boot", 0, 500)), asyncio.Event()

        def fire(timer: TimerFired) -> None:
            fired.append(timer)
            if len(fired) == 2:
                done.set()

        timers = Timers(clock, fire)
        timers.set(SetTimer(TimerKind.BEGIN, 1, int(time.time()) + 3_600))
        for _ in range(2):
            timers.set(SetTimer(TimerKind.LIMIT, 3, 500))
        timers.set(SetTimer(TimerKind.DEADLINE, 2, int(time.time())))
        async with asyncio.timeout(20):
            await done.wait()
        timers.clear()
        return fired

    fired = asyncio.run(run())
    assert {*fired} == {TimerFired(TimerKind.LIMIT, 3), TimerFired(TimerKind.DEADLINE, 2)}
    assert len(fired) == 2


def test_stored_state_is_what_the_core_had(tmp_path: Path) -> None:
    world = World()
    world.submit(array="0-3", dependency="singleton")
    world.run_one()
    path, clock = tmp_path / "state.sqlite", ControllerClock(None).reading()
    rows = [
        StoredRow(table, str(key), value)
        for table, values in world.core.state.tables.items()
        for key, value in values.items()
    ]
    weights = parse_weights("CPU=1.5,Mem=0.3G")
    rows.append(StoredRow("partitions", "priced", PartitionRules(name="priced", weights=weights)))
    store = StateStore(path)
    # The last row of a key counts, and so does a deletion.
    gone = [StoredRow("messages", "99", rows[0].value), StoredRow("messages", "99", None)]
    store.write(CommitData([StoredRow("counters", "job", 1), *rows, *gone], {}, {}), clock)
    store.close()
    store = StateStore(path)
    assert sorted(store.rows(), key=lambda row: row[:2]) == sorted(rows, key=lambda row: row[:2])
    assert store.clock() == clock
    store.close()


def test_accounting_is_found_by_job_array_and_end(tmp_path: Path) -> None:
    world = World()
    array = world.submit(array="0-1")
    world.settle()
    world.answer_prologs()
    world.begin_all()
    for job in list(world.core.state.jobs):
        world.end(job, 256)
    one = world.run_one()
    world.advance(60)
    world.end(one)
    store, clock = StateStore(tmp_path / "state.sqlite"), ControllerClock(None).reading()
    rows = [StoredRow("runs", key, record) for key, record in world.accounting.items()]
    outcome = RunOutcome(cause="exit", status=0, ended=1.5, usage=RunUsage(cpu_seconds=2.5))
    run = next(
        record.identity for record in world.accounting.values() if record.identity.job_id == one
    )
    store.write(CommitData([], {}, {run: outcome}), clock)  # it may come before the record
    store.write(CommitData(rows, {}, {Run("lab", 99, 1): outcome}), clock)
    store.write(CommitData(rows, {}, {}), clock)  # a repetition changes nothing

    def jobs(selection: RunFilter) -> list[int]:
        return [run.record.request.number for run in store.ended_runs(selection)]

    assert len(jobs(RunFilter())) == 3
    assert jobs(RunFilter(jobs=(one,))) == [one]
    assert len(jobs(RunFilter(jobs=(array,)))) == 2
    assert jobs(RunFilter(start=world.now.wall)) == [one]
    assert jobs(RunFilter(after=2)) == [one]
    read = [to_builtins(run.outcome) for run in store.ended_runs(RunFilter())]
    assert read == [None, None, to_builtins(outcome)]
    store.close()


def test_usage_that_comes_after_the_record_of_a_step_counts_once(tmp_path: Path) -> None:
    world = World()
    job = world.run_one(nodes=2, cpus=4)
    step = world.step(job)
    assert isinstance(step, WlmStep)
    world.end_step(step, "n0", usage=RunUsage(cpu_seconds=1, resident_max_kib=5))
    world.request(CancelJob(named(job)))
    late = [
        StepUsage(step.key, node, RunUsage(cpu_seconds=2, resident_max_kib=4))
        for node in ("n0", "n1")  # the first one repeats what the record has
    ]
    store, clock = StateStore(tmp_path / "state.sqlite"), ControllerClock(None).reading()
    rows = [
        *(StoredRow("ended_steps", key, record) for key, record in world.ended_steps.items()),
        *(StoredRow("step_usages", f"{one.step}.{one.node}", one) for one in late * 2),
    ]
    store.write(CommitData(rows, {}, {}), clock)
    (record,) = store.ended_steps([step.run])
    assert (record.step.usage.cpu_seconds, record.step.usage.resident_max_kib) == (3, 5)
    assert list(store.rows()) == []
    store.close()


def test_only_scripts_without_a_job_are_deleted(tmp_path: Path) -> None:
    store, clock = StateStore(tmp_path / "state.sqlite"), ControllerClock(None).reading()
    contents = {digest(text): text for text in (b"used", b"unused")}
    store.write(CommitData([], contents, {}), clock)
    store.remove_contents({digest(b"used")}, before=0)
    assert store.content(digest(b"unused")) == b"unused"
    store.remove_contents({digest(b"used")}, before=int(time.time()) + 10)
    assert store.content(digest(b"used")) == b"used"
    with pytest.raises(Corrupt, match="is missing"):
        store.content(digest(b"unused"))
    store.close()


def test_agent_learns_of_no_message_before_its_commit(tmp_path: Path) -> None:
    async def run() -> None:
        settings = WlmSettings(
            bank=BankLink(socket="/run/agent.sock"),
            nodes=(Node(name="n0", cpus=4, memory=1_000),),
            partitions=(PartitionRules(name="main", is_default=True),),
        )
        runner = CoreRunner(settings, StateStore(tmp_path / "state.sqlite"))
        accepted = asyncio.create_task(runner.request(ALICE, submission()))
        async with asyncio.timeout(20):
            while not accepted.done():
                await asyncio.sleep(0)
                await runner.flush()
            runner.handle(NodeRegistered(settings.nodes[0], "boot"))  # the job can start now
            while not runner.state.messages:
                await asyncio.sleep(0.01)
        assert not runner.stored_messages
        await runner.flush()
        assert runner.stored_messages == runner.state.messages
        before = runner.state.messages
        runner.close()
        again = CoreRunner(settings, StateStore(tmp_path / "state.sqlite"))
        assert again.stored_messages == before
        again.close()

    asyncio.run(run())


def test_count_of_backfill_goes_on_after_a_reconfiguration(tmp_path: Path) -> None:
    async def run() -> None:
        runner = CoreRunner(WlmSettings(), StateStore(tmp_path / "state.sqlite"))
        runner.state.backfilled = 2
        runner.replace_core(Core(WlmSettings()), [])
        assert statistics(runner, 0)["bf_backfilled_jobs"] == 2
        runner.close()

    asyncio.run(run())


def test_user_of_the_daemons_is_an_operator(tmp_path: Path) -> None:
    (tmp_path / "wlm.toml").write_text('operators = ["olga"]\n' + MACHINE_TOML)
    settings = read_settings(tmp_path).settings
    assert settings.operators == {"olga", user_name(os.geteuid())}


@pytest.mark.parametrize("needed", [False, True])
def test_associations_count_where_they_are_enforced(needed: bool) -> None:
    records = {("bio", "alice", ""): LimitRecord(name="bio", user="alice", parent="bio")}
    accounting = AccountingSettings(associations=records, needs_association=needed)
    state = CoreState(WlmSettings(accounting=accounting))
    assert state.accounts.associations == (records if needed else {})
    assert shown_accounts(state).associations == records


def test_reconfiguration_takes_weights_of_nodes_from_the_file_again() -> None:
    world = World(nodes=2)
    world.request(UpdateNode("n1", weight=5, comment="new"), OPERATOR)
    settings = WlmSettings(nodes=tuple(node.resources for node in world.nodes.values()))
    state = world.core.state
    changed = replace(state.nodes["n1"], weight=None)
    assert StoredRow("nodes", "n1", changed) in list(stored_state(state, settings))
    assert [row for row in dropped_rows(state, settings) if row.table == "nodes"] == [
        StoredRow("nodes", "n1", changed)
    ]
