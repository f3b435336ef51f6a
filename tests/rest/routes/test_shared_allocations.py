"""Visibility of runs on shared credit: for the owner, the project of the run and the paying
parent.
"""

from __future__ import annotations

from typing import Any

from tests.rest.world import (
    ADMIN,
    AGENT,
    MEMBER,
    NOW,
    OTHER_PI,
    PI,
    STRANGER,
    SUPERUSER,
    UNKNOWN,
    World,
    report,
)

EVERY = f"until={NOW + 7_200}"
"""Period that has each run: they end an hour after the time of the bank."""


def test_owner_sees_own_runs_after_leaving_the_project(world: World) -> None:
    world.ask("DELETE", f"/project/{world.own['project']}/member/{MEMBER}", SUPERUSER)
    assert world.ask("GET", f"/job/{world.own['job']}", MEMBER).status_code == 200
    assert world.ask("GET", f"/alloc/{world.own['allocation']}", MEMBER).status_code == 404


def test_child_project_sees_shared_allocations_but_not_their_users(world: World) -> None:
    world.ask(
        "POST",
        "/project",
        SUPERUSER,
        json={"gname": "kid", "gid": 4_000, "account": "kid", "parent": world.own["project"]},
    )
    child = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    world.ask("PUT", f"/project/{child}/member/{STRANGER}", SUPERUSER, json={"role": "pi"})
    shared = f"/alloc/{world.own['allocation']}"
    assert world.ask("GET", "/balance", STRANGER).json()["data"] == []
    world.ask("PATCH", shared, SUPERUSER, json={"shared": True, "comment": "for the kid"})
    for path in ("/balance", "/balance?account=kid", "/alloc", "/alloc?account=kid"):
        for uid in (STRANGER, SUPERUSER) if "=" in path else (STRANGER,):
            assert [row["id"] for row in world.ask("GET", path, uid).json()["data"]] == [
                world.own["allocation"]
            ], (path, uid)
    assert world.ask("GET", shared, STRANGER).status_code == 200
    for path in (
        f"/alloc/{world.own['later']}",
        f"/alloc/{world.own['later']}/statement",
        f"/job/{world.own['job']}",
    ):
        assert world.ask("GET", path, STRANGER).status_code == 404, path
    instead = f"see what yours used of it: fairbank usage --alloc {world.own['allocation']}"
    for path in (f"{shared}/statement", f"{shared}/user"):
        refusal = world.ask("GET", path, STRANGER)
        assert (refusal.status_code, refusal.json()["remedy"]) == (403, instead)
        assert world.ask("GET", path, OTHER_PI).status_code == 404, path
    for uid, warns in ((STRANGER, False), (OTHER_PI, True)):
        capped = world.ask("PUT", f"{shared}/cap/{uid}", SUPERUSER, json={"cap": 60}).json()
        assert ("warnings" in capped["data"]) == warns, "members of a child may use it"
    deposit = {"amount": 60, "comment": "mine"}
    assert [
        world.ask("POST", f"{shared}/deposit", uid, json=deposit).status_code
        for uid in (STRANGER, OTHER_PI)
    ] == [403, 404]
    assert world.ask("GET", "/balance?account=chem", STRANGER).json()["data"] == []


def test_run_is_seen_by_its_project_and_the_paying_one(world: World) -> None:
    """A run on a parent's credit belongs to the child project; the parent's users see it because it
    uses their credit.
    """
    _share_with_child(world)
    held = report(77, account="kid", owner_uid=UNKNOWN, time_limit=7_200)
    ended = {
        **report(
            77, account="kid", owner_uid=UNKNOWN, do="complete", state="COMPLETED", elapsed=3_600
        ),
        "end": NOW + 3_600,
    }
    number = world.ask("POST", "/job", AGENT, json=held).json()["data"]["run"]
    for path in (
        "/job?account=kid",
        f"/job?allocation={world.own['allocation']}&job_id=77",
        "/predebit?account=kid",
    ):
        for uid in (STRANGER, SUPERUSER):
            assert [row["job_id"] for row in world.ask("GET", path, uid).json()["data"]] == [77], (
                path,
                uid,
            )
    assert world.ask("POST", "/job", AGENT, json=ended).status_code == 201
    row = world.ask("GET", f"/job/{number}", STRANGER).json()["data"]
    assert (row["account"], row["allocation"]) == ("kid", world.own["allocation"])
    assert world.ask("GET", f"/job/{number}", PI).json()["data"] == row
    assert world.ask("GET", f"/job/{number}", OTHER_PI).status_code == 404
    for uid, account, used in (
        (STRANGER, "kid", [60]),
        (SUPERUSER, "kid", [60]),
        (SUPERUSER, "chem", [30_000]),
        (PI, "chem", [30_000]),
    ):
        assert [
            row["charged"]
            for row in world.ask("GET", f"/usage?account={account}&{EVERY}", uid).json()["data"]
        ] == used, (uid, account)
        rows = world.ask("GET", f"/activity?account={account}", uid).json()["data"]
        assert {row["job_id"] == 77 for row in rows} == {account == "kid"}, (uid, account)
    of_the_allocation = f"/usage?allocation={world.own['allocation']}&by=allocation&{EVERY}"
    for uid, paid in ((PI, 30_060), (STRANGER, 60)):
        assert [
            usage["charged"] for usage in world.ask("GET", of_the_allocation, uid).json()["data"]
        ] == [paid]


def test_refused_limit_change_belongs_to_the_project_of_the_run(world: World) -> None:
    _share_with_child(world)
    hold = report(77, account="kid", owner_uid=UNKNOWN)
    assert world.ask("POST", "/job", AGENT, json=hold).status_code == 201
    refusal = world.ask(
        "POST", "/job", AGENT, json={**hold, "do": "adjust", "billing": 1_000_000}
    ).json()["refusal"]
    row = world.ask("GET", f"/failure/{refusal['entry']}", STRANGER).json()["data"]
    assert (row["account"], row["allocation"]) == ("kid", world.own["allocation"])
    assert [
        failure["id"]
        for failure in world.ask("GET", "/failure?account=kid", STRANGER).json()["data"]
    ] == [refusal["entry"]]


def test_filter_by_child_project_shows_only_visible_rows(world: World) -> None:
    """Users of the parent see what its credit paid, and no other runs of the child. For other users
    the name looks unknown.
    """
    _share_with_child(world)
    child = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    terms = {
        "category": "research",
        "start": str(NOW),
        "end": str(NOW + 86_400),
        "amount": 60_000,
        "comment": "its own",
    }
    assert (
        world.ask(
            "POST", "/alloc", SUPERUSER, json={"project": child, "resource": "own", **terms}
        ).status_code
        == 201
    )
    for job, resource in ((77, {}), (78, {"resource": "own", "amount": 60})):
        held = report(job, account="kid", owner_uid=UNKNOWN, **resource)
        assert world.ask("POST", "/job", AGENT, json=held).status_code == 201
    assert (
        world.ask(
            "POST", "/job", AGENT, json=report(79, account="kid", owner_uid=UNKNOWN, amount=10**9)
        ).status_code
        == 402
    )
    paths = {
        path: f"{path}?account="
        for path in ("/job", "/predebit", "/activity", "/entry", "/failure")
    }

    def jobs(path: str, name: str, uid: int) -> set[int]:
        return {row["job_id"] for row in world.ask("GET", paths[path] + name, uid).json()["data"]}

    for path in paths:
        paid, own = ({79}, set[int]()) if path == "/failure" else ({77}, {78})
        assert jobs(path, "kid", PI) == paid, path
        assert jobs(path, "kid", SUPERUSER) - {None} == paid | own, path
        assert jobs(path, "kid", OTHER_PI) == jobs(path, "nosuch", OTHER_PI) == set(), path
    for job, resource in ((77, {}), (78, {"resource": "own", "amount": 60})):
        ended = {
            **report(
                job,
                account="kid",
                owner_uid=UNKNOWN,
                do="complete",
                state="COMPLETED",
                elapsed=3_600,
            ),
            **resource,
        }
        assert (
            world.ask("POST", "/job", AGENT, json={**ended, "end": NOW + 3_600}).status_code == 201
        )
    used = {
        uid: [
            row["runs"]
            for row in world.ask("GET", f"/usage?account=kid&{EVERY}", uid).json()["data"]
        ]
        for uid in (PI, SUPERUSER, OTHER_PI)
    }
    assert used == {PI: [1], SUPERUSER: [1, 1], OTHER_PI: []}
    for path in ("/project", "/alloc", "/balance", "/debit"):
        assert world.ask("GET", f"{path}?account=kid", PI).json()["data"] == [], path
        assert world.ask("GET", f"{path}?account=kid", OTHER_PI).json()["data"] == [], path


def _share_with_child(world: World) -> None:
    """Create project kid below chem, with the stranger as PI, and let it use chem's credit."""
    world.ask(
        "POST",
        "/project",
        SUPERUSER,
        json={"gname": "kid", "gid": 4_000, "account": "kid", "parent": world.own["project"]},
    )
    child = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    world.ask("PUT", f"/project/{child}/member/{STRANGER}", SUPERUSER, json={"role": "pi"})
    world.ask(
        "PATCH",
        f"/alloc/{world.own['allocation']}",
        SUPERUSER,
        json={"shared": True, "comment": "for the kid"},
    )


def test_only_the_owner_of_a_refused_job_sees_other_projects(world: World) -> None:
    """The PI of the project must not see the available credit of another project."""
    world.ask(
        "PUT",
        f"/project/{world.foreign['project']}/member/{MEMBER}",
        SUPERUSER,
        json={"role": "member"},
    )
    refused = world.ask("POST", "/job", AGENT, json={"do": "hold", **_expensive_job(world)})
    assert "another project: -A bio" in " ".join(refused.json()["refusal"]["remedies"])
    failure = f"/failure/{refused.json()['refusal']['entry']}"
    remedies_of = {
        uid: " ".join(world.ask("GET", failure, uid).json()["data"]["remedies"])
        for uid in (MEMBER, PI, ADMIN)
    }
    assert {uid: "bio" in remedies for uid, remedies in remedies_of.items()} == {
        MEMBER: True,
        PI: False,
        ADMIN: True,
    }


def _expensive_job(world: World) -> dict[str, Any]:
    world.ask(
        "POST",
        f"/alloc/{world.own['allocation']}/withdraw",
        SUPERUSER,
        json={"amount": 560_000, "comment": "x"},
    )
    return {
        "cluster": "alpha", "job_id": 77, "submitted": 1, "owner_uid": MEMBER,
        "account": "chem", "partition": "std",
        "start": world.clock.now(), "time_limit": 3600, "amount": 100_000,
    }  # fmt: skip
