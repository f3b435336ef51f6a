"""Lines of nodes, partitions, reservations and runs: Slurm's parsers read the same back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.node import NodeState
from fairbank.cluster.partition_rules import (
    AccessList,
    OverSubscribe,
    PartitionRules,
    PartitionState,
)
from fairbank.cluster.reservation import Reservation
from fairbank.core.time import Instant
from fairbank.report.slurm import scontrol
from fairbank.report.slurm.layout import cells_of, field_lines, parse_fields
from fairbank.report.slurm.notation import Notation
from fairbank.report.slurm.sacct import SACCT, AccountingLine
from fairbank.slurm.parsers import machine
from fairbank.slurm.parsers.columns import DELIMITER
from fairbank.slurm.parsers.sacct import JOBS
from fairbank.wlm.controller.commands.accounting_lines import ShownRun, live_record
from fairbank.wlm.controller.commands.machine_lines import (
    node_lines,
    partition_lines,
    reservation_lines,
)
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.jobs import EndedRun, WlmJob
from fairbank.wlm.core.node_states import NodeEvent
from tests.wlm.core.world import OPERATOR, START, World, named


def shown(lines: Any, template: Any) -> str:
    return "".join(scontrol.show(line, template, Notation(), is_one_line=True) for line in lines)


RULES = st.builds(
    PartitionRules,
    name=st.sampled_from(["main", "long"]),
    nodes=st.sampled_from([("n0",), ("n0", "n1")]),
    state=st.sampled_from(PartitionState),
    tier=st.integers(0, 100),
    max_seconds=st.none() | st.integers(1, 1_000).map(lambda minutes: minutes * 60),
    default_seconds=st.none() | st.integers(1, 1_000).map(lambda minutes: minutes * 60),
    min_nodes=st.integers(0, 2),
    max_nodes=st.none() | st.integers(2, 9),
    sharing=st.sampled_from(OverSubscribe),
    memory_per_cpu=st.none() | st.integers(1, 1_000),
    accounts=st.none()
    | st.builds(
        AccessList, st.just(("a", "b")), st.just("AccountNotAllowed"), denies=st.booleans()
    ),
    weights=st.none()
    | st.just({"cpu": Fraction(1), "mem": Fraction(1, 4_096), "gres/gpu": Fraction(5, 2)}),
    is_default=st.booleans(),
    factor=st.integers(0, 9),
    grace_seconds=st.integers(0, 99),
)


@given(RULES)
def test_partition_is_read_back(rules: PartitionRules) -> None:
    world = World(rules)
    parsed = machine.read_partition_rules(
        shown(partition_lines(world.core.state), scontrol.PARTITION)
    )
    assert not parsed.unreadable
    (read,) = parsed.rows
    assert read == msgspec.structs.replace(rules, preempted=read.preempted)


@pytest.mark.parametrize(
    ("event", "words", "state"),
    [
        (None, "IDLE", NodeState.UP),
        (NodeEvent.DRAINED, "IDLE+DRAIN", NodeState.DRAINED),
        (NodeEvent.DOWN, "DOWN", NodeState.DOWN),
        (NodeEvent.FAILED, "IDLE+FAIL", NodeState.FAILED),
        (NodeEvent.FUTURE, "FUTURE", NodeState.FUTURE),
    ],
    ids=["idle", "drained", "down", "failed", "future"],
)
def test_state_of_a_node_is_read_back(
    event: NodeEvent | None, words: str, state: NodeState
) -> None:
    world = World()
    if event is not None:
        world.request(ev.UpdateNode("n0", event, "a disk"), OPERATOR)
    first, second = node_lines(world.core.state, world.now, {})
    assert (first.state, second.state) == (words, "IDLE")
    parsed = machine.read_hosts(shown([first, second], scontrol.NODE))
    assert not parsed.unreadable
    assert [node.state for node in parsed.rows] == [state, NodeState.UP]
    assert (parsed.rows[0].cpus, parsed.rows[0].memory) == (4, 1_000)
    if event is not None:
        assert parsed.rows[0].reason == "a disk (by olga, 2023-11-14T22:13:20Z)"


def test_node_that_is_not_connected_does_not_respond() -> None:
    world = World()
    change = world.core.state.change_numbers["nodes"]
    world.event(ev.NodeDisconnected("n1"))
    first, second = node_lines(world.core.state, world.now, {})
    assert (first.state, second.state) == ("IDLE", "IDLE+NOT_RESPONDING")
    assert world.core.state.change_numbers["nodes"] > change


def test_silent_node_and_one_with_jobs() -> None:
    world = World()
    world.run_one(cpus=2, memory=100)
    world.event(ev.NodeSilent("n1"))
    first, second = node_lines(world.core.state, world.now, {})
    assert (first.state, first.allocated_cpus, first.allocated_memory) == ("MIXED", 2, 100)
    assert first.allocated_tres == "cpu=2,mem=100M,billing=2"
    assert second.state == "DOWN+NOT_RESPONDING"


def test_reservation_is_read_back_and_marks_its_nodes() -> None:
    world = World(licenses={})
    made = Reservation(
        name="r",
        nodes=("n0",),
        begin=Instant(START.wall - 60),
        end=Instant(START.wall + 60),
        users=frozenset({"alice", "bob"}),
        ignores_jobs=True,
        flexible=True,
    )
    world.request(ev.SetReservation(made), OPERATOR)
    lines = [*reservation_lines(world.core.state, world.now)]
    parsed = machine.read_reservations(shown(lines, scontrol.RESERVATION))
    assert (parsed.rows, lines[0].is_active) == ((made,), True)
    assert [line.state for line in node_lines(world.core.state, world.now, {})] == [
        "IDLE+RESERVED",
        "IDLE",
    ]


# --- accounting ---


def accounting_line(record: EndedRun, world: World, job: WlmJob | None = None) -> AccountingLine:
    shown = ShownRun(world.core.state, record, world.now, job=job)
    return AccountingLine(*shown.cells(AccountingLine._fields))


def read_accounting(record: EndedRun, world: World) -> Any:
    line = accounting_line(record, world)
    fields = parse_fields(",".join(JOBS.columns), SACCT)
    cells = cells_of([line], fields, Notation())
    text = "\n".join(field_lines(cells, fields, delimiter=DELIMITER, header=False))
    parsed = JOBS.read(text + "\n")
    assert not parsed.unreadable
    return parsed.rows[0]


@pytest.mark.parametrize("status", [0, 256, 9])
def test_ended_run_is_read_back(status: int) -> None:
    world = World()
    number = world.run_one(cpus=2)
    world.advance(90)
    world.end(number, status)
    (record,) = world.accounting.values()
    read = read_accounting(record, world)
    assert (read.job_id, read.start, read.end) == (number, START.wall, START.wall + 90)
    assert read.state == ("COMPLETED" if status == 0 else "FAILED")
    assert read.elapsed == 90


def test_running_pending_and_requeued_runs_are_shown() -> None:
    world = World()
    running, waiting = world.run_one(), world.submit(held=True, array="1-3")
    world.advance(30)
    lines = [
        accounting_line(live_record(job, "lab"), world, job)
        for job in map(world.job, (running, waiting))
    ]
    assert [(line.label, line.state, line.elapsed, line.ended) for line in lines] == [
        (f"{running}", "RUNNING", 30, None),
        (f"{waiting}_[1-3]", "PENDING", 0, None),
    ]
    world.request(ev.RequeueJob(named(running)))
    (record,) = world.accounting.values()
    line = accounting_line(record, world)
    assert (line.state, line.elapsed, line.ended) == ("REQUEUED", 30, world.now.wall)
