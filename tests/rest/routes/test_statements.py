"""Statements, HADM's lists of activity, and the last links of the journal."""

from __future__ import annotations

from tests.rest.responses import data
from tests.rest.world import ADMIN, AGENT, MEMBER, NOW, SUPERUSER, World, report


def test_statement_adds_up(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement"
    told = data(world, path)
    assert told["opening"] == {
        "deposited": 0,
        "charged": 0,
        "held": 0,
        "credit_limit": 0,
        "available": 0,
    }
    assert [each["kind"] for each in told["entries"]] == [
        "open",
        "deposit",
        "hold",
        "charge",
        "hold",
        "refusal",
    ]
    assert {key: told["closing"][key] for key in ("deposited", "charged", "held", "available")} == {
        key: told["allocation"][key] for key in ("deposited", "charged", "held", "available")
    }
    charge = told["entries"][3]
    assert (charge["cluster"], charge["owner_uid"], charge["run"], charge["actor"]) == (
        "alpha",
        MEMBER,
        world.own["job"],
        SUPERUSER,
    )
    assert charge["details"]["outcome"] == "COMPLETED"


def test_statement_without_entries_has_the_sums(world: World) -> None:
    told = data(
        world, f"/alloc/{world.own['allocation']}/statement?since={NOW + 1}&until={NOW + 5}"
    )
    assert told["entries"] == []
    assert told["opening"] == told["closing"]
    assert told["opening"]["charged"] == 30_000


def test_activity_lists_have_hadms_fields(old_world: World) -> None:
    allocation = old_world.own["allocation"]
    rows = data(old_world, f"/activity?allocation={allocation}&order=oldest")
    assert [(each["kind"], each["amount"]) for each in rows] == [
        ("deposit", 600_000),
        ("hold", 60_000),
        ("charge", 30_000),
        ("hold", 60),
    ]
    assert {each["allocation_id"] for each in rows} == {allocation}
    predebit = data(old_world, "/predebit?account=chem")[0]
    assert (predebit["amount"], predebit["status"], predebit["owner_uid"]) == (
        60,
        "executing",
        MEMBER,
    )
    assert data(old_world, "/debit") == [
        {
            "activity_id": old_world.own["job"],
            "allocation_id": allocation,
            "amount": 30_000,
            "comments": None,
            "owner_uid": MEMBER,
        }
    ]


def test_debits_are_filtered_by_owner_and_have_pages(old_world: World) -> None:
    (debit,) = data(old_world, "/debit")
    assert data(old_world, f"/debit?owner_uid={MEMBER}") == [debit]
    assert data(old_world, f"/debit?owner_uid={MEMBER + 1}") == []
    page = old_world.ask("GET", "/debit?limit=1", ADMIN).json()
    assert page["next"] == f"{debit['allocation_id']}-{MEMBER}"
    assert data(old_world, f"/debit?limit=1&after={page['next']}") == []
    no = old_world.ask("GET", "/debit?after=12", ADMIN)
    assert (no.status_code, no.json()["field"]) == (400, "after")


def test_predebits_and_activity_have_comments(world: World) -> None:
    for number, billing in ((60, 1), (61, 10**9)):
        world.ask(
            "POST", "/job", AGENT, json=report(number, billing=billing, comment="for the paper")
        )
    world.ask("POST", "/job", AGENT, json=report(62, billing=10**9))
    assert [each["comments"] for each in data(world, "/predebit?account=chem")] == [
        "for the paper",
        None,
    ]
    assert [each["comments"] for each in data(world, "/failure?account=chem&limit=2")] == [
        "not enough credit",
        "for the paper",
    ]


def test_audit_shows_the_last_links(world: World) -> None:
    told = data(world, "/audit", ADMIN)
    assert told["entries"] == world.entries()
    assert [each["allocation"] for each in told["heads"]] == [1, 2, 3, 4]
    assert len(told["registry_link"]) == len(told["heads"][0]["link"]) == 64
    page = world.ask("GET", "/audit?limit=3", ADMIN).json()
    assert (len(page["data"]["heads"]), page["next"]) == (3, "3")
