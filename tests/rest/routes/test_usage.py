"""Usage in groups: charges, idle processors and early failures."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.time import iso
from fairbank.core.tres import parse_weights
from tests.rest.responses import data
from tests.rest.world import ADMIN, AGENT, CLUSTERS, MEMBER, NOW, PI, World, create_world, report


@pytest.mark.parametrize(
    ("by", "group"),
    [
        ("user", MEMBER),
        ("day", iso(NOW)[:10]),
        ("week", "2026-W47"),
        ("month", iso(NOW)[:7]),
        ("project", "chem"),
        ("resource", "cpu"),
        ("cluster", "alpha"),
        ("category", "research"),
        ("partition", ""),
        ("allocation", 1),
        ("qos", "-"),
    ],
)
def test_usage_is_summed_by_group(shared_world: World, by: str, group: object) -> None:
    fields = {
        "runs": 1,
        "failed": 0,
        "charged": 30_000,
        "elapsed": 1_800,
        "core_seconds": 0,
        "gpu_seconds": 0,
        "waited": 3_600,
        "failed_early": 0,
        "early_exit_code": None,
    }
    assert data(shared_world, f"/usage?by={by}") == [
        {
            "group": group,
            "resource": "cpu",
            "clusters": "alpha",
            **fields,
            "cpu_seconds": 0,
            "cpu_given": 0,
            "wasted": None,
        }
    ]


def test_usage_has_the_total_of_each_unit(world: World) -> None:
    """MEMBER used 500 SU, and PI 1 SU: 3 of 4 processors were idle for the minute."""
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED", "amount": 60}
    idle = {"tres": "cpu=4", "cpu_seconds": 60, "owner_uid": PI}
    assert world.ask("POST", "/job", AGENT, json=report(75, **ended, **idle)).status_code == 201
    query = f"/usage?until={NOW + 61}"
    first = world.ask("GET", f"{query}&limit=1", PI).json()
    (total,) = first["totals"]
    unit = total["group"], total["resource"], total["clusters"]
    assert (unit, total["runs"]) == ((None, "cpu", "alpha"), 2)
    assert (total["charged"], total["display"]["charged"]) == (30_060, "501")
    assert [row["charged"] for row in first["data"]] == [60]
    largest = world.ask("GET", f"{query}&limit=1&order=largest", PI).json()
    assert largest["totals"] == [total]
    assert [(row["group"], row["charged"]) for row in largest["data"]] == [
        (MEMBER, 30_000),
        ("(others)", 60),
    ]
    further = world.ask("GET", f"{query}&limit=1&after={quote(first['next'])}", PI).json()
    assert (len(further["data"]), further["totals"]) == (1, [])


def test_default_end_of_usage_is_now_and_the_centre_has_the_same_sum(world: World) -> None:
    """A host whose clock is ahead reported an end 200 s after the bank's time."""
    ended = {"do": "complete", "end": NOW + 200, "elapsed": 60, "state": "COMPLETED"}
    sent = report(75, **ended, amount=60)
    assert world.ask("POST", "/job", AGENT, json=sent).status_code == 201
    usage = world.ask("GET", "/usage", ADMIN).json()
    assert usage["until"] == iso(NOW + 1), "what ended in this second counts"
    centre = world.ask("GET", "/centre", ADMIN).json()["data"]
    assert centre["until"] == usage["until"]
    assert usage["totals"][0]["charged"] == 60_000
    assert sum(row["used"] for row in centre["resources"]) == 60_000
    later = world.ask("GET", f"/usage?until={NOW + 201}", ADMIN).json()
    assert later["totals"][0]["charged"] == 60_060


def test_waste_that_is_not_known_has_no_figure(world: World) -> None:
    (row,) = world.ask("GET", "/usage", PI).json()["data"]
    assert (row["cpu_given"], row["wasted"]) == (0, None)


def test_credit_of_several_prices_has_no_sum_of_use() -> None:
    """An SU of cpu pays on alpha, and on beta, where a processor costs twice as much."""
    dear = Cluster("beta", {"std": Partition("std", "cpu", parse_weights("CPU=2.0"))}, {})
    with create_world(clusters={**CLUSTERS, "beta": dear}) as world:
        rows = world.ask("GET", f"/centre?until={NOW + 1}", ADMIN).json()["data"]["resources"]
    assert [(row["clusters"], row["several_prices"], row["used"]) for row in rows] == [
        ("", True, None),
        ("alpha", False, 60_000),
        ("beta", False, 0),
    ]


def test_usage_is_grouped_by_qos(world: World) -> None:
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED"}
    for number, qos, amount in (
        (75, "high", 100),
        (76, "normal", 20),
        (77, "high", 3),
        (78, None, 4),
    ):
        assert (
            world.ask(
                "POST", "/job", AGENT, json=report(number, **ended, qos=qos, amount=amount)
            ).status_code
            == 201
        )
    assert data(world, "/job?job_id=75")[0]["qos"] == "high"
    query = f"/usage?by=qos&since={NOW + 60}&until={NOW + 61}"
    assert [(row["group"], row["charged"]) for row in data(world, query)] == [
        ("-", 4),
        ("high", 103),
        ("normal", 20),
    ]
    page = world.ask("GET", f"{query}&limit=1", PI).json()
    assert page["next"] == '["-","cpu","alpha"]'
    after = quote(page["next"])
    assert [row["group"] for row in data(world, f"{query}&after={after}")] == ["high", "normal"]
    largest = world.ask("GET", f"{query}&limit=2&order=largest", PI).json()
    others = {"group": "(others)", "runs": 1, "failed": 0, "charged": 4, "elapsed": 60}
    assert [row["group"] for row in largest["data"]] == ["high", "normal", "(others)"]
    assert largest["data"][2].items() >= others.items()
    assert largest["next"] is None
    assert data(world, f"{query}&limit=3&order=largest")[-1]["group"] == "-", "nothing is left"


def test_usage_counts_idle_cpus_and_early_failures(world: World) -> None:
    fields = {
        "do": "complete",
        "end": NOW + 60,
        "elapsed": 60,
        "state": "FAILED",
        "amount": 100,
        "tres": "cpu=4",
    }
    for number, more in (
        (71, {"exit_code": 127}),
        (72, {"exit_code": 127, "cpu_seconds": 60}),
        (73, {"exit_signal": 9}),
    ):
        assert (
            world.ask("POST", "/job", AGENT, json=report(number, **fields, **more)).status_code
            == 201
        )
    row = data(world, f"/usage?since={NOW + 60}&until={NOW + 61}")[0]
    assert [
        row[field]
        for field in ("cpu_seconds", "cpu_given", "wasted", "failed_early", "early_exit_code")
    ] == [60, 240, 75, 3, None]
    world.ask("POST", "/job", AGENT, json=report(74, **{**fields, "end": NOW + 90}, exit_code=127))
    assert data(world, f"/usage?since={NOW + 90}&until={NOW + 91}")[0]["early_exit_code"] == 127


def test_days_and_times_are_those_of_the_requested_zone(shared_world: World) -> None:
    # The job ended at NOW, 2026-11-18T11:06:40Z: there the next day has begun.
    query = "/usage?by=day&zone=Pacific/Kiritimati"
    answer = shared_world.ask("GET", query, PI).json()
    assert ([row["group"] for row in answer["data"]], answer["zone"]) == (
        ["2026-11-19"],
        "Pacific/Kiritimati",
    )
    assert len(data(shared_world, f"{query}&since=2026-11-19&until=2026-11-20")) == 1
    assert data(shared_world, f"{query}&since=2026-11-18&until=2026-11-19") == []


def test_unknown_zone_is_refused(shared_world: World) -> None:
    answer = shared_world.ask("GET", "/usage?by=day&zone=Rome", PI)
    assert (answer.status_code, answer.json()["field"]) == (400, "zone")


def test_usage_of_several_accounts_users_and_resources_is_one_answer(world: World) -> None:
    """MEMBER used 500 SU of cpu for chem, PI 1 SU; no other account or resource has any."""
    ended = {"do": "complete", "end": NOW + 60, "elapsed": 60, "state": "COMPLETED", "amount": 60}
    assert (
        world.ask("POST", "/job", AGENT, json=report(78, owner_uid=PI, **ended)).status_code == 201
    )

    def charged(query: str) -> list[tuple[object, int]]:
        rows = world.ask("GET", f"/usage?until={NOW + 61}&{query}", ADMIN).json()["data"]
        return [(row["group"], row["charged"]) for row in rows]

    both = [(PI, 60), (MEMBER, 30_000)]
    assert sorted(charged("account=chem&account=nosuch"), key=lambda row: row[1]) == both
    assert sorted(charged("account=chem&resource=gpu&resource=cpu"), key=lambda row: row[1]) == both
    assert charged(f"owner_uid={PI}&owner_uid=99999") == both[:1]
    assert charged("account=nosuch&account=other") == []
    assert charged("order=largest&limit=1&account=chem") == [(MEMBER, 30_000), ("(others)", 60)]


def test_latest_days_are_kept_and_the_others_added_up(world: World) -> None:
    day = 86_400
    for number in range(3):
        at = NOW - number * day
        ended = {"do": "complete", "end": at, "elapsed": 60, "state": "COMPLETED", "amount": 60}
        sent = report(80 + number, submitted=at - 120, start=at - 60, **ended)
        assert world.ask("POST", "/job", AGENT, json=sent).status_code == 201
    query = f"/usage?by=day&until={NOW + 1}&order=largest&limit=2"
    rows = world.ask("GET", query, ADMIN).json()["data"]
    days = [iso(NOW - day)[:10], iso(NOW)[:10], "(others)"]
    assert [(row["group"], row["charged"]) for row in rows] == [
        (days[0], 60),
        (days[1], 60_060),
        (days[2], 60),
    ]
