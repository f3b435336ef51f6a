"""Amounts of refused jobs: null unless credit is the reason."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.time import iso
from fairbank.rest.app import document
from tests.rest.responses import data
from tests.rest.world import (
    AGENT,
    DAY,
    MEMBER,
    NOW,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    grant,
    report,
)

AMOUNTS = ("requested", "available", "shortfall")
EXPENSIVE = {"amount": 10**9}
REPORTS = {
    "INSUFFICIENT_CREDIT": (report(1, **EXPENSIVE), True),
    "NO_ALLOCATION": (report(1, resource="tape"), True),
    "UNKNOWN_PROJECT": (report(1, account="nobody"), False),
    "NO_HOLD": (report(1, do="adjust"), False),
}


@pytest.mark.parametrize("reason", REPORTS)
def test_refusal_has_available_credit_only_if_credit_is_the_reason(
    world: World, reason: str
) -> None:
    body, has = REPORTS[reason]
    refusal = world.ask("POST", "/job", AGENT, json=body).json()["refusal"]
    assert refusal["reason"] == reason
    single = world.ask("GET", f"/failure/{refusal['entry']}", SUPERUSER).json()["data"]
    (listed,) = world.ask("GET", "/failure?job_id=1", SUPERUSER).json()["data"]
    for row in (single, listed):
        assert amounts_of(row) == amounts_of(refusal)
    assert refusal["requested"] is not None
    assert [refusal[name] is None for name in AMOUNTS[1:]] == [not has, not has]


def amounts_of(row: dict[str, Any]) -> list[int | None]:
    return [row[name] for name in AMOUNTS]


WITHDRAW, OVERLAPPING = (
    {"amount": 10**9, "comment": "audit"},
    {"start": NOW, "end": NOW + 60, "comment": "more"},
)


@pytest.mark.parametrize(
    ("path", "body", "reason", "amounts"),
    [
        ("/alloc/{allocation}/withdraw", WITHDRAW, "NOT_ENOUGH", [10**9, 569_940, 10**9 - 569_940]),
        (
            "/job/{job}/refund",
            {"amount": 30_001, "comment": "too much"},
            "REFUND_TOO_LARGE",
            [30_001, 30_000, 1],
        ),
        (
            "/alloc/{allocation}/deposit",
            {"amount": 10**15, "comment": "?"},
            "TOO_LARGE",
            [10**15, None, None],
        ),
        (
            "/alloc",
            {"project": 1, "resource": "cpu", "category": "research", **OVERLAPPING},
            "OVERLAP",
            [None, None, None],
        ),
    ],
)
def test_refused_movement_has_amounts_only_if_they_are_the_reason(
    world: World, path: str, body: dict[str, Any], reason: str, amounts: list[int | None]
) -> None:
    if reason == "TOO_LARGE":  # almost the largest amount of an allocation
        for _ in range(9):
            world.ask("POST", path.format(**world.own), SUPERUSER, json=body)
    refusal = world.ask("POST", path.format(**world.own), SUPERUSER, json=body).json()["refusal"]
    assert (refusal["reason"], amounts_of(refusal)) == (reason, amounts)


def test_refusals_of_an_unknown_account_are_found_by_its_name(world: World) -> None:
    assert world.ask("POST", "/job", AGENT, json=report(78, account="nope")).status_code == 404
    assert [row["job_id"] for row in data(world, "/failure?account=nope", SUPERUSER)] == [78]
    assert [row["job_id"] for row in data(world, "/failure?account=nope", MEMBER)] == [78], (
        "the job's owner"
    )
    assert data(world, "/failure?account=nope", STRANGER) == []
    assert data(world, "/failure?account=nope&project=1", SUPERUSER) == []


def test_refused_reports_of_a_batch_have_the_same_amounts(world: World) -> None:
    rows = world.ask(
        "POST", "/job/bulk", AGENT, json={"reports": [body for body, _ in REPORTS.values()]}
    ).json()["data"]
    has_available = {
        row["refusal"]["reason"]: row["refusal"]["available"] is not None for row in rows
    }
    assert has_available == {reason: has for reason, (_, has) in REPORTS.items()}


def test_refusal_without_a_hold_has_the_cost_of_the_run() -> None:
    end = report(1, do="complete", amount=300, end=NOW + 60, elapsed=60, state="COMPLETED")
    with create_world(policy=Policy(late_charges=False, clock_tolerance_seconds=60)) as world:
        refusal = world.ask("POST", "/job", AGENT, json=end).json()["refusal"]
        assert refusal["reason"] == "NO_HOLD"
        row = world.ask("GET", f"/failure/{refusal['entry']}", SUPERUSER).json()["data"]
    assert amounts_of(row) == amounts_of(refusal) == [300, None, None]


@pytest.mark.parametrize("shape", ["FailureRow", "RefusalDetails"])
def test_document_marks_amounts_of_refusals_as_nullable(shape: str) -> None:
    properties = document()["components"]["schemas"][shape]["properties"]
    for name in AMOUNTS:
        assert {kind["type"] for kind in properties[name]["anyOf"]} == {"integer", "null"}


def test_refused_job_names_the_nearest_allocation(world: World) -> None:
    allocation = world.ask(
        "POST", "/alloc", SUPERUSER, json=grant(start=iso(NOW - 600), amount=600)
    ).json()["data"]["id"]
    early = report(7, resource="gpu", start=NOW - 900, submitted=NOW - 900)
    refusal = world.ask("POST", "/job", AGENT, json=early).json()
    assert (
        refusal["detail"] == "the project has no allocation of this resource at this time: "
        f"the start of the job is {iso(NOW - 900)},"
        f" allocation {allocation} begins at {iso(NOW - 600)}."
    )
    assert (
        refusal["remedy"] == f"let it begin earlier, by staff: fairbank alloc set {allocation}"
        f" --start {iso(NOW - 900)} --reason '...'"
    )
    row = world.ask("GET", f"/failure/{refusal['refusal']['entry']}", SUPERUSER).json()["data"]
    assert (row["detail"], row["remedies"]) == (refusal["detail"], refusal["refusal"]["remedies"])
    world.ask(
        "PATCH",
        f"/alloc/{allocation}",
        SUPERUSER,
        json={"start": NOW - 900, "comment": "its job began earlier"},
    )
    assert (
        world.ask("POST", "/job", AGENT, json=early | {"submitted": NOW - 899}).status_code == 201
    )


def test_refused_job_without_allocation_names_the_account(world: World) -> None:
    refusal = world.ask("POST", "/job", AGENT, json=report(7, resource="tape")).json()
    assert (
        refusal["remedy"]
        == f"an allocation, by staff: fairbank alloc create -A chem -r tape --start {iso(NOW)}"
        " --end ... --reason '...'"
    )


def test_batch_names_the_nearest_allocation_of_each_job(world: World) -> None:
    allocation = world.ask(
        "POST", "/alloc", SUPERUSER, json=grant(start=iso(NOW - 600), amount=600)
    ).json()["data"]["id"]
    early, long_ago = (
        report(7, resource="gpu", start=NOW - 900, submitted=NOW - 900),
        report(8, account="bio", start=NOW - 100 * DAY, submitted=NOW - 100 * DAY),
    )
    fine, expensive, none = report(9), report(10, **EXPENSIVE), report(11, resource="tape")
    rows = world.ask(
        "POST", "/job/bulk", AGENT, json={"reports": [early, fine, expensive, long_ago, none]}
    ).json()["data"]
    assert [row["status"] for row in rows] == [402, 201, 402, 402, 402]
    assert f"allocation {allocation} begins at {iso(NOW - 600)}" in rows[0]["detail"]
    assert (
        f"allocation {world.foreign['allocation']} begins at {iso(NOW - 90 * DAY)}"
        in rows[3]["detail"]
    )
    for row, body in zip(rows, (early, fine, expensive, long_ago, none), strict=True):
        if body is not fine:
            alone = world.ask("POST", "/job", AGENT, json=body).json()
            assert (row["detail"], row["refusal"]["remedies"][-1]) == (
                alone["detail"],
                alone["refusal"]["remedies"][-1],
            )
