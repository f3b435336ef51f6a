"""Undo over HTTP: one route for all kinds of entries, with the permission of the opposite
request.
"""

from __future__ import annotations

from typing import Any

import httpx

from fairbank.bank.project import Role
from fairbank.bank.requests import SetMember
from tests.rest.world import COORDINATOR, MEMBER, OTHER_PI, PI, STRANGER, SUPERUSER, UNKNOWN, World

WHY = {"comment": "a slip"}


def entry_of_request(world: World, uid: int, method: str, path: str, **body: Any) -> int:
    """Send a request and return the number of its entry."""
    answer = world.ask(method, path, uid, json=body or None)
    assert answer.status_code < 300, answer.text
    return int(answer.json()["data"]["entry"])


def undo(world: World, uid: int, entry: int, key: str | None = None, **more: Any) -> httpx.Response:
    return world.ask(
        "POST",
        f"/entry/{entry}/undo",
        uid,
        json=WHY,
        headers={} if key is None else {"Idempotency-Key": key},
        **more,
    )


def dry_run_undo(world: World, uid: int, entry: int) -> httpx.Response:
    return world.ask("POST", f"/entry/{entry}/undo?dry-run=true", uid, json=WHY)


def create_undoable_entries(world: World) -> list[int]:
    path = f"/alloc/{world.own['allocation']}"
    return [
        entry_of_request(world, SUPERUSER, "POST", f"{path}/deposit", amount=600, **WHY),
        entry_of_request(world, SUPERUSER, "POST", f"{path}/withdraw", amount=60, **WHY),
        entry_of_request(
            world, PI, "POST", f"{path}/transfer", to=world.own["later"], amount=60, **WHY
        ),
        entry_of_request(
            world, SUPERUSER, "POST", f"/job/{world.own['job']}/refund", amount=60, **WHY
        ),
        entry_of_request(world, SUPERUSER, "PATCH", path, credit_limit=60, **WHY),
        entry_of_request(world, COORDINATOR, "PUT", f"{path}/cap/{MEMBER}", cap=60),
        entry_of_request(
            world,
            PI,
            "PUT",
            f"/project/{world.own['project']}/member/{STRANGER}",
            role="coordinator",
        ),
    ]


def test_undo_matches_its_dry_run(world: World) -> None:
    before = world.ask("GET", f"/alloc/{world.own['allocation']}", PI).json()["data"]
    for number in create_undoable_entries(world):
        entries = world.entries()
        planned = dry_run_undo(world, SUPERUSER, number).json()["data"]
        assert world.entries() == entries
        assert undo(world, SUPERUSER, number).status_code == 201
        assert world.entries() == entries + len(planned)
        assert planned[-1]["details"]["undoes"] == number
        assert {entry["comment"] for entry in planned} == {f"undo of entry {number}: a slip"}
        refused, real = dry_run_undo(world, SUPERUSER, number), undo(world, SUPERUSER, number)
        assert (
            (refused.status_code, refused.json())
            == (real.status_code, real.json())
            == (409, refused.json())
        )
        assert refused.json()["refusal"]["reason"] == "ALREADY_UNDONE"
    assert world.ask("GET", f"/alloc/{world.own['allocation']}", PI).json()["data"] == before


def test_dry_run_of_an_undo_shows_changed_terms(world: World) -> None:
    number = entry_of_request(
        world, SUPERUSER, "PATCH", f"/alloc/{world.own['allocation']}", credit_limit=60, **WHY
    )
    (planned,) = dry_run_undo(world, SUPERUSER, number).json()["data"]
    assert (planned["changed"], planned["credit_limit"]) == (
        {"credit_limit": 0, "display": {"credit_limit": "0"}},
        0,
    )


def test_undo_requires_the_permission_of_the_opposite(world: World) -> None:
    *by_staff, terms, cap, role = create_undoable_entries(world)
    for uid, allowed in ((MEMBER, set()), (COORDINATOR, {cap}), (PI, {cap, role, by_staff[2]})):
        for number in (*by_staff, terms, cap, role):
            assert dry_run_undo(world, uid, number).status_code == (
                200 if number in allowed else 403
            ), (uid, number)
    assert undo(world, MEMBER, by_staff[0]).status_code == 403
    assert undo(world, OTHER_PI, role).status_code == 404
    for number in (by_staff[2], cap, role):
        assert undo(world, PI, number).status_code == 201


def test_coordinator_cannot_undo_what_only_a_pi_may_do(world: World) -> None:
    number = entry_of_request(
        world, PI, "PUT", f"/project/{world.own['project']}/member/{STRANGER}", role="coordinator"
    )
    for answer in (dry_run_undo(world, COORDINATOR, number), undo(world, COORDINATOR, number)):
        assert answer.status_code == 403
        assert answer.json()["refusal"]["reason"] == "ROLE_ABOVE"


def test_undo_of_a_transfer_requires_both_projects(world: World) -> None:
    target, path = world.foreign["allocation"], f"/alloc/{world.own['allocation']}/transfer"
    number = entry_of_request(world, SUPERUSER, "POST", path, to=target, amount=60, **WHY)
    assert undo(world, PI, number).status_code == 403
    world.request(SetMember(project=world.foreign["project"], uid=PI, role=Role.PI))
    world.ticks.at += 60
    assert undo(world, PI, number).status_code == 201


def test_repeated_undo_gets_the_same_answer(world: World) -> None:
    number = entry_of_request(
        world, SUPERUSER, "POST", f"/alloc/{world.own['allocation']}/deposit", amount=600, **WHY
    )
    first, second = (
        undo(world, SUPERUSER, number, "slip-1"),
        undo(world, SUPERUSER, number, "slip-1"),
    )
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["data"]["entry"] == second.json()["data"]["entry"]
    other = entry_of_request(
        world, SUPERUSER, "POST", f"/alloc/{world.own['allocation']}/deposit", amount=600, **WHY
    )
    assert undo(world, SUPERUSER, other, "slip-1").json()["refusal"]["reason"] == "KEY_REUSED"


def test_refused_undo_writes_no_entry(world: World) -> None:
    """A user who sees the entry gets a remedy. A user who may not write cannot make the bank store
    a refusal.
    """
    entries = world.entries()
    for uid in (MEMBER, SUPERUSER):
        refused = undo(world, uid, world.own["job"], "k")  # a run has the number of its hold
        assert (refused.status_code, refused.json()["refusal"]["reason"]) == (409, "CANNOT_UNDO")
        assert "a hold ends with its job" in refused.json()["remedy"]
    assert world.entries() == entries
    assert undo(world, OTHER_PI, world.own["job"]).status_code == 404
    assert undo(world, SUPERUSER, UNKNOWN).status_code == 404
