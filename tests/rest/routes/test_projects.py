"""Projects: creation, changes of names, removal and restoration, members."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from fairbank.core.ids import OVERFLOW_UID
from tests.rest.responses import WHY, data, ids_of, refused
from tests.rest.world import (
    AGENT,
    COORDINATOR,
    DAY,
    MEMBER,
    NOW,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    report,
)
from tests.support.names import EXAMPLES


@pytest.fixture
def closed_world() -> Iterator[World]:
    """Provide a world in which the allocations and runs of chem have ended."""
    with create_world() as world:
        number = next(world.numbers) - 2  # the job number of chem's runs
        ended = report(
            number, do="complete", submitted=NOW - 60, end=NOW, elapsed=60, state="COMPLETED"
        )
        assert world.ask("POST", "/job", AGENT, json=ended).status_code == 201
        for which in ("allocation", "later"):
            world.ask(
                "PATCH", f"/alloc/{world.own[which]}", SUPERUSER, json={"event": "end", **WHY}
            )
        yield world


def _remove_project(world: World) -> None:
    answer = world.ask("DELETE", f"/project/{world.own['project']}", SUPERUSER)
    assert answer.status_code == 200, answer.json()


def test_renamed_project_is_found_by_its_new_name_only(world: World) -> None:
    made = world.ask("POST", "/project", SUPERUSER, json={"gname": "lab", "gid": 9_000}).json()[
        "data"
    ]["id"]
    path = f"/project/{made}"
    assert (
        world.ask(
            "PATCH", path, SUPERUSER, json={"account": "qmc", "comment": "as in Slurm"}
        ).status_code
        == 200
    )
    assert world.ask("GET", path, SUPERUSER).json()["data"]["account"] == "qmc"
    assert (
        world.ask("POST", "/job", AGENT, json=report(1, account="qmc")).json()["refusal"]["reason"]
        == "NO_ALLOCATION"
    )
    assert (
        world.ask("POST", "/job", AGENT, json=report(2, account="lab")).json()["refusal"]["reason"]
        == "UNKNOWN_PROJECT"
    )


@pytest.mark.parametrize("body", [{"account": "qmc"}, {"gid": 9_999}])
def test_used_project_keeps_gid_and_account(world: World, body: dict[str, object]) -> None:
    problem = refused(
        world, SUPERUSER, "PATCH", f"/project/{world.own['project']}", 409, *body, json=body
    )
    assert problem["refusal"]["reason"] == "IDENTITY_LOCKED"
    assert "fairbank project create" in problem["remedy"]


@pytest.mark.parametrize("body", [{}, {"comment": "x"}, {"restore": False}])
def test_empty_change_of_a_project_is_refused(world: World, body: dict[str, object]) -> None:
    refused(world, SUPERUSER, "PATCH", f"/project/{world.own['project']}", 400, None, json=body)


def test_project_cannot_be_its_own_ancestor(world: World) -> None:
    own, foreign = world.own["project"], world.foreign["project"]
    refused(world, SUPERUSER, "PATCH", f"/project/{own}", 409, "parent", json={"parent": own})
    world.ask("PATCH", f"/project/{foreign}", SUPERUSER, json={"parent": own})
    refused(world, SUPERUSER, "PATCH", f"/project/{own}", 409, "parent", json={"parent": foreign})
    refused(world, SUPERUSER, "PATCH", f"/project/{own}", 404, "parent", json={"parent": 999_999})


def test_project_with_open_run_cannot_be_removed(closed_world: World) -> None:
    """The run uses credit that the parent shares."""
    own, bio = closed_world.own["project"], closed_world.foreign
    closed_world.ask("PATCH", f"/project/{own}", SUPERUSER, json={"parent": bio["project"]})
    closed_world.ask(
        "PATCH", f"/alloc/{bio['allocation']}", SUPERUSER, json={"shared": True, **WHY}
    )
    assert closed_world.ask("POST", "/job", AGENT, json=report(77)).status_code == 201
    problem = refused(closed_world, SUPERUSER, "DELETE", f"/project/{own}", 409, "project")
    assert "alpha/77" in problem["detail"]


def test_removed_project_is_shown_to_staff_only(closed_world: World) -> None:
    _remove_project(closed_world)
    path = f"/project/{closed_world.own['project']}"
    for uid in (PI, COORDINATOR, MEMBER):
        assert closed_world.ask("GET", path, uid).status_code == 404
        assert closed_world.ask("GET", "/project?removed=any", uid).json()["data"] == []
        assert closed_world.ask("GET", "/alloc", uid).json()["data"] == []
    assert closed_world.ask("GET", path, SUPERUSER).json()["data"]["removed"] is True
    lists = {
        removed: closed_world.ask("GET", f"/project?removed={removed}", SUPERUSER).json()["data"]
        for removed in ("no", "yes", "any")
    }
    assert [[row["account"] for row in lists[which]] for which in ("no", "yes", "any")] == [
        ["bio"],
        ["chem"],
        ["chem", "bio"],
    ]
    assert len(closed_world.ask("GET", "/alloc?account=chem", SUPERUSER).json()["data"]) == 2
    assert {row["owner_uid"] for row in closed_world.ask("GET", "/job", MEMBER).json()["data"]} == {
        MEMBER
    }  # their own runs


def test_removed_project_starts_no_job_and_pays_ended_runs(closed_world: World) -> None:
    """It cannot use shared credit of its parent either. A run that began before the removal and is
    reported late is charged.
    """
    bio = closed_world.foreign
    closed_world.ask(
        "PATCH",
        f"/project/{closed_world.own['project']}",
        SUPERUSER,
        json={"parent": bio["project"]},
    )
    closed_world.ask(
        "PATCH", f"/alloc/{bio['allocation']}", SUPERUSER, json={"shared": True, **WHY}
    )
    _remove_project(closed_world)
    refused_job = closed_world.ask("POST", "/job", AGENT, json=report(77)).json()
    assert (refused_job["refusal"]["reason"], refused_job["refusal"]["project"]) == (
        "PROJECT_REMOVED",
        closed_world.own["project"],
    )
    assert f"fairbank project set {closed_world.own['project']} --restore" in refused_job["remedy"]
    late = report(
        78,
        do="complete",
        submitted=NOW - DAY,
        start=NOW - DAY,
        end=NOW,
        elapsed=DAY,
        state="COMPLETED",
    )
    answer = closed_world.ask("POST", "/job", AGENT, json=late)
    assert (answer.status_code, answer.json()["data"]["allocation"]) == (
        201,
        closed_world.own["allocation"],
    )
    refused(
        closed_world,
        SUPERUSER,
        "POST",
        "/quote",
        404,
        "account",
        json={"account": "chem", "partition": "std", "tres": "cpu=1", "time_limit": 60},
    )


def test_names_of_a_removed_project_stay_reserved(closed_world: World) -> None:
    _remove_project(closed_world)
    gid = closed_world.ask("GET", f"/project/{closed_world.own['project']}", SUPERUSER).json()[
        "data"
    ]["gid"]
    new = {"gname": "chem", "gid": gid, "account": "chem"}
    for names, field in ((new, "gname"), (new | {"gname": "lab", "gid": 9_000}, "account")):
        problem = refused(closed_world, SUPERUSER, "POST", "/project", 409, field, json=names)
        assert f"fairbank project set {closed_world.own['project']} --restore" in problem["remedy"]
    changed = {"gname": "chem_old", "gid": 9_999, "account": "chem_old"}
    refused(
        closed_world,
        SUPERUSER,
        "PATCH",
        f"/project/{closed_world.own['project']}",
        409,
        "gid",
        json=changed,
    )


def test_restored_project_has_its_members(closed_world: World) -> None:
    _remove_project(closed_world)
    assert (
        closed_world.ask(
            "PATCH", f"/project/{closed_world.own['project']}", SUPERUSER, json={"restore": True}
        ).status_code
        == 200
    )
    assert closed_world.ask("GET", f"/project/{closed_world.own['project']}", PI).status_code == 200


def test_removing_a_non_member_is_refused(world: World) -> None:
    before = world.entries()
    answer = world.ask("DELETE", f"/project/{world.own['project']}/member/4242", SUPERUSER)
    assert answer.status_code == 404
    assert "user 4242" in answer.json()["detail"]
    assert world.entries() == before


def test_repeated_role_writes_no_entry(world: World) -> None:
    path, before = f"/project/{world.own['project']}/member/{MEMBER}", world.entries()
    assert (
        world.ask("PUT", path, SUPERUSER, json={"role": "member"}).json()["data"]["again"] is True
    )
    assert world.entries() == before


def test_new_project_is_found_by_each_name(world: World) -> None:
    made = world.ask(
        "POST",
        "/project",
        SUPERUSER,
        json={"gname": "phys", "gid": 4_000, "account": "physics", "parent": 1},
    )
    assert made.status_code == 201
    row = made.json()["data"]
    expected = {
        "id": row["id"],
        "gname": "phys",
        "gid": 4_000,
        "account": "physics",
        "parent": 1,
        "removed": False,
        "entry": row["entry"],
    }
    assert row == expected
    assert row["entry"] > 0
    for query in ("gname=phys", "gid=4000", "account=physics"):
        assert ids_of(data(world, f"/project?{query}", SUPERUSER)) == [row["id"]]
    again = world.ask(
        "POST",
        "/project",
        SUPERUSER,
        json={"gname": "phys", "gid": 4_000, "account": "physics", "parent": 1},
    )
    assert again.status_code == 200
    assert again.json()["data"] == row | {"entry": None}  # it existed: nothing was written


@pytest.mark.parametrize("name", EXAMPLES)
def test_project_may_have_any_name_of_slurm(world: World, name: str) -> None:
    made = world.ask(
        "POST", "/project", SUPERUSER, json={"gname": name, "gid": 4_000, "account": name}
    )
    assert made.status_code == 201
    (row,) = data(world, f"/project?account={quote(name)}", SUPERUSER)
    assert (row["gname"], row["account"]) == (name, name)


def test_account_defaults_to_the_group_name(world: World) -> None:
    assert (
        world.ask("POST", "/project", SUPERUSER, json={"gname": "phys", "gid": 4_000}).json()[
            "data"
        ]["account"]
        == "phys"
    )


def test_members_are_added_and_removed(world: World) -> None:
    path = f"/project/{world.own['project']}"
    assert (
        world.ask(
            "PUT",
            f"{path}/member/{STRANGER}",
            COORDINATOR,
            json={"role": "member", "comment": "new"},
        ).status_code
        == 200
    )
    assert {"uid": STRANGER, "role": "member", "via": "bank"} in data(world, f"{path}/member")
    assert data(world, path)["members"] == data(world, f"{path}/member")
    assert ids_of(data(world, "/project", STRANGER)) == [world.own["project"]]
    assert world.ask("DELETE", f"{path}/member/{STRANGER}", COORDINATOR).status_code == 200
    assert data(world, "/project", STRANGER) == []


def test_members_through_the_unix_group_are_listed_as_such() -> None:
    """The group has a member of the bank's, too, whose role there counts."""
    with create_world(members_of=lambda gid: frozenset({5, MEMBER, 9_000})) as world:
        rows, path = [], f"/project/{world.own['project']}/member?limit=2"
        pages = [path]
        for page in pages:
            answer = world.ask("GET", page, PI).json()
            rows += [(row["uid"], row["role"], row["via"]) for row in answer["data"]]
            if (after := answer["next"]) is not None:
                pages.append(f"{path}&after={after}")
        assert rows == [
            (5, "member", "group"),
            (PI, "pi", "bank"),
            (COORDINATOR, "coordinator", "bank"),
            (MEMBER, "member", "bank"),
            (9_000, "member", "group"),
        ]


def test_removal_of_a_member_of_the_unix_group_warns() -> None:
    """A user without a role of the bank is still a member through the group."""
    with create_world(members_of=lambda gid: frozenset({MEMBER})) as world:
        path = f"/project/{world.own['project']}/member"
        answer = world.ask("DELETE", f"{path}/{MEMBER}", PI).json()["data"]
        assert answer["warnings"] == [
            f"user {MEMBER} is still a member through the Unix group chem: remove them there"
        ]
        assert {"uid": MEMBER, "role": "member", "via": "group"} in data(world, path)
        refused = world.ask("DELETE", f"{path}/{MEMBER}", PI).json()["refusal"]
        assert "a member of the Unix group is removed there" in refused["remedies"][0]
        assert "warnings" not in world.ask("DELETE", f"{path}/{COORDINATOR}", PI).json()["data"]


def test_number_of_users_without_a_uid_gets_no_role_cap_or_token(world: World) -> None:
    """Linux maps unknown users to it, and measured use has it as its owner."""
    nobody = OVERFLOW_UID
    for method, path, body in (
        ("PUT", f"/project/{world.own['project']}/member/{nobody}", {"role": "member"}),
        ("PUT", f"/alloc/{world.own['allocation']}/cap/{nobody}", {"cap": 60}),
        ("POST", "/token", {"uid": nobody, "label": "x", "scopes": ["read"], "days": 1}),
    ):
        answer = world.ask(method, path, SUPERUSER, json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, "uid"), path
        assert answer.json()["detail"] == "uid 65534 stands for users who have no uid"
