"""Refused jobs tell what they asked, and what there was where credit was why: null where nobody looked."""

from __future__ import annotations

import pytest

from fairbank.bank.policy import Policy
from fairbank.rest.app import document
from tests.rest.world import AGENT, NOW, SUPERUSER, World, a_world, report

FIGURES = ("asked", "available", "shortfall")
DEAR = {"amount": 10**9}
REPORTS = {
    "OVERDRAWN": (report(1, **DEAR), True),
    "NO_ALLOCATION": (report(1, resource="tape"), True),
    "UNKNOWN_PROJECT": (report(1, account="nobody"), False),
    "NO_HOLD": (report(1, do="adjust"), False),
}


@pytest.mark.parametrize("reason", REPORTS)
def test_a_refusal_tells_what_there_was_only_where_it_is_about_credit(world: World, reason: str) -> None:
    body, has = REPORTS[reason]
    no = world.ask("POST", "/job", AGENT, json=body).json()["refusal"]
    assert no["reason"] == reason
    single = world.ask("GET", f"/failure/{no['entry']}", SUPERUSER).json()["data"]
    (listed,) = world.ask("GET", "/failure?job_id=1", SUPERUSER).json()["data"]
    for row in (single, listed):
        assert [row[each] for each in FIGURES] == ([no[each] for each in FIGURES] if has else [no["asked"], None, None])


def test_what_a_run_without_a_hold_had_cost_is_told() -> None:
    end = report(1, do="complete", amount=300, end=NOW + 60, elapsed=60, state="COMPLETED")
    with a_world(policy=Policy(late_charges=False, clock_tolerance_seconds=60)) as world:
        no = world.ask("POST", "/job", AGENT, json=end).json()["refusal"]
        assert no["reason"] == "NO_HOLD"
        row = world.ask("GET", f"/failure/{no['entry']}", SUPERUSER).json()["data"]
    assert [row[each] for each in FIGURES] == [300, None, None]


def test_the_document_says_that_figures_may_be_null() -> None:
    properties = document()["components"]["schemas"]["FailureRow"]["properties"]
    for each in FIGURES:
        assert {kind["type"] for kind in properties[each]["anyOf"]} == {"integer", "null"}
