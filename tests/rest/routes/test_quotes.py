"""Quotes with their calculation, and exact prices of clusters."""

from __future__ import annotations

from tests.rest.responses import data
from tests.rest.world import MEMBER, STRANGER, World


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
                }
            ],
            "qos_factors": {},
            "free_states": ["BOOT_FAIL", "NODE_FAIL"],
        }
    ]
