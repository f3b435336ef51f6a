"""Resources that nodes register: the minimum that is configured, and more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairbank.cluster.node import Gpus
from fairbank.core.errors import InvalidInput
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.effects import LogLine
from fairbank.wlm.core.node_states import NodeCondition
from fairbank.wlm.core.state import NodeResources
from tests.wlm.core.world import World, named


def register(world: World, **resources: Any) -> list[Any]:
    """Let n0 register with other resources than before."""
    before = world.nodes["n0"].registration()
    changed = msgspec.structs.replace(before.resources, **resources)
    return list(world.event(before._replace(resources=changed)))


@pytest.mark.parametrize(("actual", "fits"), [(True, True), (False, False)])
def test_job_that_only_the_actual_memory_fits(actual: bool, fits: bool) -> None:
    world = World(nodes=1, actual_resources=actual)
    register(world, memory=2_000)
    job = world.submit(memory=1_500)
    assert isinstance(job, int) is fits
    if fits:
        world.settle()
        assert world.job(job).run is not None
    else:
        assert isinstance(job, InvalidInput)


def test_what_a_node_has_is_stored_and_logged() -> None:
    world = World(nodes=1, actual_resources=True)
    lines = [one.text for one in register(world, cpus=8) if isinstance(one, LogLine)]
    before, after = "4 CPUs, 1000 MiB, 0 MiB of disk", "8 CPUs, 1000 MiB, 0 MiB of disk"
    assert lines == [f"node n0 has {after}; before: {before}"]
    assert register(world, cpus=8) == []
    assert world.core.state.configured["n0"].cpus == 8
    # A new controller has it before the node registers.
    rows = list(world.core.state.tables["nodes"].items())
    assert rows[0][1].real == NodeResources(8, 1_000, 0)
    world.nodes["n0"].is_silent = True
    world.restart()
    assert world.core.state.configured["n0"].cpus == 8


@pytest.mark.parametrize("actual", [True, False])
def test_less_than_configured_is_down_in_both_ways(actual: bool) -> None:
    world = World(nodes=1, actual_resources=actual)
    register(world, memory=500)
    status = world.core.state.nodes["n0"]
    assert status.condition is NodeCondition.DOWN
    assert status.reason == "Low RealMemory (configured 1000, real 500)"
    register(world, memory=1_000)  # it waits for an administrator (ReturnToService 0)
    assert world.core.state.nodes["n0"].condition is NodeCondition.DOWN


def test_node_that_shrinks_keeps_what_its_jobs_have() -> None:
    world = World(nodes=1, actual_resources=True)
    register(world, cpus=8, memory=2_000)
    jobs = [world.submit(cpus=3, memory=900) for _ in range(2)]
    world.settle()
    world.answer_prologs()
    world.begin_all()
    register(world, cpus=4, memory=1_200)
    node = world.core.state.configured["n0"]
    assert (node.cpus, node.memory) == (6, 1_800)
    waiting = world.submit(cpus=1, memory=100)
    world.settle()
    assert world.state(waiting) == "PENDING"
    for job in jobs:
        world.end(job)
    register(world, cpus=4, memory=1_200)
    node = world.core.state.configured["n0"]
    assert (node.cpus, node.memory) == (4, 1_200)
    world.settle()
    assert world.job(waiting).run is not None
    world.request(ev.CancelJob(named(waiting)))


def gpus_of(world: World) -> tuple[Gpus, ...]:
    return world.core.state.configured["n0"].gpus


def test_gpus_that_a_node_finds_are_used_without_settings() -> None:
    world = World(nodes=1, actual_resources=True)
    register(world, gpus=(Gpus("t4", 2),))
    job = world.run_one(gpus=(Gpus("t4", 1),))
    register(world, gpus=())  # a job keeps what it has
    assert gpus_of(world) == (Gpus("t4", 2),)
    world.end(job)
    register(world, gpus=())
    assert gpus_of(world) == ()
    assert isinstance(world.submit(gpus=(Gpus("", 1),)), InvalidInput)
