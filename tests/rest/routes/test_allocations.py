"""Allocations: grants, changes, movements, caps, lists and balances."""

from __future__ import annotations

import msgspec
import pytest

from fairbank.core.time import Instant, iso
from tests.rest.responses import WHY, data, ids_of, without_texts
from tests.rest.world import (
    ADMIN,
    AGENT,
    CLUSTERS,
    DAY,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    SUPERUSER,
    World,
    create_world,
    grant,
    report,
)


def test_allocation_is_granted_and_shown(world: World) -> None:
    made = world.ask("POST", "/alloc", SUPERUSER, json=grant(credit_limit=50, shared=True))
    row = without_texts(made.json()["data"])
    entry, _ = row.pop("entry"), row.pop("warnings")
    assert made.status_code == 201
    assert data(world, f"/entry?allocation={row['id']}&limit=1")[0]["id"] == entry
    assert row == {
        "id": row["id"], "project": world.own["project"], "account": "chem", "gname": "chem",
        "resource": "gpu", "category": "research",
        "start": iso(NOW), "end": iso(NOW + 90 * DAY), "state": "active", "shared": True,
        "partition": None, "reservation": None,
        "state_since": None, "state_reason": None,
        "credit_limit": 50, "deposited": 6_000,
        "charged": 0, "held": 0, "remaining": 6_050, "available": 6_050,
        "my_charged": 0, "my_held": 0, "my_cap": None, "my_left": None,
    }  # fmt: skip
    assert data(world, f"/alloc/{row['id']}", MEMBER) == row
    assert made.json()["schema"] == "fairbank.allocation/1"
    assert made.json()["as_of"] == iso(NOW)


def test_short_term_allocation_has_a_partition_of_its_resource(world: World) -> None:
    unknown = world.ask("POST", "/alloc", SUPERUSER, json=grant(partition="std"))
    assert (unknown.status_code, unknown.json()["field"]) == (400, "partition")
    assert unknown.json()["detail"] == "no partition 'std' bills 'gpu'"
    terms = {"start": iso(NOW + 180 * DAY), "end": iso(NOW + 190 * DAY), "resource": "cpu"}
    body = grant(partition="std", reservation="course", **terms)
    row = world.ask("POST", "/alloc", SUPERUSER, json=body).json()["data"]
    assert (row["partition"], row["reservation"]) == ("std", "course")

    for wrong in ("", "a,b", "a b", "x" * 256):
        bad = world.ask("POST", "/alloc", SUPERUSER, json={**body, "reservation": wrong})
        assert (bad.status_code, bad.json()["field"]) == (400, "reservation")


def test_short_term_allocation_may_have_the_resource_of_a_qos() -> None:
    alpha = msgspec.structs.replace(CLUSTERS["alpha"], qos_resources={"debug": "debug"})
    with create_world(clusters={"alpha": alpha}) as world:
        body = grant(partition="std", resource="debug")
        answer = world.ask("POST", "/alloc", SUPERUSER, json=body)
        assert (answer.status_code, answer.json()["data"]["partition"]) == (201, "std")


def test_grant_with_a_key_happens_once(world: World) -> None:
    answers = [
        world.ask("POST", "/alloc", SUPERUSER, json=grant(), headers={"Idempotency-Key": "g1"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize(
    ("query", "which"),
    [
        ("", ["allocation", "later"]),
        ("?account=chem", ["allocation", "later"]),
        ("?gname=chem&resource=cpu", ["allocation", "later"]),
        ("?resource=gpu", []),
        ("?category=research&limit=1", ["allocation"]),
        ("?active-at=now", ["allocation"]),
        (f"?active-at={NOW + 100 * DAY}", ["later"]),
        ("?state=frozen", []),
        ("?state=active", ["allocation"]),
        ("?state=planned", ["later"]),
        ("?state=ended", []),
        ("?account=bio", []),
        ("?gid=1&account=chem", []),
    ],
)
def test_allocations_are_filtered(shared_world: World, query: str, which: list[str]) -> None:
    assert ids_of(data(shared_world, f"/alloc{query}")) == [
        shared_world.own[name] for name in which
    ]


def test_balances_show_what_has_not_ended_or_ended_last(world: World) -> None:
    """The allocation is followed by `later`, so after its end it is only among all."""
    both = [world.own["allocation"], world.own["later"]]
    assert ids_of(data(world, "/balance")) == both
    assert data(world, "/balance")[0]["used_percent"] == 5  # 30,000 of 600,000
    world.clock.at = Instant(NOW + 100 * DAY)
    assert ids_of(data(world, "/balance")) == both[1:]
    assert ids_of(data(world, "/balance?all=true")) == both
    world.clock.at = Instant(NOW + 1_000 * DAY)
    assert ids_of(data(world, "/balance", MEMBER)) == both[1:]
    assert ids_of(data(world, "/balance?account=chem")) == both[1:]
    assert data(world, "/balance", ADMIN) == []  # staff would see those of all former projects


def test_allocation_can_be_frozen_thawed_ended_and_reopened(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    for event, state in (("freeze", "frozen"), ("thaw", "active"), ("end", "ended")):
        assert (
            world.ask("PATCH", path, SUPERUSER, json={"event": event, **WHY}).json()["data"][
                "state"
            ]
            == state
        )
    over = world.ask("PATCH", path, SUPERUSER, json={"event": "reopen", **WHY})
    assert (over.status_code, over.json()["refusal"]["reason"]) == (409, "ALLOCATION_EXPIRED")
    longer = {"event": "reopen", "end": str(NOW + DAY), **WHY}
    assert world.ask("PATCH", path, SUPERUSER, json=longer).json()["data"]["state"] == "active"
    again = world.ask("PATCH", path, SUPERUSER, json={"event": "thaw", **WHY})
    assert (again.status_code, again.json()["refusal"]["reason"]) == (409, "WRONG_STATE")


def test_state_follows_the_clock(world: World) -> None:
    of = {which: f"/alloc/{world.own[which]}" for which in ("allocation", "later")}
    assert [data(world, of[which])["state"] for which in of] == ["active", "planned"]
    world.clock.at = Instant(NOW + 365 * DAY)  # without the periodic upkeep
    assert (
        data(world, of["allocation"])["state"]
        == data(world, f"{of['allocation']}/statement")["allocation"]["state"]
        == "ended"
    )
    assert {row["id"]: row["state"] for row in data(world, "/balance?all=true")}[
        world.own["allocation"]
    ] == "ended"
    assert world.own["allocation"] not in ids_of(data(world, "/balance"))


def test_terms_can_be_changed(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    row = world.ask(
        "PATCH",
        path,
        SUPERUSER,
        json={"start": str(NOW - DAY), "credit_limit": 60, "shared": True, **WHY},
    ).json()["data"]
    assert (row["start"], row["credit_limit"], row["shared"]) == (iso(NOW - DAY), 60, True)


def test_credit_is_deposited_withdrawn_and_transferred(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    before = data(world, path)["available"]
    deposit = world.ask("POST", f"{path}/deposit", SUPERUSER, json={"amount": 600, **WHY}).json()[
        "data"
    ]
    assert (deposit["amount"], deposit["available"], deposit["allocation"]) == (
        600,
        before + 600,
        world.own["allocation"],
    )
    assert (
        world.ask("POST", f"{path}/withdraw", SUPERUSER, json={"amount": 100, **WHY}).json()[
            "data"
        ]["available"]
        == before + 500
    )
    moved = world.ask(
        "POST", f"{path}/transfer", PI, json={"to": world.own["later"], "amount": 500, **WHY}
    ).json()["data"]
    assert moved["available"] == before
    assert [
        row["amount"] for row in data(world, f"/credit?allocation={world.own['allocation']}")[:3]
    ] == [-500, -100, 600]
    assert data(world, f"/credit?allocation={world.own['later']}")[0]["amount"] == 500


def test_withdrawal_beyond_available_credit_is_refused(world: World) -> None:
    answer = world.ask(
        "POST",
        f"/alloc/{world.own['allocation']}/withdraw",
        SUPERUSER,
        json={"amount": 10**9, **WHY},
    )
    assert answer.status_code == 402
    assert answer.json()["refusal"]["available"] == 600_000 - 30_000 - 60


def test_cap_limits_a_user(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}"
    assert world.ask("PUT", f"{path}/cap/{MEMBER}", PI, json={"cap": 30_070}).status_code == 200
    assert data(world, f"{path}/user") == [
        {"uid": MEMBER, "charged": 30_000, "held": 60, "cap": 30_070}
    ]
    refused = world.ask("POST", "/job", AGENT, json=report(1))
    assert (
        refused.status_code,
        refused.json()["refusal"]["reason"],
        refused.json()["refusal"]["available"],
    ) == (402, "CAPPED", 10)
    world.ask("PUT", f"{path}/cap/{MEMBER}", PI, json={"cap": None})
    assert world.ask("POST", "/job", AGENT, json=report(1)).status_code == 201


def test_pi_sees_only_allocations_of_their_projects(shared_world: World) -> None:
    assert ids_of(data(shared_world, "/alloc", OTHER_PI)) == [
        shared_world.foreign["allocation"],
        shared_world.foreign["later"],
    ]


def test_allocation_times_are_text_or_numbers(world: World) -> None:
    made = [
        world.ask("POST", "/alloc", SUPERUSER, json=grant(resource=f"r{place}", start=start))
        for place, start in enumerate((NOW, str(NOW), iso(NOW)))
    ]
    assert [answer.status_code for answer in made] == [201, 201, 201]
    assert {answer.json()["data"]["start"] for answer in made} == {iso(NOW)}
    path = f"/alloc/{made[0].json()['data']['id']}"
    assert world.ask("PATCH", path, SUPERUSER, json={"end": NOW + DAY, "comment": "x"}).json()[
        "data"
    ]["end"] == iso(NOW + DAY)


def test_repeated_cap_writes_no_entry(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/cap/{MEMBER}"
    assert world.ask("PUT", path, PI, json={"cap": 60}).json()["data"]["again"] is False
    before = world.entries()
    assert world.ask("PUT", path, PI, json={"cap": 60}).json()["data"]["again"] is True
    assert (
        world.ask(
            "PUT", f"/alloc/{world.own['allocation']}/cap/{PI}", SUPERUSER, json={"cap": None}
        ).json()["data"]["again"]
        is True
    )
    assert world.entries() == before


def test_unknown_resource_or_cluster_gives_a_warning(world: World) -> None:
    made = world.ask("POST", "/alloc", SUPERUSER, json=grant(resource="cpuu"))
    assert made.status_code == 201
    assert made.json()["data"]["warnings"] == [
        "no partition bills 'cpuu', so only measured use can be charged to it"
        " (fairbank storage import), no jobs; billed are: cpu"
    ]
    token = world.ask(
        "POST", "/token", SUPERUSER, json={"label": "x", "scopes": ["agent:alfa"]}
    ).json()["data"]
    assert token["warnings"] == [
        "no cluster 'alfa' is in the settings yet, so it reports no priced runs; there are: alpha"
    ]


def test_repeated_cap_has_no_entry_in_the_response(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/cap/{MEMBER}"
    first, second = (
        world.ask("PUT", path, SUPERUSER, json={"cap": 60}).json()["data"] for _ in range(2)
    )
    assert first["entry"] > 0
    assert (second["entry"], second["again"]) == (None, True)
