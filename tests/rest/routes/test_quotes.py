"""Quotes with their calculation, and exact prices of clusters."""

from __future__ import annotations

from tests.rest.responses import data
from tests.rest.world import MEMBER, STRANGER, World


def test_quote_lists_its_calculation(old_world: World) -> None:
    body = {
        "account": "chem",
        "cluster": "alpha",
        "partition": "std",
        "tres": "cpu=8,mem=64G",
        "time_limit": "12:00:00",
    }
    output = old_world.ask("POST", "/quote", MEMBER, json=body).json()["data"]
    assert (output["billing"], output["factor"], output["seconds"], output["amount"]) == (
        "32",
        "1",
        43_200,
        32 * 720,
    )
    assert [(line["what"], line["weighted"], line["counts"]) for line in output["lines"]] == [
        ("cpu", "8", False),
        ("mem", "32", True),
    ]
    assert (output["allocation"], output["fits"]) == (old_world.own["allocation"], True)
    assert output["after"] == output["available"] - output["amount"]
    assert (output["cluster"], output["longest_seconds"], output["notes"]) == (
        "alpha",
        output["available"] // 32 * 60,
        [],
    )
    before = old_world.entries()
    old_world.ask("POST", "/quote", MEMBER, json=body)
    assert old_world.entries() == before


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
