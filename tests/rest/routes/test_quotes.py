"""Quotes with their calculation, and exact prices of clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairbank.cluster.allocated_tres import NodeSize
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import Instant, iso
from fairbank.core.tres import parse_weights
from tests.rest.responses import data
from tests.rest.world import (
    AGENT,
    CLUSTERS,
    COORDINATOR,
    DAY,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    report,
)


def test_quote_lists_its_calculation(shared_world: World) -> None:
    body = {
        "account": "chem",
        "cluster": "alpha",
        "partition": "std",
        "tres": "cpu=8,mem=64G",
        "time_limit": "12:00:00",
    }
    quote = shared_world.ask("POST", "/quote", MEMBER, json=body).json()["data"]
    assert (quote["billing"], quote["factor"], quote["seconds"], quote["amount"]) == (
        "32",
        "1",
        43_200,
        32 * 720,
    )
    assert [(line["what"], line["weighted"], line["counts"]) for line in quote["lines"]] == [
        ("cpu", "8", False),
        ("mem", "32", True),
    ]
    assert (quote["allocation"], quote["fits"]) == (shared_world.own["allocation"], True)
    assert quote["after"] == quote["available"] - quote["amount"]
    assert (quote["cluster"], quote["longest_seconds"], quote["notes"]) == (
        "alpha",
        quote["available"] // 32 * 60,
        [],
    )
    before = shared_world.entries()
    shared_world.ask("POST", "/quote", MEMBER, json=body)
    assert shared_world.entries() == before


def test_quote_of_an_array_is_that_of_all_its_tasks(shared_world: World) -> None:
    body = {"account": "chem", "partition": "std", "tres": "cpu=8", "time_limit": 3_600}
    one = shared_world.ask("POST", "/quote", MEMBER, json=body).json()["data"]
    assert (one["amount"], one["tasks"], one["total"]) == (480, 1, 480)
    tasks = one["available"] // 480
    for number, fits in ((tasks, True), (tasks + 1, False)):
        array = shared_world.ask("POST", "/quote", MEMBER, json={**body, "tasks": number}).json()
        assert (array["data"]["amount"], array["data"]["total"]) == (480, 480 * number)
        assert array["data"]["after"] == one["available"] - 480 * number
        assert array["data"]["fits"] == fits
    assert array["data"]["longest_seconds"] == 59 * 60


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        ({"exclusive": True}, "exclusive", "clusters.alpha.partitions.std.node_cpus"),
        ({"mem": "0"}, "mem", "clusters.alpha.partitions.std.node_memory"),
        ({"tres": "cpu=1,mem=0"}, "mem", "clusters.alpha.partitions.std.node_memory"),
        ({"mem": "-1"}, "mem", "16G or 4000M"),
        ({"mem_per_cpu": "1G", "mem": "1G"}, "mem_per_cpu", "one of mem in tres"),
        ({"tres": "cpu=1,mem=1G", "mem_per_gpu": "1G"}, "mem_per_gpu", "one of mem in tres"),
        ({"partition": None}, "partition", "there are: std"),
        ({"partition": "std,nosuch"}, "partition", "there are: std"),
        ({"partition": "std,"}, "partition", "printable text"),
    ],
)
def test_quote_of_an_unknown_size_or_place_is_refused(
    shared_world: World, change: dict[str, object], field: str, remedy: str
) -> None:
    job = {"account": "chem", "partition": "std", "tres": "cpu=8", "time_limit": 3_600, **change}
    problem = shared_world.ask("POST", "/quote", MEMBER, json=job).json()
    assert problem["field"] == field
    assert remedy in problem["remedy"]


def test_quote_in_a_partition_of_whole_nodes_is_that_of_exclusive() -> None:
    """A node has 16 CPUs, which cost 16 SU an hour; 8 CPUs take two such nodes with -N 2."""
    std = msgspec.structs.replace(
        CLUSTERS["alpha"].partitions["std"], size=NodeSize(16, 65_536, {}), exclusive=True
    )
    alpha = msgspec.structs.replace(CLUSTERS["alpha"], partitions={"std": std})
    job = {"account": "chem", "partition": "std", "tres": "cpu=8,node=2,mem=1G"}
    with create_world(clusters={"alpha": alpha}) as world:
        quotes = [
            world.ask("POST", "/quote", MEMBER, json={**job, **more, "time_limit": 3_600}).json()
            for more in ({}, {"exclusive": True})
        ]
    assert [quote["data"]["amount"] for quote in quotes] == [2 * 16 * 60, 2 * 16 * 60]
    assert [quote["data"]["notes"] for quote in quotes] == [
        ["each job takes whole nodes in partition std"],
        [],
    ]


def test_tres_that_slurm_has_allocated_are_priced_on_nodes_of_other_settings() -> None:
    """The agent quotes what a held job would hold, to release it; the settings may be older."""
    std = msgspec.structs.replace(
        CLUSTERS["alpha"].partitions["std"], size=NodeSize(16, 65_536, {"gres/gpu:a100": 4})
    )
    alpha = msgspec.structs.replace(CLUSTERS["alpha"], partitions={"std": std})
    job = {
        "account": "chem",
        "partition": "std",
        "tres": "cpu=1,gres/gpu:h100=1",
        "time_limit": 3_600,
    }
    with create_world(clusters={"alpha": alpha}) as world:
        quote = world.ask("POST", "/quote", MEMBER, json=job).json()["data"]
        request = {**job, "node_requests": {"--gres": "gres/gpu:h100=1"}}
        refused = world.ask("POST", "/quote", MEMBER, json=request)
    assert (quote["amount"], quote["fits"]) == (60, True)
    assert (
        "the job asks for gres/gpu:h100, and the nodes of partition std have none" in quote["notes"]
    )
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith("Slurm cannot run this job: --gres asks for")


def test_short_term_allocation_decides_on_the_place_of_a_new_job() -> None:
    """All jobs of chem go to partition course and reservation school for now, and no others. A core
    of std costs 1 SU an hour, one of course 2.
    """
    course = Partition("course", "gpu", parse_weights("CPU=2.0"))
    partitions = {**CLUSTERS["alpha"].partitions, "course": course}
    alpha = Cluster("alpha", partitions, default_partition="std")
    terms = {"start": NOW - DAY, "end": NOW + DAY, "amount": 6_000, "category": "startup"}
    place = {"partition": "course", "reservation": "school"}
    job = {"account": "chem", "tres": "cpu=8", "time_limit": 3_600}
    with create_world(clusters={"alpha": alpha}) as world:
        body = {"project": 1, "resource": "gpu", **terms, **place, "comment": "spring school"}
        granted = world.ask("POST", "/alloc", SUPERUSER, json=body)
        assert granted.status_code == 201, granted.json()

        def quoted(uid: int, **more: object) -> dict[str, Any]:
            return dict(world.ask("POST", "/quote", uid, json={**job, **more}).json())

        quotes = [quoted(MEMBER, **more)["data"] for more in ({}, {"partition": "std"}, place)]
        for quote in quotes:
            assert (quote["partition"], quote["reservation"]) == ("course", "school")
            assert (quote["resource"], quote["amount"], quote["fits"]) == ("gpu", 16 * 60, True)
            assert quote["allocation"] == granted.json()["data"]["id"]
        replaced = "partition std replaced by course, where all jobs of chem run: leave out"
        assert [quote["notes"] for quote in quotes] == [[], [f"{replaced} --partition"], []]
        # A job that waits since before stays where it is.
        waiting = quoted(MEMBER, partition="std", waiting=True)["data"]
        assert (waiting["partition"], waiting["reservation"]) == ("std", None)
        for field, name in place.items():
            refused = quoted(OTHER_PI, account="bio", **{field: name})
            assert (refused["status"], refused["field"]) == (403, field)
            assert refused["detail"] == (
                f"{field} {name} takes no job of bio until {iso(NOW + DAY)}: a short-term"
                " allocation of another project has it"
            )
        assert refused["remedy"] == "leave out --reservation"
        refused = quoted(OTHER_PI, account="bio", partition="std,course")
        assert refused["remedy"] == "name another partition: std"
        assert quoted(OTHER_PI, account="bio")["data"]["partition"] == "std"
        hidden = quoted(OTHER_PI, account="bio", partition="none")
        assert (hidden["status"], hidden["remedy"]) == (404, "there are: std")
        world.clock.at = Instant(NOW + DAY)
        assert quoted(MEMBER)["data"]["partition"] == "std"
        assert quoted(OTHER_PI, account="bio", partition="course")["data"]["partition"] == "course"


def freeze(world: World) -> None:
    change = {"event": "freeze", "comment": "x"}
    path = f"/alloc/{world.own['allocation']}"
    assert world.ask("PATCH", path, SUPERUSER, json=change).status_code < 300


def cap(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/cap/{MEMBER}"
    assert world.ask("PUT", path, PI, json={"cap": 50_000}).status_code < 300


def let_expire(world: World) -> None:
    world.clock.at = Instant(NOW + 400 * DAY)


@pytest.mark.parametrize(
    ("reason", "hours", "change"),
    [
        ("INSUFFICIENT_CREDIT", 48, None),
        ("FROZEN", 1, freeze),
        ("CAPPED", 1, cap),
        ("NO_ALLOCATION", 1, let_expire),
    ],
)
def test_quote_refuses_in_the_words_of_the_refusal(
    world: World, reason: str, hours: int, change: Callable[[World], None] | None
) -> None:
    """Staff and the owner of the job get all remedies, others of the project no other projects."""
    if change is not None:
        change(world)
    job = {"account": "chem", "partition": "std", "tres": "cpu=400", "time_limit": 3_600 * hours}
    start = world.clock.now()
    refused = world.ask(
        "POST",
        "/job",
        AGENT,
        json=report(77, start=start, submitted=start, time_limit=3_600 * hours, billing=400),
    ).json()
    for uid, owner in ((MEMBER, None), (SUPERUSER, MEMBER), (COORDINATOR, MEMBER)):
        quote = world.ask("POST", "/quote", uid, json={**job, "owner_uid": owner}).json()["data"]
        assert (quote["fits"], quote["reason"]) == (False, reason)
        assert quote["detail"] == refused["detail"]
        assert quote["remedies"] == refused["refusal"]["remedies"]


def test_cap_of_the_owner_of_the_job_counts(world: World) -> None:
    cap(world)
    job = {"account": "chem", "partition": "std", "tres": "cpu=400", "time_limit": 3_600}
    own = world.ask("POST", "/quote", PI, json=job).json()["data"]
    assert (own["reason"], own["detail"], own["remedies"]) == (None, None, [])
    theirs = world.ask("POST", "/quote", PI, json={**job, "owner_uid": MEMBER}).json()["data"]
    assert theirs["reason"] == "CAPPED"


def test_cluster_prices_are_exact(world: World) -> None:
    assert data(world, "/cluster", STRANGER) == [
        {
            "name": "alpha",
            "partitions": [
                {
                    "name": "std",
                    "resource": "cpu",
                    "weights": {"cpu": "1", "mem": "1/2048"},
                    "adding": "max_tres",
                    "node_cpus": None,
                    "node_memory": None,
                    "node_gres": None,
                    "node_kinds": [],
                    "def_mem": None,
                    "def_mem_per": None,
                    "exclusive": False,
                }
            ],
            "qos_factors": {},
            "qos_resources": {},
            "free_states": ["BOOT_FAIL", "NODE_FAIL"],
            "default_partition": None,
            "categories": [],
        }
    ]
