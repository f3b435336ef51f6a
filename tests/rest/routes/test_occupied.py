"""Capacity that runs had, whatever they were charged: of one run, and of the whole centre."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.tres import parse_weights
from fairbank.service import centre as centre_use_case
from tests.rest.responses import data
from tests.rest.world import ADMIN, AGENT, NOW, SUPERUSER, World, create_world, report

FACTORS = {"free": Fraction(0), "half": Fraction(1, 2), "urgent": Fraction(3)}


@pytest.fixture
def world() -> Iterator[World]:
    """Serve a bank where a CPU costs 1 SU an hour in std, 2 SU in big, and nothing in lab."""
    partitions = {
        name: Partition(name, resource, parse_weights(weights))
        for name, resource, weights in (
            ("std", "cpu", "CPU=1.0"),
            ("big", "gpu", "CPU=2.0"),
            ("lab", "cpu", "CPU=0.0"),
        )
    }
    capacity = {"cpu": Fraction(8), "gpu": Fraction(8)}
    alpha = Cluster("alpha", partitions, FACTORS, capacity, {"debug": "cpu"})
    with create_world(clusters={"alpha": alpha}) as world:
        yield world


def run_of(world: World, job_id: int, **more: Any) -> dict[str, Any]:
    """Return the run of a job that had 4 CPUs for an hour: 240 SU-minutes."""
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 3_600, "state": "COMPLETED"}
    sent = {**report(job_id), **ended, "billing": None, "tres": "cpu=4", **more}
    body = {name: value for name, value in sent.items() if value is not None}
    assert world.ask("POST", "/job", AGENT, json=body).status_code == 201
    (row,) = data(world, f"/job?job_id={job_id}")
    return dict(row)


@pytest.mark.parametrize(
    ("facts", "charged", "occupied"),
    [
        ({}, 240, None),  # its cost
        ({"qos": "free"}, 0, 240),
        ({"qos": "half"}, 120, 240),
        ({"qos": "urgent"}, 720, 240),
        ({"state": "NODE_FAIL"}, 0, 240),
        ({"state": "NODE_FAIL", "tres": None, "billing": "3"}, 0, 180),
        # 6 CPUs for 20 minutes and 4 for the other 40: 120 + 160.
        ({"qos": "free", "pieces": [{"seconds": 1_200, "tres": "cpu=6"}]}, 0, 280),
        ({"partition": "lab"}, 0, 0),
        ({"elapsed": 0, "qos": "free"}, 0, None),
        ({"amount": 100, "qos": "half"}, 100, None),  # an amount counts as it is
        ({"amount": 100, "state": "NODE_FAIL"}, 0, 100),
        ({"amount": 0}, 0, 240),
        ({"amount": 0, "tres": None}, 0, None),  # not known
    ],
)
def test_run_has_what_it_occupied_unless_that_is_its_cost(
    world: World, facts: dict[str, Any], charged: int, occupied: int | None
) -> None:
    row = run_of(world, 75, **facts)
    assert (row["charged"], row["occupied"]) == (charged, occupied)


def centre(world: World) -> dict[str, dict[str, Any]]:
    answer = world.ask("GET", f"/centre?since={NOW + 60}&until={NOW + 61}", ADMIN).json()
    return {row["resource"]: row for row in answer["data"]["resources"]}


def test_centre_counts_runs_at_the_resource_of_their_partition(world: World) -> None:
    """QOS debug pays with cpu for a run in partition big, where 4 CPUs for an hour are 480
    SU-minutes of gpu. A partition that the settings lack counts at the resource that paid.
    """
    run_of(world, 75)
    run_of(world, 76, qos="free")
    run_of(world, 77, qos="debug", partition="big")
    run_of(world, 78, partition="gone", resource="cpu", amount=7)
    rows = centre(world)
    shown = ("used", "occupied", "without_size")
    assert [rows["cpu"][name] for name in shown] == [240 + 480 + 7, 240 + 240 + 7, 0]
    assert [rows["gpu"][name] for name in shown] == [0, 480, 0]
    assert rows["gpu"]["display"]["occupied"] == "8"


def test_refund_and_write_off_do_not_make_nodes_idle(world: World) -> None:
    """Of 600,000 SU-minutes 30,000 are charged and 60 held. A run pays 240, of which 200 come back,
    so 569,900 are left for the next.
    """
    run = run_of(world, 75)
    back = {"amount": 200, "comment": "disk failed"}
    assert world.ask("POST", f"/job/{run['id']}/refund", SUPERUSER, json=back).status_code == 201
    assert run_of(world, 76, amount=1_000_000)["written_off"] == 1_000_000 - 569_900
    row = centre(world)["cpu"]
    assert (row["used"], row["occupied"]) == (40 + 569_900, 240 + 1_000_000)


def test_centre_adds_up_more_partitions_than_a_page_has(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(centre_use_case, "PAGE_MAX", 1)
    assert centre(world)["cpu"]["occupied"] == 0  # no run ended
    run_of(world, 75)
    run_of(world, 76, partition="lab")
    run_of(world, 77, partition="gone", resource="cpu", amount=7)
    assert centre(world)["cpu"]["occupied"] == 240 + 7


def test_centre_says_how_many_runs_have_no_size(world: World) -> None:
    run_of(world, 75)
    run_of(world, 76, amount=0, tres=None)
    row = centre(world)["cpu"]
    assert (row["occupied"], row["without_size"]) == (None, 1)
