"""Nodes, resource requests of jobs, and reservations: accepted and rejected values."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant


def test_node_has_resources_and_a_usable_state() -> None:
    node = Node(
        name="lx1",
        cpus=33,
        threads=2,
        memory=4096,
        gpus=(Gpus("a100", 4),),
        features=frozenset({"1200MHz"}),
    )
    assert node.cores == 16
    assert [state for state in NodeState if not state.is_usable] == [
        NodeState.DRAINED,
        NodeState.FAILED,
        NodeState.DOWN,
        NodeState.NOT_RESPONDING,
        NodeState.FUTURE,
    ]
    assert NodeState.UP.penalty < NodeState.POWERING_UP.penalty < NodeState.POWERED_DOWN.penalty


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "lx[1-2]"}, "name"),
        ({"name": ""}, "name"),
        ({"cpus": 0}, "lx.cpus"),
        ({"cpus": 4, "threads": 8}, "lx.threads"),
        ({"memory": -1}, "lx.memory"),
        ({"tmp": 2**31}, "lx.tmp"),
        ({"weight": -1}, "lx.weight"),
        ({"gpus": (Gpus("a100", 0),)}, "lx.gpus"),
        ({"gpus": (Gpus("a100", 1), Gpus("a100", 2))}, "lx.gpus"),
        ({"features": frozenset({"a|b"})}, "lx.features"),
    ],
)
def test_impossible_node_is_reported_with_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as no:
        Node(**({"name": "lx"} | fields))
    assert no.value.field == field
    assert re.fullmatch(
        r"a whole number from [01] to \d+|give each type once|one host, without blanks.*|a word"
        r" without blanks.*",
        no.value.remedy or "",
    )


def test_job_runs_one_task_per_node_by_default() -> None:
    assert ResourceRequest(nodes=4).least_tasks == 4
    assert ResourceRequest(nodes=4, tasks=6, cpus_per_task=2).cpus == 12
    assert ResourceRequest(nodes=4, cpus_per_node=8).cpus == 4  # as Slurm counts --mincpus
    assert ResourceRequest(nodes=4, min_cpus=6).cpus == 6


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": 4, "max_nodes": 3}, "max_nodes"),
        ({"tasks": 0}, "tasks"),
        ({"nodes": 2, "max_nodes": 2, "tasks": 9, "tasks_per_node": 4}, "tasks_per_node"),
        ({"cpus_per_task": 0}, "cpus_per_task"),
        ({"memory_per_node": 1, "memory_per_cpu": 1}, "memory_per_cpu"),
        ({"exclusive": True, "shared": True}, "shared"),
        ({"max_nodes": 1, "required": ("a", "b")}, "required"),
        ({"required": ("a", "b"), "excluded": ("b",)}, "excluded"),
        ({"gpus": (Gpus("", -1),)}, "gpus"),
    ],
)
def test_job_that_contradicts_itself_is_explained(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as no:
        ResourceRequest(**fields)
    assert no.value.field == field
    assert re.fullmatch(
        r"a whole number from 1 to 2147483647|4 or more|name at most 1|name it in one of the"
        r" lists|name one of them|ask for more nodes, .*",
        no.value.remedy or "",
    )


def reservation(**fields: Any) -> Reservation:
    whole: dict[str, Any] = {
        "name": "class",
        "nodes": ("n1",),
        "begin": Instant(100),
        "end": Instant(200),
    } | fields
    return Reservation(**whole)


def test_reservation_admits_its_users_from_start_to_end() -> None:
    theirs = reservation(users=frozenset({"ada"}), accounts=frozenset({"physics"}))
    assert theirs.is_for("ada", "chemistry")
    assert theirs.is_for("bob", "physics")
    assert not theirs.is_for("bob", "chemistry")
    assert reservation().is_for("bob", "chemistry")
    assert [theirs.is_active(Instant(at)) for at in (99, 100, 199, 200)] == [
        False,
        True,
        True,
        False,
    ]
    assert [theirs.is_over(Instant(at)) for at in (199, 200)] == [False, True]


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"name": ""}, "name"), ({"end": Instant(100)}, "end"), ({"nodes": ()}, "nodes")],
)
def test_impossible_reservation_is_reported(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as no:
        reservation(**fields)
    assert no.value.field == f"reservation.{field}"
