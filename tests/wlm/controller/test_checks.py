"""Tests of the checks of a live state: each planted fault is found by its rule alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairbank.cluster.dependency import Dependencies, Dependency
from fairbank.cluster.job import Run
from fairbank.wlm.controller.checks import RULES, SHOWN_MAX, LiveFacts, check_cluster
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.node_states import NodeCondition
from fairbank.wlm.core.steps.step import StepGrant, StepRequest, WlmStep
from fairbank.wlm.protocol.messages import Registration, RunStatus
from tests.wlm.core.world import World

RELEASE = "1.0"


def registration(name: str, *runs: RunStatus, **fields: Any) -> Registration:
    defaults: dict[str, Any] = {
        "node": name, "release": RELEASE, "started": 0.0, "cpus": 4, "memory": 1_000,
        "free_memory": 1, "tmp": 1, "load": 0.0, "boot_time": 100.0, "boot_id": "1",
        "system": "Linux", "machine": "x86_64", "runs": runs,
    }  # fmt: skip
    return Registration(**(defaults | fields))


class Sample:
    """Cluster with a job that runs on n0, one that waits for the bank, and one that has ended."""

    def __init__(self) -> None:
        self.world = World(socket="agent")
        self.running, self.ended = self.world.run_one(), self.world.run_one()
        self.world.end(self.ended)
        self.asked = self.world.submit()
        self.world.settle()
        self.state = self.world.core.state
        statuses = {
            name: [RunStatus(run=run, state="running") for run in node.live]
            for name, node in self.world.nodes.items()
        }
        self.nodes: dict[str, Registration | None] = {
            name: registration(name, *runs) for name, runs in statuses.items()
        }
        self.recorded = set(self.world.accounting)
        self.earlier = dict(self.state.jobs)

    def facts(self) -> LiveFacts:
        return LiveFacts(
            state=self.state,
            earlier=self.earlier,
            nodes=self.nodes,
            recorded=self.recorded,
            now=self.world.now,
            end_seconds=90,
            release=RELEASE,
            boot_time=100.0,
        )

    def faults(self) -> list[str]:
        """Return the beginnings of the checks that are not ok."""
        return [check.what for check in check_cluster(self.facts()) if not check.ok]

    def change(self, number: int, **changes: Any) -> None:
        """Change a job, in both states."""
        job = replace(self.state.jobs[number], **changes)
        self.state.put("jobs", number, job)
        self.earlier[number] = job

    def change_run(self, number: int, **changes: Any) -> None:
        run = self.state.jobs[number].run
        assert run is not None
        self.change(number, run=replace(run, **changes))

    def node_has(self, run: Run, *, times: int = 1, **fields: Any) -> None:
        status = RunStatus(run=run, state="running")
        self.nodes["n1"] = registration("n1", *[status] * times, **fields)

    def run(self, number: int) -> Run:
        return self.state.jobs[number].identity("lab")


def share_a_core(sample: Sample) -> None:
    run = sample.state.jobs[sample.running].run
    assert run is not None
    sample.change_run(sample.asked, allocation=run.allocation)


def lose_a_record(sample: Sample) -> None:
    sample.recorded.clear()


def record_too_early(sample: Sample) -> None:
    sample.recorded.add(str(sample.run(sample.running)))


def lose_a_question(sample: Sample) -> None:
    sample.state.messages.clear()


def leave_a_message(sample: Sample) -> None:
    sample.world.now = sample.world.now._replace(mono=sample.world.now.mono + 61)


def open_a_dependency(sample: Sample) -> None:
    item = Dependency("afterok", sample.ended)
    sample.change(sample.running, dependencies=Dependencies(items=(item,)))


def begin_too_early(sample: Sample) -> None:
    request = sample.state.jobs[sample.running].request
    sample.change(sample.running, request=replace(request, eligible=sample.world.now.wall + 1))


def exceed_the_limit(sample: Sample) -> None:
    sample.state.messages.clear()
    sample.change_run(sample.asked, is_allowed=True)
    sample.world.now = sample.world.now._replace(mono=sample.world.now.mono + 600 + 90 + 6)


def start_on_a_drained_node(sample: Sample) -> None:
    since = sample.world.now.wall - 1
    sample.state.put(
        "nodes",
        "n0",
        replace(
            sample.state.nodes["n0"],
            condition=NodeCondition.DRAIN,
            reason="disk",
            reason_since=since,
        ),
    )


def other_time(sample: Sample) -> None:
    sample.nodes["n1"] = registration("n1", boot_time=90.0)


def later_job(sample: Sample) -> None:
    request = sample.state.jobs[sample.asked].request
    sample.change(sample.asked, request=replace(request, submitted=sample.world.now.wall + 60))


def start_step(
    sample: Sample,
    number: int,
    *cores: int,
    job: int = 0,
    gpus: tuple[int, ...] = (),
    **fields: Any,
) -> None:
    """Let a step run on n0 in a job, else in the one that runs."""
    step = WlmStep(
        run=sample.run(job or sample.running),
        number=number,
        uid=1,
        request=StepRequest(**fields),
        grants=(StepGrant("n0", (0,), cores, gpus),),
        started=sample.world.now,
        left=("n0",),
    )
    sample.state.put("steps", step.key, step)


def share_a_core_of_steps(sample: Sample) -> None:
    for number in range(2):
        start_step(sample, number, own_core(sample))


def own_core(sample: Sample) -> int:
    """Return the core of the job that runs."""
    run = sample.state.jobs[sample.running].run
    assert run is not None
    return run.allocation.grants[0].binding.cores[0]


FAULTS: dict[str, tuple[str, Callable[[Sample], object]]] = {
    "two jobs on a core": ("W1", share_a_core),
    "a run that a node has twice": (
        "W2", lambda one: one.nodes.update(n0=twice(one.nodes["n0"]))
    ),
    "a run before its start is stored": (
        "W2", lambda one: one.nodes.update(n0=also(one.nodes["n0"], one.run(one.asked)))
    ),
    "a run of no job": ("W3", lambda one: one.node_has(Run("lab", 99, 1))),
    "a run on a node that it has not": ("W3", lambda one: one.node_has(one.run(one.running))),
    "a run that has ended": ("W3", lambda one: one.node_has(one.run(one.ended))),
    "no record": ("W4", lose_a_record),
    "a record of a run that has not ended": ("W4", record_too_early),
    "a verdict that nothing requests": ("W5", lose_a_question),
    "a message that the agent does not take": ("W5", leave_a_message),
    "open dependencies": ("W6", open_a_dependency),
    "a later begin time": ("W6", begin_too_early),
    "a run past its limit": ("W7", exceed_the_limit),
    "a start on a drained node": ("W8", start_on_a_drained_node),
    "two steps on a core": ("W12", share_a_core_of_steps),
    "a step on a core of another job": ("W12", lambda one: start_step(one, 0, 99)),
    "a step on a GPU of another job": ("W12", lambda one: start_step(one, 0, gpus=(0,))),
    "a step of a job that has ended": (
        "W12", lambda one: start_step(one, 0, own_core(one), job=one.ended)
    ),
    "a silent node": ("all nodes answer", lambda one: one.nodes.update(n1=None)),
    "a node with another clock": ("the clocks", other_time),
    "a job of a later time": ("the clocks", later_job),
    "a node of another release": (
        "the nodes are of", lambda one: one.nodes.update(n1=registration("n1", release="0.9"))
    ),
}  # fmt: skip


def twice(node: Registration | None) -> Registration:
    assert node is not None
    return replace(node, runs=(*node.runs, node.runs[0]))


def also(node: Registration | None, run: Run) -> Registration:
    assert node is not None
    return replace(node, runs=(*node.runs, RunStatus(run=run, state="running")))


def test_state_without_faults_passes_all_checks() -> None:
    checks = [*check_cluster(Sample().facts())]
    assert [check.what for check in checks] == [rule for rule, _, _ in RULES]
    assert all(check.ok for check in checks)


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_found_by_its_rule_alone(name: str) -> None:
    rule, plant = FAULTS[name]
    sample = Sample()
    plant(sample)
    (fault,) = sample.faults()
    assert fault.startswith(rule)
    assert ": not so: " in fault


def test_run_that_has_just_left_its_node_is_no_fault() -> None:
    """The node was asked before: its answer is older than the state."""
    sample = Sample()
    sample.world.end(sample.running)
    sample.recorded |= set(sample.world.accounting)
    assert sample.faults() == []


def test_node_that_is_drained_may_keep_processes() -> None:
    sample = Sample()
    status = sample.state.nodes["n1"]
    sample.state.put("nodes", "n1", replace(status, condition=NodeCondition.DRAIN, reason="x"))
    sample.node_has(Run("lab", 99, 1))
    assert sample.faults() == []


def test_jobs_that_share_a_core_are_no_fault() -> None:
    sample = Sample()
    run = sample.state.jobs[sample.running].run
    assert run is not None
    (grant,) = run.allocation.grants
    shared = replace(grant, binding=grant.binding._replace(rows=2))
    for number in (sample.running, sample.asked):
        sample.change_run(number, allocation=replace(run.allocation, grants=(shared,)))
    assert sample.faults() == []


def test_steps_that_overlap_may_share_a_core() -> None:
    sample = Sample()
    start_step(sample, 0, own_core(sample))
    start_step(sample, 1, own_core(sample), overlap=True)
    assert sample.faults() == []


def test_only_the_first_faults_are_named() -> None:
    sample = Sample()
    jobs: dict[int, WlmJob] = {}
    template = sample.state.jobs[sample.ended]
    for number in range(100, 100 + SHOWN_MAX + 3):
        jobs[number] = replace(template, request=replace(template.request, number=number))
    sample.earlier |= jobs
    (fault,) = sample.faults()
    assert fault.endswith("; and 3 more")
