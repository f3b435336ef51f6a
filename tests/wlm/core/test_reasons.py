"""Reasons of jobs: a scenario for each reason that the core gives or passes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from fairbank.cluster.partition_rules import AccessList, PartitionRules, PartitionState
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.time import Instant
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, QosLimits
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.node_states import NodeEvent
from tests.wlm.core.world import OPERATOR, World, named, run_status, submission

MAIN = PartitionRules(name="main", is_default=True)
JOB = 1
"""Number of the job whose reason counts; a scenario may have others."""


def submitted(
    *rules: PartitionRules, on: int = 1, settings: dict[str, Any] | None = None, **job: Any
) -> World:
    """Return a world with so many nodes and the job, after a pass."""
    world = World(*rules, nodes=on, **(settings or {}))
    assert world.submit(**job) == JOB
    world.settle()
    return world


def running(settings: dict[str, Any] | None = None, **job: Any) -> World:
    world = World(nodes=1, **(settings or {}))
    assert world.run_one(**job) == JOB
    return world


def changed(change: ev.RequestBody, **job: Any) -> World:
    """Return a world in which an operator changes something before the first pass."""
    world = World(nodes=1)
    assert world.submit(**job) == JOB
    assert world.request(change, OPERATOR) is None
    world.settle()
    return world


def with_numbers_after_the_job(world: World) -> World:
    """Return the world, in which `number_job` gives the next job the number of the job."""
    world.core.state.counters["job"] = JOB + 1
    return world


def number_job(world: World) -> World:
    world.core.state.counters["job"] = JOB
    return world


def in_queue(*, waiting: int) -> World:
    """Return a world whose node is full, with the job behind so many waiting jobs."""
    world = with_numbers_after_the_job(World(nodes=1))
    world.run_one(cpus=4)
    for _ in range(waiting):
        world.submit(cpus=4)
    assert number_job(world).submit(cpus=4) == JOB
    world.settle()
    return world


def reserve(world: World, begin: int) -> None:
    now = world.now.wall
    reservation = Reservation(
        name="exam", nodes=("n0",), begin=Instant(now + begin), end=Instant(now + begin + 100)
    )
    world.request(ev.SetReservation(reservation), OPERATOR)


def for_reservation(*, is_deleted: bool) -> World:
    world = World(nodes=1)
    reserve(world, 50)
    assert world.submit(reservation="exam") == JOB
    if is_deleted:
        world.request(ev.DeleteReservation("exam"), OPERATOR)
    world.settle()
    return world


def dependent(status: int | None) -> World:
    """Return a world with the job behind a running job, or one that ended with this status."""
    world = with_numbers_after_the_job(World(nodes=1))
    parent = world.run_one()
    assert number_job(world).submit(dependency=f"afterok:{parent}") == JOB
    if status is not None:
        world.end(parent, status)
    world.settle()
    return world


def named_node_drained() -> World:
    world = World(nodes=2)
    world.request(ev.UpdateNode("n0", NodeEvent.DRAINED, "disk"), OPERATOR)
    body = submission()
    wanted = ResourceRequest(required=("n0",))
    world.request(structs.replace(body, job=structs.replace(body.job, wanted=wanted)))
    world.settle()
    return world


def without_its_feature() -> World:
    """Return a world whose node has lost the feature that the job requests, after a restart."""
    world = World(nodes=1)
    node = world.nodes["n0"]
    bare, node.resources = (
        node.resources,
        structs.replace(node.resources, features=frozenset({"fast"})),
    )
    world.restart()
    body = submission(held=True)
    wanted = ResourceRequest(constraint="fast")
    world.request(structs.replace(body, job=structs.replace(body.job, wanted=wanted)))
    node.resources = bare
    world.restart()
    assert world.request(ev.ReleaseJob(named(JOB))) is None
    world.settle()
    return world


def ended(status: int, **job: Any) -> World:
    world = running(**job)
    world.end(JOB, status)
    return world


def after(seconds: int, **job: Any) -> World:
    world = running(**job)
    world.advance(seconds)
    return world


def lost_node() -> World:
    world = running(may_requeue=False)
    world.event(ev.NodeSilent("n0"))
    return world


def failed_launch(*, may_requeue: bool) -> World:
    world = submitted(settings={"max_batch_requeue": 0}, may_requeue=may_requeue)
    run = world.job(JOB).identity("lab")
    world.nodes["n0"].runs[run] = "cleared"
    world.event(ev.RunChanged("n0", run_status(run, "cleared", cause="launch")))
    return world


def requeued() -> World:
    world = running()
    world.request(ev.RequeueJob(named(JOB)))
    return world


def refused_by_bank() -> World:
    world = submitted(settings={"socket": "agent"})
    world.answer_prologs("hold")
    return world


def with_limit(owner: str) -> World:
    limits = AssociationLimits(tres={LimitKind.GRP_TRES: {"cpu": 1}})
    records = [
        LimitRecord(name="bio", limits=limits if owner == "account" else AssociationLimits()),
        LimitRecord(name="bio", user="alice", parent="bio"),
    ]
    qos = QosLimits(name="normal", limits=limits if owner == "QOS" else AssociationLimits())
    settings = {
        "associations": {(one.name, one.user, one.partition): one for one in records},
        "qos": {"normal": qos},
        "enforced": Enforced(limits=True),
    }
    return submitted(settings=settings, cpus=2)


NOT_BIO = AccessList(("bio",), "AccountNotAllowed", denies=True)
NOT_NORMAL = AccessList(("normal",), "QOSNotAllowed", denies=True)
ASSOCIATION = {"associations": {("bio", "alice", ""): LimitRecord(name="bio")}}
ONE_LICENSE = {"licenses": {"matlab": 0}}

SCENARIOS: dict[str, Callable[[], World]] = {
    "None": running,
    "Priority": lambda: in_queue(waiting=1),
    "Resources": lambda: in_queue(waiting=0),
    "Dependency": lambda: dependent(None),
    "DependencyNeverSatisfied": lambda: dependent(256),
    "PartitionNodeLimit": lambda: submitted(structs.replace(MAIN, max_nodes=1), on=2, nodes=2),
    "PartitionTimeLimit": lambda: submitted(structs.replace(MAIN, max_seconds=60)),
    "PartitionDown": lambda: submitted(structs.replace(MAIN, state=PartitionState.DOWN)),
    "PartitionInactive": lambda: changed(
        ev.UpdatePartition(structs.replace(MAIN, state=PartitionState.INACTIVE))
    ),
    "PartitionConfig": lambda: changed(
        ev.UpdatePartition(structs.replace(MAIN, max_cpus_per_node=1)), cpus=2
    ),
    "MaxMemPerLimit": lambda: submitted(structs.replace(MAIN, max_memory_per_node=1), memory=2),
    "QOSNotAllowed": lambda: submitted(structs.replace(MAIN, qos=NOT_NORMAL)),
    "AccountNotAllowed": lambda: submitted(
        structs.replace(MAIN, accounts=NOT_BIO), settings=ASSOCIATION
    ),
    "JobHeldUser": lambda: submitted(held=True),
    "JobHeldAdmin": lambda: changed(ev.HoldJob(named(JOB))),
    "BeginTime": lambda: submitted(eligible=2**31),
    "Licenses": lambda: submitted(settings=ONE_LICENSE, licenses={"matlab": 1}),
    "Reservation": lambda: for_reservation(is_deleted=False),
    "ReservationDeleted": lambda: for_reservation(is_deleted=True),
    "ReqNodeNotAvail": named_node_drained,
    "BadConstraints": without_its_feature,
    "JobArrayTaskLimit": lambda: submitted(array="1-3%1"),
    "AssocGrpCpuLimit": lambda: with_limit("account"),
    "QOSGrpCpuLimit": lambda: with_limit("QOS"),
    "Allocation_exhausted": refused_by_bank,
    "Prolog": lambda: submitted(settings={"socket": "agent"}),
    "Cleaning": requeued,
    "NodeDown": lost_node,
    "JobLaunchFailure": lambda: failed_launch(may_requeue=False),
    "JobHoldMaxRequeue": lambda: failed_launch(may_requeue=True),
    "NonZeroExitCode": lambda: ended(256),
    "RaisedSignal": lambda: ended(9),
    "TimeLimit": lambda: after(600, limit=600),
    "DeadLine": lambda: after(700, limit=5_000, deadline=1_700_000_600),
}


@pytest.mark.parametrize("reason", SCENARIOS)
def test_reason_is_that_of_slurm(reason: str) -> None:
    world = SCENARIOS[reason]()
    assert world.reason(JOB) == reason
    world.restart()
    world.settle()
    assert world.reason(JOB) == reason
