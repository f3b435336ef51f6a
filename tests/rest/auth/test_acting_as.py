"""Requests of staff on behalf of another user: permissions, and what the journal records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.policy import GrantCategory, Policy
from fairbank.service.access.identity import Staff
from tests.rest.operations import FOREIGN, NOBODYS, OWN, operations
from tests.rest.permissions import EXPECTED, ROLES, UIDS, RoleRequests, cell_of
from tests.rest.world import (
    ADMIN,
    AGENT,
    MEMBER,
    OTHER_PI,
    PI,
    STAFF,
    SUPERUSER,
    UNKNOWN,
    World,
    create_world,
    grant,
    report,
)


@given(
    operation=st.sampled_from(
        sorted(set(operations()) - {"show_myself", "make_token", "revoke_token", "list_tokens"})
    ),
    whose=st.sampled_from([OWN, FOREIGN, NOBODYS]),
    actor=st.sampled_from(["admin", "super"]),
    other_role=st.sampled_from([role for role in ROLES if role not in ("nobody", "token")]),
)
def test_acting_as_gives_exactly_the_permissions_of_that_user(
    role_requests: RoleRequests, operation: str, whose: str, actor: str, other_role: str
) -> None:
    expected = EXPECTED[operation, whose, other_role]
    if (
        other_role == "super"
        and actor == "admin"
        and not expected.startswith("401")
        and EXPECTED[operation, whose, "nobody"] == "401"
    ):
        expected = "403"  # an admin may not become a superuser
    assert (
        cell_of(operation, role_requests.response(operation, whose, actor, as_=UIDS[other_role]))
        == expected
    )


@given(
    operation=st.sampled_from(sorted(operations())),
    whose=st.sampled_from([OWN, FOREIGN, NOBODYS]),
    actor=st.sampled_from([role for role in ROLES if role not in ("nobody", "admin", "super")]),
    other_role=st.sampled_from([MEMBER, PI, OTHER_PI, ADMIN, SUPERUSER, UNKNOWN]),
)
def test_only_staff_may_act_as_another_user(
    role_requests: RoleRequests, operation: str, whose: str, actor: str, other_role: int
) -> None:
    if EXPECTED[operation, whose, "nobody"] != "401":
        return  # no authentication needed
    assert role_requests.response(operation, whose, actor, as_=other_role).status_code == 403


def test_acting_as_is_recorded_once_per_request(world: World) -> None:
    before = world.entries()
    world.ask("GET", "/alloc", ADMIN, as_=MEMBER)
    world.ask("GET", "/alloc/999999", SUPERUSER, as_=PI)
    assert world.entries() == before + 2
    world.ask("GET", "/alloc", ADMIN)
    world.ask("GET", "/alloc", ADMIN, as_=ADMIN)  # the same user: not recorded
    world.ask("GET", "/alloc", MEMBER, as_=PI)  # refused: not recorded
    assert world.entries() == before + 2


def test_journal_names_both_users_and_the_request(world: World) -> None:
    world.ask("GET", f"/alloc/{world.own['allocation']}", ADMIN, as_=MEMBER)
    with world.context.services.store.reading() as reader:
        notes = [entry for entry in reader.scan(Entry) if entry.kind is Kind.NOTE]
    assert [(note.actor, note.acting_as) for note in notes] == [(ADMIN, MEMBER)]
    assert f"acted as user {MEMBER}: GET /alloc/{world.own['allocation']}" in (
        notes[0].details or ""
    )


def test_journal_marks_a_dry_run(world: World) -> None:
    path = f"/project/{world.own['project']}/member/{MEMBER}"
    assert world.ask("DELETE", f"{path}?dry-run=true", SUPERUSER, as_=PI).status_code == 200
    with world.context.services.store.reading() as reader:
        (note,) = [entry for entry in reader.scan(Entry) if entry.kind is Kind.NOTE]
    assert f"acted as user {PI}: a dry run of DELETE {path}" in (note.details or "")


def test_entries_written_while_acting_as_have_both_uids(world: World) -> None:
    made = world.ask(
        "PUT", f"/alloc/{world.own['allocation']}/cap/{MEMBER}", SUPERUSER, as_=PI, json={"cap": 5}
    )
    rows = world.ask(
        "GET", f"/alloc/{world.own['allocation']}/statement?all=true", SUPERUSER
    ).json()["data"]["entries"]
    entry = next(row for row in rows if row["id"] == made.json()["data"]["entry"])
    assert (entry["actor"], entry["acting_as"]) == (SUPERUSER, PI)


def test_admin_reports_runs_only_as_the_agent(world: World) -> None:
    """See docs/decisions/0025."""
    assert world.ask("POST", "/job", ADMIN, json=report(91)).status_code == 403
    held = world.ask("POST", "/job", ADMIN, as_=AGENT, json=report(91)).json()["data"]
    rows = world.ask("GET", f"/alloc/{held['allocation']}/statement?all=true", SUPERUSER).json()[
        "data"
    ]["entries"]
    entry = next(row for row in rows if row["id"] == held["entry"])
    assert (entry["kind"], entry["actor"], entry["acting_as"]) == ("hold", ADMIN, AGENT)


def test_granters_of_a_category_are_judged_by_the_user_acted_as() -> None:
    """A superuser who acts as a granter grants, and a granter who acts as another does not."""
    granter = SUPERUSER + 1_000
    categories = {
        "research": GrantCategory(),
        "board": GrantCategory(granters=frozenset({granter})),
    }
    staff = Staff(STAFF.superusers | {granter}, STAFF.admins)
    with create_world(staff=staff, policy=Policy(categories=categories)) as world:
        requests = [
            (SUPERUSER, None, 403),
            (granter, SUPERUSER, 403),
            (ADMIN, granter, 403),
            (SUPERUSER, granter, 201),
        ]
        for actor, as_, status in requests:
            answer = world.ask("POST", "/alloc", actor, as_=as_, json=grant(category="board"))
            assert answer.status_code == status, answer.text
            assert (f"only users {granter} grant" in answer.text) is (
                status == 403 and actor != ADMIN
            )


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ("nosuchuser", 404),
        ("4294967295", 400),
        ("-1", 400),
        ("root,x", 400),
        ("root;x", 404),
        ("", 400),
        ("1e3", 404),
    ],
)
def test_acting_as_an_unknown_user_is_refused(shared_world: World, named: str, status: int) -> None:
    answer = shared_world.ask("GET", "/alloc", SUPERUSER, as_=named)
    assert (answer.status_code, answer.json()["field"]) == (status, "X-Fairbank-As")


def test_acting_as_a_user_by_name(shared_world: World) -> None:
    assert (
        shared_world.ask("GET", "/whoami", ADMIN, as_="nobody").json()["data"]["user"] == "nobody"
    )
