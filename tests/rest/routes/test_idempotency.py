"""Repeated reports and reused keys, in single requests and in batches, also after settings
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fairbank.bank.policy import Policy
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.tres import parse_weights
from fairbank.store.memory.store import MemoryStore
from tests.rest.world import (
    ADMIN,
    AGENT,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    SUPERUSER,
    World,
    create_world,
    report,
)

TRES = {"billing": None, "tres": "cpu=2,mem=1G"}
START = report(42, **TRES)
CHANGE = report(42, do="adjust", time_limit=7_200, **TRES)
END = report(42, do="complete", end=NOW + 1_800, elapsed=1_800, state="FAILED", **TRES)
REPORTS = [START, CHANGE, END]

# Higher prices, another resource, another grace period, and failed jobs cost nothing.
CHANGED: dict[str, Any] = {
    "clusters": {
        "alpha": Cluster(
            "alpha", {"std": Partition("std", "gpu", parse_weights("CPU=7.0,Mem=0.5G"))}, {}
        )
    },
    "policy": Policy(
        clock_tolerance_seconds=3_600, hold_grace_seconds=60, free_states=frozenset({"FAILED"})
    ),
}


@pytest.fixture
def worlds() -> Iterator[tuple[World, World]]:
    """Provide the bank, and the same bank with changed settings."""
    store = MemoryStore()
    with create_world(store) as before, create_world(store, empty=False, **CHANGED) as after:
        after.own, after.foreign = before.own, before.foreign
        yield before, after


def send(
    world: World, body: dict[str, Any], *, bulk: bool = False, uid: int = AGENT
) -> tuple[int, dict[str, Any]]:
    """Send a report, alone or in a batch; return the status, and the result or the problem."""
    if not bulk:
        answer = world.ask("POST", "/job", uid, json=body)
        return answer.status_code, answer.json().get("data", answer.json())
    (row,) = world.ask("POST", "/job/bulk", uid, json={"reports": [body]}).json()["data"]
    return row["status"], row.get("granted", row)


@pytest.mark.parametrize("bulk", [False, True])
def test_repeated_report_gets_its_entry(world: World, bulk: bool) -> None:
    for body in REPORTS:
        status, first = send(world, body, bulk=bulk)
        entries = world.entries()
        assert (status, first["again"]) == (201, False)
        assert send(world, body, bulk=bulk) == (200, {**first, "again": True})
        assert world.entries() == entries


def test_repeated_batch_gets_the_same_answers(world: World) -> None:
    answers = [
        world.ask("POST", "/job/bulk", AGENT, json={"reports": REPORTS}).json()["data"]
        for _ in range(2)
    ]
    assert [answer["status"] for answer in answers[0]] == [201, 201, 201]
    assert [answer["status"] for answer in answers[1]] == [
        409,
        409,
        200,
    ]  # the run has ended meanwhile
    assert answers[1][2]["granted"] == {**answers[0][2]["granted"], "again": True}
    keyed = [
        {**report(43, **{**TRES, **_changed_fields(body)}), "key": f"k{place}"}
        for place, body in enumerate(REPORTS)
    ]
    answers = [
        world.ask("POST", "/job/bulk", AGENT, json={"reports": keyed}).json()["data"]
        for _ in range(2)
    ]
    assert [answer["status"] for answer in answers[1]] == [200, 200, 200]
    assert [{**answer["granted"], "again": False} for answer in answers[1]] == [
        answer["granted"] for answer in answers[0]
    ]


def test_repeated_start_after_the_end_needs_a_key(world: World) -> None:
    """See the beginning of docs/reference/repeated-requests.md."""
    keyed = {**report(43), "key": "start"}
    (_, first), (_, under_key) = send(world, START), send(world, keyed)
    assert send(world, START) == (200, {**first, "again": True})
    for job in (42, 43):
        assert send(world, {**END, "job_id": job})[0] == 201
    status, problem = send(world, START)
    assert (status, problem["refusal"]["reason"]) == (409, "RUN_CLOSED")
    assert problem["refusal"]["resolution"] == {
        "state": "charged",
        "outcome": END["state"],
        "elapsed": END["elapsed"],
    }
    assert send(world, keyed) == (200, {**under_key, "again": True})


def _changed_fields(body: dict[str, Any]) -> dict[str, Any]:
    return {
        name: body[name] for name in ("do", "time_limit", "end", "elapsed", "state") if name in body
    }


@pytest.mark.parametrize(
    "change",
    [
        {"start": NOW + 1},
        {"partition": "big"},
        {"account": "bio"},
        {"owner_uid": PI},
        {"resource": "gpu"},
        {"time_limit": 60},
    ],
)
def test_different_start_of_the_run_is_a_conflict(world: World, change: dict[str, Any]) -> None:
    assert send(world, report(42, resource="cpu"))[0] == 201
    entries = world.entries()
    status, problem = send(world, report(42, **{"resource": "cpu", **change}))
    assert (status, problem["refusal"]["reason"]) == (409, "HOLD_EXISTS")
    assert world.entries() == entries


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_repeated_report_is_answered_after_settings_changed(
    worlds: tuple[World, World], keyed: bool, bulk: bool
) -> None:
    before, after = worlds
    for place, body in enumerate(REPORTS):
        sent = {**body, "key": f"k{place}"} if keyed else body
        status, first = send(before, sent, bulk=bulk)
        assert status == 201
        assert send(after, sent, bulk=bulk) == (200, {**first, "again": True})


def test_reused_key_is_a_conflict_after_settings_changed(worlds: tuple[World, World]) -> None:
    send(worlds[0], {**START, "key": "k"})
    for world in worlds:
        for change in (
            {"time_limit": 3_599},
            {"comment": "another"},
            {"job_id": 43},
            {"start": NOW + 1},
        ):
            status, problem = send(world, {**START, "key": "k", **change})
            assert (status, problem["refusal"]["reason"]) == (409, "KEY_REUSED")


# --- keys of different users ---


def deposit(world: World, uid: int, amount: int, **more: Any) -> httpx.Response:
    path = f"/alloc/{world.own['allocation']}/deposit"
    return world.ask(
        "POST",
        path,
        uid,
        json={"amount": amount, "comment": "why"},
        headers={"Idempotency-Key": "k"},
        **more,
    )


def transfer(world: World, uid: int, whose: dict[str, int], amount: int) -> httpx.Response:
    body = {"to": whose["later"], "amount": amount, "comment": "why"}
    return world.ask(
        "POST",
        f"/alloc/{whose['allocation']}/transfer",
        uid,
        json=body,
        headers={"Idempotency-Key": "k"},
    )


def test_keys_of_users_are_separate(world: World) -> None:
    first = transfer(world, PI, world.own, 10)
    other = transfer(world, OTHER_PI, world.foreign, 10)
    assert (first.status_code, other.status_code) == (201, 201)
    assert deposit(world, SUPERUSER, 7).status_code == 201
    assert send(world, {**START, "key": "k"})[0] == 201
    again = transfer(world, PI, world.own, 10)
    assert (again.status_code, again.json()["data"]["entry"]) == (
        200,
        first.json()["data"]["entry"],
    )
    assert transfer(world, PI, world.own, 11).json()["refusal"]["reason"] == "KEY_REUSED"


def test_keys_used_while_acting_as_are_separate(world: World) -> None:
    assert transfer(world, PI, world.own, 10).status_code == 201
    body = {"to": world.own["later"], "amount": 11, "comment": "why"}
    path, key = f"/alloc/{world.own['allocation']}/transfer", {"Idempotency-Key": "k"}
    assert [
        world.ask("POST", path, ADMIN, as_=PI, json=body, headers=key).status_code for _ in range(2)
    ] == [201, 200]
    assert [
        world.ask("POST", path, SUPERUSER, json=body, headers=key).status_code for _ in range(2)
    ] == [201, 200]


def test_job_row_names_the_entry_that_set_it(world: World) -> None:
    for body in REPORTS:
        _, granted = send(world, body)
        row = world.ask("GET", f"/job/{granted['run']}", MEMBER).json()["data"]
        assert row["set_by"] == granted["entry"]


def test_key_header_of_a_report_is_refused(world: World) -> None:
    """The header would have no effect: a report has its key in the body."""
    before = world.entries()
    for path, body in (("/job", START), ("/job/bulk", {"reports": [START]})):
        answer = world.ask("POST", path, AGENT, json=body, headers={"Idempotency-Key": "k"})
        problem = answer.json()
        assert (answer.status_code, problem["field"], '"key"' in problem["remedy"]) == (
            400,
            "Idempotency-Key",
            True,
        )
    assert world.entries() == before
    assert send(world, START | {"key": "k"})[0] == 201
