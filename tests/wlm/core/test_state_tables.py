"""Tables of the states of jobs and nodes: the core makes every transition of them, and no other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from fairbank.cluster.partition_rules import PartitionRules, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core.time import Instant
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption
from fairbank.wlm.core import events as ev
from fairbank.wlm.core import job_states, node_states, transition
from fairbank.wlm.core.job_states import JobEvent, JobState
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.node_states import NodeCondition, NodeEvent
from fairbank.wlm.protocol.messages import EndCause
from tests.wlm.core.world import ALICE, OPERATOR, START, World, named, run_status

PARTITIONS = (PartitionRules(name="main", is_default=True), PartitionRules(name="urgent", tier=9))
S, E, N = JobState, JobEvent, NodeCondition
DEADLINE = START.wall + 10_000
RESERVATION = Reservation(
    name="exam", nodes=("n0",), begin=Instant(DEADLINE), end=Instant(DEADLINE + 60)
)


class Stage(World):
    """World with job 1 on all nodes and one event after another."""

    def __init__(self, *, may_requeue: bool) -> None:
        super().__init__(
            *PARTITIONS,
            preemption=Preemption(by=PreemptBy.PARTITION, mode=PreemptMode.CANCEL),
            requeue_exit_hold=frozenset({8}),
        )
        self.submit(nodes=2, cpus=4, deadline=DEADLINE, may_requeue=may_requeue)

    def end_with(self, status: int, *, is_late: bool = False) -> None:
        run = self.job(1).run
        if run is not None:
            if self.nodes["n0"].runs.get(run.run) in ("starting", "running"):
                self.nodes["n0"].runs[run.run] = "ending"
            self.event(
                ev.RunChanged(
                    "n0",
                    run_status(run.run, "ended", status, cause="time_limit" if is_late else "exit"),
                )
            )

    def fail(self) -> None:
        run = self.job(1).run
        if self.state(1) == "RUNNING CONFIGURING" and run is not None:
            self.nodes["n0"].runs[run.run] = "cleared"
            self.event(self.nodes["n0"].seen(run.run, cause="launch"))
        else:
            self.end_with(256)

    def requeue(self, *, held: bool = False, special: bool = False) -> None:
        self.request(ev.RequeueJob(named(1), held=held, special=special), OPERATOR)

    def preempt(self) -> None:
        self.submit(nodes=2, cpus=4, partitions=("urgent",))
        self.plan()

    def pass_deadline(self) -> None:
        before, self.now = self.now, Moment(DEADLINE, self.now.mono)
        self.event(ev.TimerFired(ev.TimerKind.DEADLINE, 1))
        self.now = before

    def lose_reservation(self) -> None:
        """Let the job request a reservation if it still can, and delete that."""
        self.request(ev.SetReservation(RESERVATION), OPERATOR)
        self.request(ev.UpdateJob(jobs=named(1), reservation=RESERVATION.name), ALICE)
        self.request(ev.DeleteReservation(RESERVATION.name), OPERATOR)

    def silence(self) -> None:
        self.nodes["n0"].is_silent = True
        self.event(ev.NodeSilent("n0"))

    def clear_all(self) -> None:
        if self.job(1).state.is_completing:
            self.clear(1)

    def begin_first(self) -> None:
        run = self.job(1).run
        if run is not None:
            self.event(ev.RunChanged("n0", run_status(run.run, "running")))


APPLY: dict[JobEvent, Callable[[Stage], object]] = {
    E.COMPLETED: lambda stage: stage.end_with(0),
    E.CANCELLED: lambda stage: stage.request(ev.CancelJob(named(1)), ALICE),
    E.FAILED: Stage.fail,
    E.TIMEOUT: lambda stage: stage.end_with(15, is_late=True),
    E.NODE_FAIL: Stage.silence,
    E.OUT_OF_MEMORY: lambda stage: stage.end_with(125),
    E.PREEMPTED: Stage.preempt,
    E.DEADLINE: Stage.pass_deadline,
    E.ALLOCATED: Stage.plan,
    E.BEGUN: Stage.begin_first,
    E.SUSPENDED: lambda stage: stage.request(ev.SuspendJob(named(1)), OPERATOR),
    E.RESUMED: lambda stage: stage.request(ev.ResumeJob(named(1)), OPERATOR),
    E.REQUEUED: Stage.requeue,
    E.REQUEUED_HELD: lambda stage: stage.requeue(held=True),
    E.REQUEUED_SPECIAL: lambda stage: stage.requeue(special=True),
    E.CLEARED: Stage.clear_all,
    E.RESERVATION_DELETED: Stage.lose_reservation,
    E.RELEASED: lambda stage: stage.request(ev.ReleaseJob(named(1)), OPERATOR),
}
RUNNING = (E.ALLOCATED, E.BEGUN)
ENDS = (
    E.COMPLETED, E.CANCELLED, E.FAILED, E.TIMEOUT, E.NODE_FAIL, E.OUT_OF_MEMORY, E.PREEMPTED,
    E.DEADLINE,
)  # fmt: skip
REQUEUES = (E.REQUEUED, E.REQUEUED_HELD, E.REQUEUED_SPECIAL)
PATHS: dict[JobState, tuple[JobEvent, ...]] = {
    S.PENDING: (),
    S.RESV_DEL_HOLD: (E.RESERVATION_DELETED,),
    S.CONFIGURING: (E.ALLOCATED,),
    S.RUNNING: RUNNING,
    S.SUSPENDED: (*RUNNING, E.SUSPENDED),
    S.CLEANING: (*RUNNING, E.REQUEUED),
    S.CLEANING_HOLD: (*RUNNING, E.REQUEUED_HELD),
    S.CLEANING_SPECIAL: (*RUNNING, E.REQUEUED_SPECIAL),
    S.REQUEUE_HOLD: (*RUNNING, E.REQUEUED_HELD, E.CLEARED),
    S.SPECIAL_EXIT: (*RUNNING, E.REQUEUED_SPECIAL, E.CLEARED),
    **{S(f"{end.name} COMPLETING"): (*RUNNING, end) for end in ENDS},
    **{S(end.name): (*RUNNING, end, E.CLEARED) for end in ENDS},
}


def needs_requeue(state: JobState, event: JobEvent) -> bool:
    """Return whether the job may be requeued: a failed launch or node ends another."""
    if not {*PATHS[state]}.isdisjoint(REQUEUES):
        return True
    ends_by_node = E.NODE_FAIL in (*PATHS[state], event)
    return not ends_by_node and (state, event) != (S.CONFIGURING, E.FAILED)


@pytest.mark.parametrize(
    ("state", "event"), list(product(PATHS, APPLY)), ids=lambda value: value.name
)
def test_core_makes_the_transitions_of_the_table_and_no_other(
    state: JobState, event: JobEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(may_requeue=needs_requeue(state, event))
    for step in PATHS[state]:
        APPLY[step](stage)
    assert stage.job(1).state is state
    made: list[tuple[JobState, JobEvent]] = []

    def note(before: JobState, what: JobEvent) -> JobState:
        after = job_states.next_state(before, what)
        made.append((before, what))
        return after

    monkeypatch.setattr(transition, "next_state", note)
    APPLY[event](stage)
    assert ((state, event) in made) is ((state, event) in job_states.TRANSITIONS)
    assert set(made) <= job_states.TRANSITIONS.keys()


def test_every_state_is_reached() -> None:
    assert PATHS.keys() == set(JobState)
    assert APPLY.keys() == set(JobEvent)


@pytest.mark.parametrize(
    ("state", "shown", "base"),
    [
        (S.CONFIGURING, "CONFIGURING", "RUNNING"),
        (S.CLEANING, "COMPLETING", "PENDING"),
        (S.REQUEUE_HOLD, "REQUEUE_HOLD", "PENDING"),
        (S.SPECIAL_EXIT, "SPECIAL_EXIT", "PENDING"),
        (S.TIMEOUT_COMPLETING, "COMPLETING", "TIMEOUT"),
        (S.TIMEOUT, "TIMEOUT", "TIMEOUT"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_first_flag_is_shown(state: JobState, shown: str, base: str) -> None:
    assert (state.shown, state.base) == (shown, base)


@pytest.mark.parametrize(
    ("status", "cause", "expected"),
    [
        (0, "exit", (E.COMPLETED, "None")),
        (3 * 256, "exit", (E.FAILED, "NonZeroExitCode")),
        (9, "exit", (E.FAILED, "RaisedSignal")),
        (125, "exit", (E.OUT_OF_MEMORY, "OutOfMemory")),
        (15, "time_limit", (E.TIMEOUT, "TimeLimit")),
        (9, "step_daemon_killed", (E.FAILED, "SystemFailure")),
        (0, "time_limit", (E.TIMEOUT, "TimeLimit")),
    ],
)
def test_end_of_a_script_has_slurms_state_and_reason(
    status: int, cause: EndCause, expected: tuple[JobEvent, str]
) -> None:
    assert job_states.end_of_script(status, cause) == expected


# --- nodes

BY_ADMINISTRATOR = (
    NodeEvent.DRAINED, NodeEvent.RESUMED, NodeEvent.DOWN, NodeEvent.FAILED, NodeEvent.FUTURE
)  # fmt: skip


def apply_to_node(world: World, event: NodeEvent) -> None:
    node = world.nodes["n0"]
    if event in BY_ADMINISTRATOR:
        world.request(ev.UpdateNode("n0", event, "maintenance"), OPERATOR)
    elif event is NodeEvent.SILENT:
        world.event(ev.NodeSilent("n0"))
    elif event is NodeEvent.LACKING:
        small = node.registration().resources
        world.event(ev.NodeRegistered(type(small)(name="n0", cpus=1), "boot 1"))
    else:
        world.event(node.registration())


NODE_PATHS: dict[NodeCondition, tuple[NodeEvent, ...]] = {
    N.UP: (),
    N.UNKNOWN: (NodeEvent.SILENT, NodeEvent.RESUMED),
    N.DRAIN: (NodeEvent.DRAINED,),
    N.DRAIN_SILENT: (NodeEvent.DRAINED, NodeEvent.SILENT),
    N.DOWN: (NodeEvent.DOWN,),
    N.SILENT: (NodeEvent.SILENT,),
    N.FAIL: (NodeEvent.FAILED,),
    N.FUTURE: (NodeEvent.FUTURE,),
}


@pytest.mark.parametrize(
    ("condition", "event"), list(product(NODE_PATHS, NodeEvent)), ids=lambda value: value.name
)
def test_node_follows_its_table(condition: NodeCondition, event: NodeEvent) -> None:
    """ReturnToService decides which registration a node makes."""
    world = World(return_to_service=2 if event is NodeEvent.RETURNED else 0)
    for step in NODE_PATHS[condition]:
        apply_to_node(world, step)
    assert world.core.state.nodes["n0"].condition is condition
    apply_to_node(world, event)
    after = node_states.TRANSITIONS.get((condition, event), condition)
    assert world.core.state.nodes["n0"].condition is after


def test_every_condition_is_reached() -> None:
    assert NODE_PATHS.keys() == set(NodeCondition)


def test_silent_node_returns_by_itself_if_the_service_says_so() -> None:
    for service, after in ((0, N.DOWN), (1, N.UP), (2, N.UP)):
        world = World(return_to_service=service)
        world.event(ev.NodeSilent("n0"))
        world.event(world.nodes["n0"].registration())
        assert world.core.state.nodes["n0"].condition is after
    for service, after in ((0, N.DOWN), (1, N.DOWN), (2, N.UP)):
        world = World(return_to_service=service)
        apply_to_node(world, NodeEvent.DOWN)
        world.event(world.nodes["n0"].registration())
        assert world.core.state.nodes["n0"].condition is after


def test_node_with_less_than_configured_is_down_with_both_figures() -> None:
    world = World()
    apply_to_node(world, NodeEvent.LACKING)
    assert world.core.state.nodes["n0"].reason == "Low CPUs (configured 4, real 1)"


@pytest.mark.parametrize("before", [N.UP, N.SILENT])
def test_controller_keeps_the_reason_of_an_administrator(before: NodeCondition) -> None:
    world = World(return_to_service=0)
    for event in NODE_PATHS[before]:
        apply_to_node(world, event)
    world.request(ev.UpdateNode("n0", NodeEvent.DRAINED, "bad DIMM"), OPERATOR)
    for event in (NodeEvent.REGISTERED, NodeEvent.SILENT, NodeEvent.LACKING, NodeEvent.SILENT):
        apply_to_node(world, event)
        status = world.core.state.nodes["n0"]
        assert (status.reason, status.reason_user) == ("bad DIMM", OPERATOR.name)
    world.request(ev.UpdateNode("n0", NodeEvent.DOWN, "no fan"), OPERATOR)
    apply_to_node(world, NodeEvent.REGISTERED)
    status = world.core.state.nodes["n0"]
    assert (status.condition, status.reason) == (N.DOWN, "no fan")


def test_node_that_waits_for_an_administrator_says_that_it_did_not_respond() -> None:
    world = World(return_to_service=0)
    apply_to_node(world, NodeEvent.SILENT)
    apply_to_node(world, NodeEvent.REGISTERED)
    status = world.core.state.nodes["n0"]
    assert (status.condition, status.reason) == (N.DOWN, "Not responding")
    apply_to_node(world, NodeEvent.LACKING)
    assert world.core.state.nodes["n0"].reason.startswith("Low CPUs")
