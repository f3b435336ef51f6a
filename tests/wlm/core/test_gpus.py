"""GPUs of jobs and steps: no GPU has two jobs, nor two steps, and each has what it asked for."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from fairbank.cluster.node import Gpus
from fairbank.core.errors import Conflict, InvalidInput, Unavailable
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.node_states import NodeCondition
from fairbank.wlm.core.steps.cores import BUSY
from fairbank.wlm.core.steps.step import WlmStep
from tests.wlm.core.world import OPERATOR, World, named

A100, T4 = Gpus("a100", 2), Gpus("t4", 2)


def gpu_world(nodes: int = 2, **settings: Any) -> World:
    """Return a world whose nodes have GPUs: 0 and 1 are of the first type, 2 and 3 of the other."""
    world = World(nodes=nodes, cpus=8, **settings)
    for node in world.nodes.values():
        node.resources = msgspec.structs.replace(node.resources, gpus=(A100, T4))
    world.restart()
    return world


def numbers(job: WlmJob) -> dict[str, tuple[int, ...]]:
    assert job.run is not None
    return {grant.binding.node: grant.binding.gpus for grant in job.run.allocation.grants}


def step_numbers(step: Any) -> dict[str, tuple[int, ...]]:
    assert isinstance(step, WlmStep), step
    return {grant.node: grant.gpus for grant in step.grants}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"n0": ()}),
        ({"gpus": (Gpus("", 1),)}, {"n0": (0,)}),
        ({"gpus": (Gpus("t4", 2),)}, {"n0": (2, 3)}),
        ({"gpus": (Gpus("a100", 1), Gpus("t4", 1))}, {"n0": (0, 2)}),
        ({"gpus": (Gpus("t4", 1),), "nodes": 2}, {"n0": (2,), "n1": (2,)}),
        ({"gpus_per_task": (Gpus("", 1),), "tasks": 3}, {"n0": (0, 1, 2)}),
        ({"gpus_per_task": (Gpus("t4", 1),), "tasks": 3}, {"n0": (2, 3), "n1": (2,)}),
        ({"total_gpus": Gpus("", 3)}, {"n0": (0, 1, 2)}),
        ({"total_gpus": Gpus("", 6)}, {"n0": (0, 1, 2, 3), "n1": (0, 1)}),
        ({"total_gpus": Gpus("a100", 2), "nodes": 2}, {"n0": (0,), "n1": (0,)}),
        ({"exclusive": True}, {"n0": (0, 1, 2, 3)}),
        # Nodes have 8 CPUs and 1,000 MiB.
        ({"gpus": (Gpus("", 2),), "cpus_per_gpu": 4}, {"n0": (0, 1)}),
        ({"total_gpus": Gpus("", 4), "cpus_per_gpu": 4}, {"n0": (0, 1), "n1": (0, 1)}),
        ({"total_gpus": Gpus("", 3), "memory_per_gpu": 400}, {"n0": (0, 1), "n1": (0,)}),
        (
            {"gpus_per_task": (Gpus("", 1),), "tasks": 3, "memory_per_gpu": 400},
            {"n0": (0, 1), "n1": (0,)},
        ),
        (
            {"gpus_per_task": (Gpus("", 1),), "tasks": 12, "tasks_per_gpu": 4},
            {"n0": (0, 1), "n1": (0,)},
        ),
        (
            {"gpus_per_task": (Gpus("", 1),), "tasks": 6, "tasks_per_gpu": 2, "cpus_per_gpu": 3},
            {"n0": (0, 1), "n1": (0,)},
        ),
    ],
)
def test_job_gets_the_gpus_that_it_requests(
    fields: dict[str, Any], expected: dict[str, tuple[int, ...]]
) -> None:
    world = gpu_world()
    job = world.job(world.run_one(**fields))
    assert numbers(job) == expected
    assert job.run is not None
    count = sum(map(len, expected.values()))
    assert job.run.allocation.tres.get("gres/gpu", 0) == count
    if "exclusive" not in fields:
        assert job.request.tres.get("gres/gpu", 0) == count


@pytest.mark.parametrize(
    "fields",
    [
        {"gpus": (Gpus("", 5),)},
        {"gpus": (Gpus("v100", 1),)},
        {"gpus_per_task": (Gpus("t4", 3),), "tasks": 1},
        {"total_gpus": Gpus("", 9)},
        {"total_gpus": Gpus("a100", 5)},
        {"total_gpus": Gpus("", 5), "tasks": 1},
    ],
)
def test_more_gpus_than_there_are_is_refused(fields: dict[str, Any]) -> None:
    refused = gpu_world().submit(**fields)
    assert isinstance(refused, InvalidInput)
    assert refused.field == "nodes"


@pytest.mark.parametrize(
    ("fields", "cause", "remedy"),
    [
        ({"total_gpus": Gpus("", 9)}, "2 nodes with 8 GPUs can be used", "--gpus=8"),
        ({"total_gpus": Gpus("t4", 5)}, "2 nodes with 4 t4 GPUs can be used", "--gpus=t4:4"),
        ({"gpus": (Gpus("", 5),)}, "without these GPUs: 5", "--gpus-per-node=4"),
        ({"gpus": (Gpus("v100", 1),)}, "without these GPUs: 1 v100", "sinfo -Nl"),
    ],
)
def test_refusal_names_the_gpus_and_the_nearest_request(
    fields: dict[str, Any], cause: str, remedy: str
) -> None:
    refused = gpu_world().submit(**fields)
    assert cause in refused.message
    assert remedy in refused.remedy


def test_job_waits_until_its_gpus_are_free_and_others_go_before() -> None:
    world = gpu_world(nodes=1)
    first = world.run_one(gpus=(Gpus("t4", 2),), cpus=1)
    second = world.submit(gpus=(Gpus("t4", 1),), cpus=1)
    world.settle()
    assert (world.state(second), world.reason(second)) == ("PENDING", "Resources")
    third = world.run_one(gpus=(Gpus("a100", 1),), cpus=1, limit=60)
    assert numbers(world.job(third)) == {"n0": (0,)}
    world.end(first)
    world.settle()
    assert numbers(world.job(second)) == {"n0": (2,)}


def test_node_that_lost_a_gpu_gets_no_jobs() -> None:
    world = gpu_world(nodes=1)
    before = world.nodes["n0"].registration()
    lost = msgspec.structs.replace(before.resources, gpus=(A100, Gpus("t4", 1)))
    world.event(before._replace(resources=lost))
    status = world.core.state.nodes["n0"]
    assert status.condition is NodeCondition.DOWN
    assert status.reason == "gres/gpu count reported lower than configured (3 < 4)"


def test_suspended_job_keeps_its_gpus() -> None:
    world = gpu_world(nodes=1)
    first = world.run_one(gpus=(Gpus("t4", 2),))
    world.request(ev.SuspendJob(named(first)), OPERATOR)
    second = world.submit(gpus=(Gpus("t4", 1),))
    world.settle()
    assert (world.state(first), world.state(second)) == ("SUSPENDED", "PENDING")


def test_limit_on_gpus_of_a_type_is_kept() -> None:
    few = AssociationLimits(tres={LimitKind.GRP_TRES: {"gres/gpu:t4": 1}})
    world = gpu_world(
        enforced=Enforced(limits=True),
        associations={
            ("bio", "", ""): LimitRecord(name="bio", limits=few),
            ("bio", "alice", ""): LimitRecord(name="bio", user="alice", parent="bio"),
        },
    )
    world.run_one(gpus=(Gpus("t4", 1),))
    free = world.run_one(gpus=(Gpus("a100", 1),))
    waits = world.submit(gpus=(Gpus("t4", 1),))
    world.settle()
    assert numbers(world.job(free)) == {"n0": (0,)}
    assert (world.state(waits), world.reason(waits)) == ("PENDING", "AssocGrpGRES")


# --- steps


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"n0": (0, 1, 2, 3), "n1": (0, 1, 2, 3)}),
        ({"gpus": ()}, {"n0": (), "n1": ()}),
        ({"gpus": (Gpus("", 1),)}, {"n0": (0,), "n1": (0,)}),
        ({"gpus": (Gpus("t4", 1),), "nodes": 1}, {"n0": (2,)}),
        ({"gpus_per_task": (Gpus("", 2),), "tasks": 3}, {"n0": (0, 1, 2, 3), "n1": (0, 1)}),
        (
            {"gpus_per_task": (Gpus("a100", 1), Gpus("t4", 1)), "tasks": 2, "nodes": 1},
            {"n0": (0, 2, 1, 3)},
        ),
        ({"total_gpus": Gpus("", 5)}, {"n0": (0, 1, 2, 3), "n1": (0,)}),
        ({"total_gpus": Gpus("t4", 1), "tasks": 1}, {"n0": (2,)}),
        (
            {"total_gpus": Gpus("", 5), "tasks": 5, "tasks_per_gpu": 1},
            {"n0": (0, 1, 2), "n1": (0, 1)},  # as its tasks
        ),
        (
            {"total_gpus": Gpus("", 3), "tasks": 6, "tasks_per_gpu": 2, "nodes": 1},
            {"n0": (0, 1, 2)},
        ),
    ],
)
def test_step_gets_gpus_of_its_job(
    fields: dict[str, Any], expected: dict[str, tuple[int, ...]]
) -> None:
    world = gpu_world()
    job = world.run_one(nodes=2, cpus=8, gpus=(A100, T4))
    assert step_numbers(world.step(job, **fields)) == expected


@pytest.mark.parametrize(
    ("fields", "cpus", "memory"),
    [
        ({"gpus": (Gpus("", 2),), "cpus_per_gpu": 3, "memory_per_gpu": 100}, [6], [200]),
        ({"total_gpus": Gpus("", 3), "cpus_per_gpu": 4, "memory_per_gpu": 100}, [8, 4], [200, 100]),
        (
            {
                "gpus_per_task": (Gpus("", 1),), "tasks": 6, "tasks_per_gpu": 2,
                "cpus_per_gpu": 3, "memory_per_gpu": 100,
            },
            [6, 3],
            [200, 100],
        ),
    ],
)  # fmt: skip
def test_cpus_and_memory_go_with_each_gpu(
    fields: dict[str, Any], cpus: list[int], memory: list[int]
) -> None:
    world = gpu_world()
    job = world.job(world.run_one(**fields))
    assert job.run is not None
    grants = job.run.allocation.grants
    assert [grant.cpus for grant in grants] == cpus
    assert [grant.memory for grant in grants] == memory
    assert job.request.tres["cpu"] == sum(cpus)


def test_step_has_cpus_with_each_of_its_gpus() -> None:
    world = gpu_world()
    job = world.run_one(cpus=6, gpus=(Gpus("", 3),))
    one: dict[str, Any] = {"tasks": 1, "exact": True, "cpus_per_gpu": 2}
    step = world.step(job, **one, gpus=(Gpus("", 2),))
    assert isinstance(step, WlmStep)
    assert [len(grant.cores) for grant in step.grants] == [4]
    busy = world.step(job, **one | {"cpus_per_gpu": 3}, gpus=(Gpus("", 1),))
    assert isinstance(busy, Unavailable)
    assert busy.message == BUSY
    world.end_step(step, "n0")
    refused = world.step(job, **one | {"cpus_per_gpu": 3}, gpus=(Gpus("", 3),))
    assert isinstance(refused, Conflict)
    assert "asks for 9 CPUs with 3 GPUs, and its job has 6 on n0" in refused.message


@pytest.mark.parametrize(
    "fields",
    [
        {"gpus": (Gpus("", 3),)},
        {"gpus": (Gpus("t4", 1),)},
        {"gpus_per_task": (Gpus("", 3),)},
        {"total_gpus": Gpus("", 3)},
    ],
)
def test_step_that_asks_for_more_gpus_than_its_job_has_is_refused(fields: dict[str, Any]) -> None:
    world = gpu_world()
    job = world.run_one(cpus=4, gpus=(A100,))
    refused = world.step(job, **fields)
    assert isinstance(refused, InvalidInput)
    assert refused.field == "gres"


def test_step_waits_until_others_free_their_gpus() -> None:
    world = gpu_world(nodes=1)
    job = world.run_one(cpus=4, gpus=(A100,))
    one: dict[str, Any] = {"tasks": 1, "exact": True, "gpus": (Gpus("", 1),)}
    first, second = world.step(job, **one), world.step(job, **one)
    assert (step_numbers(first), step_numbers(second)) == ({"n0": (0,)}, {"n0": (1,)})
    for fields in (one, {"tasks": 1, "exact": True}, {**one, "gpus": None, "total_gpus": A100}):
        waits = world.step(job, **fields)
        assert isinstance(waits, Unavailable)
        assert str(waits.message) == BUSY
    none = world.step(job, tasks=1, exact=True, gpus=())
    assert step_numbers(none) == {"n0": ()}
    shared = world.step(job, tasks=1, overlap=True)
    assert step_numbers(shared) == {"n0": (0, 1)}
    world.end_step(first, "n0")
    assert step_numbers(world.step(job, **one)) == {"n0": (0,)}


# --- no GPU twice


KINDS = ("", "", "a100", "t4")


def random_request(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(KINDS)
    way = chance.randrange(5)
    count = chance.randint(1, 2 if kind else 4)
    if way == 0:
        return {"gpus": (Gpus(kind, count),), "nodes": chance.randint(1, 2)}
    if way == 1:
        return {"gpus_per_task": (Gpus(kind, 1),), "tasks": chance.randint(1, 4)}
    if way == 2:
        return {"total_gpus": Gpus(kind, chance.randint(1, 4 if kind else 8))}
    if way == 3:
        return {"gpus": (Gpus("a100", 1), Gpus("t4", chance.randint(1, 2)))}
    return {"exclusive": True} if chance.random() < 0.2 else {}


def check_gpus(world: World) -> None:
    """Check that no GPU has two jobs or two steps, and that each job has what it asked for."""
    state = world.core.state
    users = Counter[tuple[str, int]]()
    for job in state.jobs.values():
        if job.run is None:
            continue
        for grant in job.run.allocation.grants:
            own = grant.binding.gpus
            if grant.binding.node in job.run.left:
                users.update((grant.binding.node, gpu) for gpu in own)
            assert Counter("a100" if gpu < 2 else "t4" for gpu in own) == dict(grant.gpus)
        wanted, count = job.request.wanted, job.run.allocation.tres.get("gres/gpu", 0)
        assert wanted.exclusive or count >= wanted.gpu_count
        taken = Counter[tuple[str, int]]()
        for step in state.steps_of(job.run.run):
            for step_grant in step.grants:
                assert set(step_grant.gpus) <= set(numbers(job)[step_grant.node])
                if step_grant.node in step.left and not step.request.overlap:
                    taken.update((step_grant.node, gpu) for gpu in step_grant.gpus)
        assert all(number == 1 for number in taken.values())
    assert all(number == 1 for number in users.values()), users


def run_random_jobs(jobs: int, seed: int) -> int:
    """Run random jobs and steps over restarts of controller and nodes. Return the starts."""
    chance, world, begun = random.Random(seed), gpu_world(), set[int]()
    for _ in range(jobs):
        request = random_request(chance)
        world.submit(cpus=1, limit=60, **{"nodes": 1, **request})
        world.settle()
        world.answer_prologs()
        world.begin_all()
        running = [job for job in world.core.state.jobs.values() if job.state.shown == "RUNNING"]
        begun.update(job.number for job in running)
        for job in chance.sample(running, min(len(running), 2)):
            gpus = chance.choice([None, (), (Gpus("", 1),), (Gpus("t4", 1),)])
            world.step(job.number, exact=True, gpus=gpus, overlap=chance.random() < 0.2)
        check_gpus(world)
        for job in running:
            if chance.random() < 0.5:
                world.end(job.number)
        event, victim = chance.random(), chance.choice(running) if running else None
        if event < 0.02:
            world.restart()
        elif event < 0.04:
            world.event(chance.choice([*world.nodes.values()]).registration())
        elif event < 0.06 and victim is not None and world.state(victim.number) == "RUNNING":
            world.request(ev.CancelJob(named(victim.number)))
            world.clear(victim.number)
        world.advance(1)
        check_gpus(world)
    return len(begun)


def test_no_gpu_has_two_jobs() -> None:
    assert run_random_jobs(60, seed=1) > 30


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_no_gpu_has_two_jobs_among_500(seed: int) -> None:
    assert run_random_jobs(500, seed=seed) > 300
