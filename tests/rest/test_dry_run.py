"""Dry runs over HTTP: each gets the result of the request and changes nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fairbank.rest.app import document
from tests.rest.operations import FOREIGN, NOBODYS, OWN, Call, account, operations
from tests.rest.permissions import EXPECTED, ROLES, RoleRequests
from tests.rest.world import PI, STRANGER, SUPERUSER, World

WHY = {"comment": "a test"}
OPERATIONS = """
    enter_project amend_project remove_project set_member remove_member
    open_allocation amend_allocation remove_allocation set_cap
    deposit withdraw transfer refund_job undo_entry
    make_token revoke_token
""".split()


def as_dry_run(made: Call) -> Call:
    return made._replace(path=f"{made.path}?dry-run=true")


def test_every_route_that_changes_the_ledger_has_a_dry_run() -> None:
    takes = {
        operation["operationId"]
        for item in document()["paths"].values()
        for operation in item.values()
        if any(parameter["name"] == "dry-run" for parameter in operation.get("parameters", ()))
    }
    changing = {operation for operation, (method, _) in operations().items() if method != "GET"}
    assert (
        takes - {"record_shares", "report_run"}
        == set(OPERATIONS)
        == changing - {"report_run", "report_runs", "quote_job", "record_shares"}
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_dry_run_gets_the_status_of_the_request(
    role_requests: RoleRequests, operation: str
) -> None:
    """In each role, and for own, foreign and missing objects: the same refusal, or as many entries
    as the request writes.
    """
    world = role_requests.world
    for whose in (OWN, FOREIGN, NOBODYS):
        for role in ROLES:
            made, cell = role_requests.call(operation, whose, role), (whose, role)
            before = world.entries()
            planned = role_requests.send(as_dry_run(made), role)
            assert world.entries() == before, cell
            real = role_requests.send(made, role)
            if real.is_success:
                assert (planned.status_code, planned.json()["schema"]) == (
                    200,
                    "fairbank.planned-entry/1",
                ), cell
                assert world.entries() == before + len(planned.json()["data"]), cell
            else:
                assert (planned.status_code, planned.text) == (real.status_code, real.text), cell
                assert str(real.status_code) == EXPECTED[operation, whose, role], cell


def ask(
    world: World, uid: int, method: str, path: str, **body: Any
) -> tuple[httpx.Response, httpx.Response]:
    """Return the result of a dry run, and of the request after it."""
    entries = world.entries()
    planned = world.ask(method, f"{path}?dry-run=true", uid, json=body or None)
    assert world.entries() == entries
    return planned, world.ask(method, path, uid, json=body or None)


def entry(planned: httpx.Response) -> dict[str, Any]:
    (planned_entry,) = planned.json()["data"]
    return dict(planned_entry)


def test_dry_run_shows_no_number_of_a_new_object(world: World) -> None:
    planned, made = ask(world, SUPERUSER, "POST", "/project", gname="lab7", gid=50_007)
    assert entry(planned)["details"] == {
        "gname": "lab7",
        "gid": 50_007,
        "account": "lab7",
        "parent": None,
    }
    planned, _ = ask(
        world, SUPERUSER, "PATCH", f"/project/{made.json()['data']['id']}", gname="lab8"
    )
    assert (entry(planned)["details"]["project"], entry(planned)["details"]["gname"]) == (
        made.json()["data"]["id"],
        "lab8",
    )
    terms = {
        "account": "lab7",
        "resource": "cpu",
        "category": "research",
        "start": "2026-11-01",
        "end": "2027-11-01",
    }
    planned, _ = ask(world, SUPERUSER, "POST", "/alloc", **terms, amount=60, credit_limit=6, **WHY)
    assert [
        (row["kind"], row["allocation"], row["available"]) for row in planned.json()["data"]
    ] == [("open", None, 6), ("deposit", None, 66)]


def test_dry_run_of_a_token_creates_none_and_shows_no_secret(world: World) -> None:
    planned, made = ask(world, PI, "POST", "/token", label="laptop", scopes=["read"], days=3)
    assert sorted(entry(planned)["details"]) == [
        "created",
        "expires",
        "label",
        "parent",
        "revoked",
        "scopes",
        "uid",
    ]
    assert "secret" not in planned.text
    number = made.json()["data"]["id"]
    planned, _ = ask(world, PI, "DELETE", f"/token/{number}")
    assert (entry(planned)["details"]["token"], entry(planned)["details"]["revoked"]) == (
        number,
        int(world.clock.now()),
    )
    planned, made = ask(world, PI, "POST", "/token", label="mighty", scopes=["agent:alpha"])
    assert (
        (planned.status_code, planned.json())
        == (made.status_code, made.json())
        == (403, made.json())
    )


def test_dry_run_of_terms_shows_the_changes(world: World) -> None:
    planned, _ = ask(
        world,
        SUPERUSER,
        "PATCH",
        f"/alloc/{world.own['allocation']}",
        credit_limit=60,
        event="freeze",
        **WHY,
    )
    texts = {"credit_limit": "1"}
    assert entry(planned)["changed"] == {"credit_limit": 60, "state": "frozen", "display": texts}


def test_dry_run_lists_no_entries_for_a_repeated_request(world: World) -> None:
    for _ in range(2):
        planned, real = ask(
            world, PI, "PUT", f"/project/{world.own['project']}/member/{STRANGER}", role="member"
        )
        assert real.status_code == 200
    assert planned.json()["data"] == []
    path, key = f"/alloc/{world.own['allocation']}/deposit", {"Idempotency-Key": "once"}
    assert (
        world.ask("POST", path, SUPERUSER, json={"amount": 60, **WHY}, headers=key).status_code
        == 201
    )
    assert (
        world.ask(
            "POST", f"{path}?dry-run=true", SUPERUSER, json={"amount": 60, **WHY}, headers=key
        ).json()["data"]
        == []
    )
    taken = world.ask(
        "POST", f"{path}?dry-run=true", SUPERUSER, json={"amount": 61, **WHY}, headers=key
    )
    assert taken.json()["refusal"]["reason"] == "KEY_REUSED"


def test_dry_run_stores_no_refusal(world: World) -> None:
    path, key = f"/alloc/{world.own['allocation']}/withdraw", {"Idempotency-Key": "too-much"}
    before = world.entries()
    answer = world.ask(
        "POST", f"{path}?dry-run=true", SUPERUSER, json={"amount": 10**9, **WHY}, headers=key
    )
    assert (answer.status_code, answer.json()["refusal"]["entry"], world.entries()) == (
        402,
        None,
        before,
    )
    kept = world.ask("POST", path, SUPERUSER, json={"amount": 10**9, **WHY}, headers=key)
    assert (kept.json()["refusal"]["entry"] is not None, world.entries()) == (True, before + 1)
    again = world.ask(
        "POST", f"{path}?dry-run=true", SUPERUSER, json={"amount": 10**9, **WHY}, headers=key
    )
    assert (again.status_code, again.json()) == (402, kept.json())


@pytest.mark.parametrize(
    "query",
    [
        "dry-run=yes",
        "dry-run=True",
        "dry-run=",
        "dry-run=true&dry-run=false",
        "dry_run=true",
        "dryrun=true",
    ],
)
def test_invalid_dry_run_parameter_is_refused(shared_world: World, query: str) -> None:
    before = shared_world.entries()
    path = f"/alloc/{shared_world.own['allocation']}/deposit"
    assert (
        shared_world.ask(
            "POST", f"{path}?{query}", SUPERUSER, json={"amount": 60, **WHY}
        ).status_code
        == 400
    )
    assert shared_world.entries() == before
    assert (
        shared_world.ask(
            "POST", f"{path}?dry-run=false", SUPERUSER, json={"amount": 60, **WHY}
        ).status_code
        == 201
    )


def test_dry_run_of_a_report_shows_its_entry(world: World) -> None:
    report = {
        "cluster": "alpha",
        "job_id": 77,
        "submitted": int(world.clock.now()),
        "start": int(world.clock.now()),
        "owner_uid": PI,
        "account": account(OWN),
        "partition": "std",
        "amount": 60,
    }
    planned, made = ask(world, SUPERUSER, "POST", "/job", do="hold", time_limit=60, **report)
    assert (entry(planned)["kind"], entry(planned)["amount"], made.status_code) == ("hold", 60, 201)
    planned, _ = ask(world, SUPERUSER, "POST", "/job", do="hold", time_limit=60, **report)
    assert planned.json()["data"] == []
    planned, made = ask(world, PI, "POST", "/job", do="hold", time_limit=60, **report)
    assert (planned.status_code, planned.json()) == (403, made.json())


def test_batches_and_reads_have_no_dry_run(world: World) -> None:
    for method, path in (("POST", "/job/bulk"), ("GET", "/alloc"), ("POST", "/quote")):
        answer = world.ask(
            method, f"{path}?dry-run=true", SUPERUSER, json={} if method == "POST" else None
        )
        assert (answer.status_code, answer.json()["field"]) == (400, "dry-run")
