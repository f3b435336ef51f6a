"""Steps: what a step gets of its job, where its tasks are, how it ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput, Unavailable
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.jobs import Owner
from fairbank.wlm.core.steps.cores import BUSY
from fairbank.wlm.core.steps.layout import lay_out
from fairbank.wlm.core.steps.placement import place_step
from fairbank.wlm.core.steps.step import EndedStep, StepRequest, StepUsage, WlmStep
from fairbank.wlm.protocol.messages import RunOutcome, RunUsage, StepStatus
from tests.wlm.core.world import ALICE, BOB, OPERATOR, World, named


def world_with_job(nodes: int = 2, cpus: int = 4) -> tuple[World, int]:
    """Return a world with a running job of alice that has all of its nodes."""
    world = World(nodes=nodes, cpus=cpus)
    return world, world.run_one(nodes=nodes, cpus=cpus)


def ranks(step: Any) -> dict[str, tuple[int, ...]]:
    assert isinstance(step, WlmStep), step
    return {grant.node: grant.ranks for grant in step.grants}


def cores(step: Any) -> dict[str, tuple[int, ...]]:
    assert isinstance(step, WlmStep), step
    return {grant.node: grant.cores for grant in step.grants}


def ended(world: World, step: WlmStep) -> EndedStep:
    return world.ended_steps[step.key]


# --- layout


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"n0": (0,), "n1": (1,)}),
        ({"tasks": 1}, {"n0": (0,)}),
        ({"tasks": 4}, {"n0": (0, 1), "n1": (2, 3)}),
        ({"tasks": 3}, {"n0": (0, 1), "n1": (2,)}),
        ({"tasks": 4, "distribution": "cyclic"}, {"n0": (0, 2), "n1": (1, 3)}),
        ({"tasks": 7, "distribution": "plane", "plane": 2}, {"n0": (0, 1, 4, 5), "n1": (2, 3, 6)}),
        (
            {"tasks": 3, "distribution": "arbitrary", "named": ("n1", "n0", "n1")},
            {"n1": (0, 2), "n0": (1,)},
        ),
        ({"nodes": 1}, {"n0": (0,)}),
        ({"nodes": 1, "tasks": 4}, {"n0": (0, 1, 2, 3)}),
        ({"tasks": 2, "tasks_per_node": 2}, {"n0": (0, 1)}),
        ({"named": ("n1",)}, {"n1": (0,)}),
        ({"excluded": ("n0",)}, {"n1": (0,)}),
        ({"relative": 1}, {"n1": (0,)}),
        ({"named": ("1",)}, {"n1": (0,)}),
        ({"named": ("0", "01"), "nodes": 2}, {"n0": (0,), "n1": (1,)}),
        ({"excluded": ("0",)}, {"n1": (0,)}),
        ({"tasks": 2, "distribution": "arbitrary", "named": ("1", "0")}, {"n1": (0,), "n0": (1,)}),
        ({"tasks": 4, "cpus_per_task": 2}, {"n0": (0, 1), "n1": (2, 3)}),
        ({"tasks": 10, "overcommit": True}, {"n0": tuple(range(5)), "n1": tuple(range(5, 10))}),
    ],
)
def test_tasks_are_laid_out_as_in_slurm(
    fields: dict[str, Any], expected: dict[str, tuple[int, ...]]
) -> None:
    world, job = world_with_job()
    assert ranks(world.step(job, **fields)) == expected


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.integers(1, 40),
    st.sampled_from(["block", "cyclic", "plane"]),
    st.integers(1, 4),
)
def test_each_task_is_laid_out_once(
    fitting: list[int], tasks: int, distribution: Any, plane: int
) -> None:
    nodes = [f"n{at}" for at in range(len(fitting))]
    request = StepRequest(distribution=distribution, plane=plane)
    own = lay_out(request, nodes, fitting, tasks)
    assert sorted(rank for node in own for rank in node) == list(range(tasks))
    if tasks <= sum(fitting):
        assert all(len(node) <= most for node, most in zip(own, fitting, strict=True))


# --- cores


def test_step_has_all_cores_of_its_nodes_unless_it_is_exact() -> None:
    world, job = world_with_job()
    whole = world.step(job, tasks=1)
    assert cores(whole) == {"n0": (0, 1, 2, 3)}
    world.end_step(whole, "n0")
    first = world.step(job, tasks=1, cpus_per_task=2, exact=True, nodes=1)
    second = world.step(job, tasks=2, exact=True, nodes=1)
    assert (cores(first), cores(second)) == ({"n0": (0, 1)}, {"n0": (2, 3)})


def test_step_waits_for_others_unless_it_shares_cores() -> None:
    world, job = world_with_job()
    first = world.step(job)
    busy = world.step(job, tasks=1)
    assert isinstance(busy, Unavailable)
    assert (busy.message, busy.field) == (BUSY, "busy")
    assert ranks(world.step(job, tasks=1, overlap=True)) == {"n0": (0,)}
    other = world.step(job, tasks=9, overcommit=True)
    assert ranks(other)["n0"] == (0, 1, 2, 3, 4)
    world.end_step(first, "n0")
    assert isinstance(world.step(job, tasks=1), Unavailable)
    world.end_step(other, "n0")
    assert ranks(world.step(job, tasks=1)) == {"n0": (0,)}  # n1 has not ended


@pytest.mark.parametrize(
    ("busy", "fields"),
    [
        ({}, {"tasks": 2, "nodes": 2, "named": ("n1",)}),
        ({}, {"tasks": 2, "named": ("n1", "n2")}),
        ({}, {"tasks": 1, "nodes": 1, "named": ("n1",)}),
        ({}, {"tasks": 2, "tasks_per_node": 2, "named": ("n1", "n2")}),
        ({}, {"tasks": 2, "distribution": "arbitrary", "nodes": 2, "named": ("n2", "n1")}),
        (
            {"exact": True, "cpus_per_task": 3},
            {"exact": True, "tasks": 2, "cpus_per_task": 2, "named": ("n1", "n2")},
        ),
    ],
)
def test_step_waits_for_a_node_that_it_names(busy: dict[str, Any], fields: dict[str, Any]) -> None:
    world, job = world_with_job(nodes=3)
    first = world.step(job, tasks=1, nodes=1, named=("n1",), **busy)
    error = world.step(job, **fields)
    assert isinstance(error, Unavailable)
    assert (error.message, error.field) == (BUSY, "busy")
    shared = world.step(job, overlap=True, **fields)
    assert "n1" in ranks(shared)
    for node in shared.nodes:
        world.end_step(shared, node)
    world.end_step(first, "n1")
    assert "n1" in ranks(world.step(job, **fields))


def test_step_with_a_range_of_nodes_has_those_that_it_names() -> None:
    world, job = world_with_job(nodes=3)
    step = world.step(job, tasks=2, nodes=2, nodes_max=3, named=("n2",))
    assert ranks(step) == {"n0": (0,), "n2": (1,)}


def test_step_that_names_a_busy_node_is_refused_if_it_asks_for_too_many() -> None:
    world, job = world_with_job()
    world.step(job, tasks=1, nodes=1, named=("n1",))
    assert isinstance(world.step(job, nodes=3, named=("n1",)), Conflict)


def test_step_whose_named_node_has_too_little_memory_is_refused() -> None:
    world, job = world_with_job()
    wlm_job = world.job(job)
    assert wlm_job.run is not None
    first, second = wlm_job.run.allocation.grants
    small = structs.replace(first, memory=5), structs.replace(second, memory=9)
    request = StepRequest(tasks=2, memory=7, named=("n0", "n1"))
    with pytest.raises(Conflict, match="its job has 5M on n0"):
        place_step(request, structs.replace(wlm_job.run.allocation, grants=small), 1, (), {})


@pytest.mark.parametrize(
    ("fields", "kind", "field"),
    [
        ({"tasks": 9}, Conflict, "tasks"),
        ({"tasks": 2, "named": ("n0", "n1"), "excluded": ("n0",)}, Conflict, "nodes"),
        ({"nodes": 3}, Conflict, "nodes"),
        ({"tasks": 3, "cpus_per_task": 3}, Conflict, "tasks"),
        ({"named": ("n7",)}, InvalidInput, "nodelist"),
        ({"named": ("2",)}, InvalidInput, "nodelist"),
        ({"relative": 2}, Conflict, "nodes"),
    ],
)
def test_step_that_its_job_cannot_hold_is_refused(
    fields: dict[str, Any], kind: type[FairbankError], field: str
) -> None:
    world, job = world_with_job()
    world.step(job, overlap=True)
    error = world.step(job, **fields)
    assert isinstance(error, kind)
    assert (error.field, bool(error.remedy)) == (field, True)
    assert len(world.core.state.steps) == 1


def test_refusal_says_what_the_job_has() -> None:
    world, job = world_with_job(nodes=1, cpus=1)
    error = world.step(job, tasks=2)
    assert isinstance(error, Conflict)
    assert error.message == "the step asks for 2 tasks, and its job has 1 CPU on 1 node"
    world, job = world_with_job(nodes=1, cpus=4)
    error = world.step(job, tasks=2, cpus_per_task=3)
    assert isinstance(error, Conflict)
    assert error.message == (
        "the step asks for 2 tasks of 3 CPUs each, and its job has 4 CPUs on 1 node"
    )


@pytest.mark.parametrize(
    ("fields", "amount"),
    [
        ({"memory": 1}, "{}M on each node"),
        ({"memory_per_cpu": 1}, "{}M for each CPU"),
        ({"memory_per_cpu": 0, "tasks": 4}, "{}M for each CPU"),
    ],
)
def test_step_with_more_memory_than_its_job_has_is_refused(
    fields: dict[str, Any], amount: str
) -> None:
    world, job = world_with_job(nodes=1)
    run = world.job(job).run
    assert run is not None
    (grant,) = run.allocation.grants
    assert grant.memory > 0
    most = {name: grant.memory for name in fields if name.startswith("memory")}
    tasks = fields.get("tasks", 1)
    size = {name: -(-value // tasks) + 1 for name, value in most.items()}
    wanted: dict[str, Any] = {**fields, **size}
    error = world.step(job, **wanted)
    assert isinstance(error, Conflict)
    assert error.field == "mem"
    assert amount.format(next(iter(size.values()))) in error.message
    wanted |= {name: value // tasks for name, value in most.items()}
    assert isinstance(world.step(job, **wanted), WlmStep)


def test_only_owner_and_operators_create_and_end_steps() -> None:
    world, job = world_with_job()
    step = world.step(job, caller=ALICE)
    assert isinstance(world.step(job, caller=BOB, overlap=True), Forbidden)
    assert isinstance(world.request(ev.EndStepOf(job, 0), BOB), Forbidden)
    assert world.request(ev.EndStepOf(job, 0), OPERATOR) is None
    for node in ("n0", "n1"):
        world.event(ev.StepChanged(node, world.nodes[node].steps[step.run, 0]))
    record = ended(world, step)
    assert (record.state, record.step.canceller) == ("CANCELLED", OPERATOR.uid)


def test_job_that_does_not_run_has_no_steps() -> None:
    world = World()
    waiting = world.submit(held=True)
    assert isinstance(world.step(waiting), Conflict)
    assert isinstance(world.step(99), FairbankError)


def test_step_waits_for_the_bank_and_on_the_node_for_the_begin_of_its_job() -> None:
    world = World(socket="agent")
    job = world.submit(nodes=1)
    assert isinstance(world.step(job), Conflict)
    world.settle()
    refused = world.step(job)
    assert isinstance(refused, Unavailable)
    assert (refused.message, refused.field) == (f"job {job} is being configured", "busy")
    world.answer_prologs()
    assert world.job(job).state.shown == "CONFIGURING"
    assert isinstance(world.step(job, BOB), Forbidden)
    step = world.step(job, key="own")
    assert ranks(step) == {"n0": (0,)}
    assert world.step(job, key="own") == step
    world.advance(5)
    world.begin_all()
    run = world.job(job).active_run
    assert run is not None
    assert world.core.state.steps[step.key].started == run.started
    world.end_step(step, "n0")
    assert ended(world, step).state == "COMPLETED"


def test_step_whose_begin_is_known_late_ran_as_long_as_its_node_says() -> None:
    world = World()
    job = world.submit(nodes=1)
    world.settle()
    step = world.step(job)
    world.advance(9)
    world.begin_all()
    end = RunOutcome(cause="exit", status=0, ended=world.now.wall - 2, elapsed_seconds=6.0)
    status = StepStatus(run=step.run, step=0, end=end)
    world.event(ev.StepChanged("n0", status))
    record = ended(world, step)
    assert (record.elapsed, record.ended) == (6, world.now.wall - 2)


@pytest.mark.parametrize("by_scancel", [False, True])
def test_step_ends_with_a_job_that_has_not_begun(by_scancel: bool) -> None:
    world = World()
    job = world.submit(nodes=1)
    world.settle()
    step = world.step(job)
    if by_scancel:
        assert world.request(ev.EndStepOf(job, 0)) is None
        assert world.core.state.steps[step.key].end == "CANCELLED"
    world.request(ev.CancelJob(named(job)))
    assert ended(world, step).state == "CANCELLED"


def test_step_waits_until_its_nodes_are_connected() -> None:
    world, job = world_with_job()
    world.event(ev.NodeDisconnected("n1"))
    refused = world.step(job)
    assert isinstance(refused, Unavailable)
    assert (refused.message, refused.field) == ("node n1 is not connected", "busy")
    assert world.core.state.steps == {}
    assert ranks(world.step(job, tasks=1, overlap=True)) == {"n0": (0,)}  # n1 has no task of it
    world.event(world.nodes["n1"].registration())
    step = world.step(job, overlap=True)
    assert ranks(step) == {"n0": (0,), "n1": (1,)}
    assert world.nodes["n1"].steps.keys() == {(step.run, step.number)}


# --- ends


def test_end_of_a_step_that_is_heard_of_late_is_that_of_its_last_task() -> None:
    world, job = world_with_job()
    step = world.step(job)
    begun = world.now
    world.advance(90)
    for name, took in (("n0", 8.4), ("n1", 3.2)):
        seen = world.nodes[name].end_step(step.run, step.number, 0)
        assert seen.status.end is not None
        end = structs.replace(seen.status.end, ended=begun.wall + took, elapsed_seconds=took)
        world.event(ev.StepChanged(name, structs.replace(seen.status, end=end)))
    record = ended(world, step)
    assert (record.ended, record.elapsed) == (begun.wall + 8, 8)


def test_step_ends_with_its_last_node_and_the_worst_status() -> None:
    world, job = world_with_job()
    step = world.step(job)
    world.advance(10)
    world.end_step(step, "n1", 3 << 8)
    assert step.key in world.core.state.steps
    world.end_step(step, "n0", 1 << 8)
    record = ended(world, step)
    assert (record.state, record.step.status, record.elapsed) == ("FAILED", 3 << 8, 10)
    run = world.job(job).run
    assert run is not None
    assert (run.derived, run.steps) == (3 << 8, 1)
    assert world.nodes["n0"].steps == {}  # forgotten


def test_signal_decides_the_status_of_a_step() -> None:
    world, job = world_with_job()
    step = world.step(job)
    world.end_step(step, "n0", 9)
    world.end_step(step, "n1", 1 << 8)
    assert ended(world, step).step.status == 9


@pytest.mark.parametrize("srun", ["silent", "before", "after"])
def test_step_whose_step_daemon_was_killed_has_failed_although_srun_ends_the_rest(
    srun: str,
) -> None:
    world, job = world_with_job()
    step = world.step(job)
    if srun == "before":
        world.request(ev.EndStepOf(job, step.number, lost_node="n1"))
    killed = RunOutcome(cause="step_daemon_killed", text="the step daemon was killed", ended=0)
    world.nodes["n1"].end_step(step.run, step.number, 9)
    seen = StepStatus(run=step.run, step=step.number, end=killed)
    world.event(ev.StepChanged("n1", seen))
    if srun == "after":
        world.request(ev.EndStepOf(job, step.number, lost_node="n1"))
    world.end_step(step, "n0", 15)
    record = ended(world, step)
    assert (record.state, record.step.canceller, record.step.status) == ("FAILED", None, 9)
    run = world.job(job).run
    assert run is not None
    assert run.failure == "step 0 on node n1: the step daemon was killed"
    assert world.state(job) == "RUNNING"


def test_step_that_its_srun_lost_has_failed_although_its_job_ends_before_its_node_reports() -> None:
    world, job = world_with_job()
    step = world.step(job)
    world.request(ev.EndStepOf(job, step.number, lost_node="n1"))
    world.request(ev.CompleteJob(job, 1 << 8))
    record = ended(world, step)
    assert (record.state, record.step.canceller, record.step.status) == ("FAILED", None, 9)
    run = world.job(job).run
    assert run is not None
    assert run.failure == "step 0 on node n1: srun lost its connection to the step daemon"


def test_step_that_was_cancelled_before_its_step_daemon_was_killed_is_cancelled() -> None:
    world, job = world_with_job()
    step = world.step(job, tasks=1)
    world.request(ev.EndStepOf(job, step.number), OPERATOR)
    world.request(ev.EndStepOf(job, step.number, lost_node="n0"), ALICE)
    killed = RunOutcome(cause="step_daemon_killed", text="the step daemon was killed", ended=0)
    world.event(ev.StepChanged("n0", StepStatus(run=step.run, step=step.number, end=killed)))
    record = ended(world, step)
    assert (record.state, record.step.canceller) == ("CANCELLED", OPERATOR.uid)


def test_steps_end_with_their_job() -> None:
    world, job = world_with_job()
    step = world.step(job)
    world.request(ev.CancelJob(named(job)))
    record = ended(world, step)
    assert (record.state, record.step.status) == ("CANCELLED", 15)
    world.clear(job)
    assert world.core.state.steps == {}


def test_usage_of_a_step_that_ends_with_its_job_is_recorded_when_its_nodes_report_it() -> None:
    world, job = world_with_job()
    step = world.step(job)
    world.end_step(step, "n0", usage=RunUsage(cpu_seconds=1))
    world.request(ev.CancelJob(named(job)))
    record = ended(world, step)
    assert (record.step.left, record.step.usage.cpu_seconds) == (("n1",), 1)
    world.end_step(step, "n1", usage=RunUsage(cpu_seconds=2, resident_max_kib=9))
    assert world.step_usages == [
        StepUsage(step.key, "n1", RunUsage(cpu_seconds=2, resident_max_kib=9))
    ]
    assert world.nodes["n1"].steps == {}  # forgotten


def test_job_without_a_script_ends_when_srun_says_so() -> None:
    world, job = world_with_job()
    step = world.step(job)
    assert isinstance(world.request(ev.CompleteJob(job, 0), BOB), Forbidden)
    assert world.request(ev.CompleteJob(job, 2 << 8)) is None
    assert world.job(job).state.base == "FAILED"
    assert ended(world, step).state == "FAILED"


OWNER = Owner(pid=70, start=5, boot="b")


@pytest.mark.parametrize(
    ("before", "state", "reason"),
    [
        ("PENDING", "CANCELLED", "InactiveLimit"),
        ("CONFIGURING", "CANCELLED", "InactiveLimit"),
        ("RUNNING", "TIMEOUT", "InactiveLimit"),
        ("SUSPENDED", "SUSPENDED", "None"),
    ],
)
def test_job_whose_owner_is_gone_ends(before: str, state: str, reason: str) -> None:
    world = World(cpus=4)
    number = world.submit(script="", owner=OWNER, held=before == "PENDING")
    world.settle()
    if before in ("RUNNING", "SUSPENDED"):
        world.answer_prologs()
        world.begin_all()
    if before == "SUSPENDED":
        world.request(ev.SuspendJob(named(number)), OPERATOR)
    assert world.job(number).state.shown == before
    world.event(ev.OwnerLost(number, OWNER._replace(start=4)))  # an earlier one
    assert world.job(number).state.shown == before
    world.event(ev.OwnerLost(number, OWNER))
    assert (world.job(number).state.base, world.reason(number)) == (state, reason)


def test_process_goes_on_for_its_parent_if_that_owns_the_job() -> None:
    world = World(cpus=4)
    number = world.run_one(script="", owner=OWNER)
    other, earlier = OWNER._replace(pid=69), OWNER._replace(start=4)
    for pid, parent, caller in (
        (71, other, ALICE),
        (71, earlier, ALICE),
        (72, OWNER, BOB),
        (73, OWNER, ALICE),
    ):
        world.request(ev.ChangeOwner(number, parent, OWNER._replace(pid=pid)), caller)
    assert world.job(number).owner == OWNER._replace(pid=73)
    world.restart()
    world.event(ev.OwnerLost(number, OWNER))
    assert world.job(number).state.shown == "RUNNING"


def test_process_goes_on_for_its_parent_as_srun_of_a_step() -> None:
    world, job = world_with_job()
    earlier, new = OWNER._replace(start=4), OWNER._replace(pid=72)  # one had the same number
    first, second = (world.step(job, tasks=1, exact=True, srun=srun) for srun in (OWNER, earlier))
    world.request(ev.ChangeOwner(job, OWNER, new), ALICE)
    world.restart()
    steps = world.core.state.steps
    assert [steps[step.key].srun for step in (first, second)] == [new, earlier]


def test_step_goes_on_over_a_restart_of_the_controller() -> None:
    world, job = world_with_job()
    step = world.step(job, tasks=1)
    world.restart()
    assert step.key in world.core.state.steps
    world.end_step(step, "n0")
    assert ended(world, step).state == "COMPLETED"
    assert world.step(job).number == 1


def test_step_whose_start_was_lost_with_the_controller_ends() -> None:
    world, job = world_with_job()
    body = ev.CreateStep(job, StepRequest(), "launch")
    world.event(ev.RequestMade(len(world.answers), ALICE, body), is_lost=True)
    assert len(world.core.state.steps) == 1
    world.restart()
    assert world.core.state.steps == {}
    assert [one.state for one in world.ended_steps.values()] == ["FAILED"]
    run = world.job(job).run
    assert run is not None
    assert run.failure == "step 0 on node n1: the node does not know it"


def test_registration_of_a_poll_does_not_end_a_step_on_its_way() -> None:
    world, job = world_with_job()
    early = world.nodes["n0"].registration()
    step = world.step(job)
    world.event(early)
    assert step.key in world.core.state.steps


def test_step_that_the_core_does_not_know_is_ended() -> None:
    world, job = world_with_job()
    step = world.step(job, tasks=1)
    world.end_step(step, "n0")
    node = world.nodes["n0"]
    late = ev.StepChanged("n0", node.end_step(step.run, 5, 0).status)
    world.event(late)
    assert node.steps == {}
