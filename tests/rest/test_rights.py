"""Who may do what: every operation of the OpenAPI document, asked by everybody, of their own project, of another and of none.

One table, each cell written down. Who may not see a thing is told that there is no such thing (404), in the very same bytes
as when there is none; who sees it and may not do it is told so (403).

    strangr  a user with no project        agent  reports the runs of cluster alpha
    coord    a coordinator of chem         other  the agent of cluster beta
    super    a superuser                   token  a read-only token of chem's PI

"own" is project chem (and cluster alpha, and one's own token), "foreign" is bio (and beta), "unknown" is none. 200:0 is an empty
list. 200:403 is an answer to many reports that says 403 to the one that was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.entry import Kind
from tests.rest.operations import FOREIGN, NOBODYS, OWN, call, operations
from tests.rest.world import (
    ADMIN,
    AGENT,
    COORDINATOR,
    MEMBER,
    NOW,
    OTHER_AGENT,
    OTHER_PI,
    PI,
    STRANGER,
    SUPERUSER,
    UNKNOWN,
    World,
    a_world,
    report,
)

TABLE = """
# operation       on what nobody  strangr member  coord   pi      admin   super   agent   other   token
show_health       any     200     200     200     200     200     200     200     200     200     200
show_myself       any     401     200     200     200     200     200     200     200     200     200
show_metrics      any     401     403     403     403     403     200     200     403     403     403
list_clusters     any     401     200     200     200     200     200     200     200     200     200
list_projects     own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_projects     foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_projects     unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
enter_project     any     401     403     403     403     403     403     201     403     403     403
show_project      own     401     404     200     200     200     200     200     404     404     200
show_project      foreign 401     404     404     404     404     200     200     404     404     404
show_project      unknown 401     404     404     404     404     404     404     404     404     404
list_members      own     401     404     200     200     200     200     200     404     404     200
list_members      foreign 401     404     404     404     404     200     200     404     404     404
list_members      unknown 401     404     404     404     404     404     404     404     404     404
set_member        own     401     404     403     200     200     403     200     404     404     403
set_member        foreign 401     404     404     404     404     403     200     404     404     403
set_member        unknown 401     404     404     404     404     404     404     404     404     403
remove_member     own     401     404     403     200     200     403     200     404     404     403
remove_member     foreign 401     404     404     404     404     403     200     404     404     403
remove_member     unknown 401     404     404     404     404     404     404     404     404     403
list_allocations  own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_allocations  foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_allocations  unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
open_allocation   own     401     403     403     403     403     403     201     403     403     403
open_allocation   foreign 401     403     403     403     403     403     201     403     403     403
open_allocation   unknown 401     403     403     403     403     403     404     403     403     403
list_balances     own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_balances     foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_balances     unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
show_allocation   own     401     404     200     200     200     200     200     404     404     200
show_allocation   foreign 401     404     404     404     404     200     200     404     404     404
show_allocation   unknown 401     404     404     404     404     404     404     404     404     404
amend_allocation  own     401     404     403     403     403     403     200     404     404     403
amend_allocation  foreign 401     404     404     404     404     403     200     404     404     403
amend_allocation  unknown 401     404     404     404     404     404     404     404     404     403
list_users        own     401     404     200     200     200     200     200     404     404     200
list_users        foreign 401     404     404     404     404     200     200     404     404     404
list_users        unknown 401     404     404     404     404     404     404     404     404     404
set_cap           own     401     404     403     200     200     403     200     404     404     403
set_cap           foreign 401     404     404     404     404     403     200     404     404     403
set_cap           unknown 401     404     404     404     404     404     404     404     404     403
deposit           own     401     404     403     403     403     403     201     404     404     403
deposit           foreign 401     404     404     404     404     403     201     404     404     403
deposit           unknown 401     404     404     404     404     404     404     404     404     403
withdraw          own     401     404     403     403     403     403     201     404     404     403
withdraw          foreign 401     404     404     404     404     403     201     404     404     403
withdraw          unknown 401     404     404     404     404     404     404     404     404     403
transfer          own     401     404     403     403     201     403     201     404     404     403
transfer          foreign 401     404     404     404     404     403     201     404     404     403
transfer          unknown 401     404     404     404     404     404     404     404     404     403
show_statement    own     401     404     200     200     200     200     200     404     404     200
show_statement    foreign 401     404     404     404     404     200     200     404     404     404
show_statement    unknown 401     404     404     404     404     404     404     404     404     404
list_entries      own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_entries      foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_entries      unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_activity     own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_activity     foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_activity     unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_credits      own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_credits      foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_credits      unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_predebits    own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_predebits    foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_predebits    unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_debits       own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_debits       foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_debits       unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_jobs         own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_jobs         foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_jobs         unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
report_run        own     401     403     403     403     403     403     201     201     403     403
report_run        foreign 401     403     403     403     403     403     201     403     201     403
report_run        unknown 401     403     403     403     403     403     201     403     403     403
report_runs       own     401     200:403 200:403 200:403 200:403 200:403 200:201 200:201 200:403 403
report_runs       foreign 401     200:403 200:403 200:403 200:403 200:403 200:201 200:403 200:201 403
report_runs       unknown 401     200:403 200:403 200:403 200:403 200:403 200:201 200:403 200:403 403
show_job          own     401     404     200     200     200     200     200     404     404     200
show_job          foreign 401     404     404     404     404     200     200     404     404     404
show_job          unknown 401     404     404     404     404     404     404     404     404     404
refund_job        own     401     404     403     403     403     403     201     404     404     403
refund_job        foreign 401     404     404     404     404     403     201     404     404     403
refund_job        unknown 401     404     404     404     404     404     404     404     404     403
recharge_job      own     401     404     403     403     403     403     201     404     404     403
recharge_job      foreign 401     404     404     404     404     403     201     404     404     403
recharge_job      unknown 401     404     404     404     404     404     404     404     404     403
list_failures     own     401     200:0   200     200     200     200     200     200:0   200:0   200
list_failures     foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_failures     unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
show_failure      own     401     404     200     200     200     200     200     404     404     200
show_failure      foreign 401     404     404     404     404     200     200     404     404     404
show_failure      unknown 401     404     404     404     404     404     404     404     404     404
show_usage        own     401     200:0   200     200     200     200     200     200:0   200:0   200
show_usage        foreign 401     200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
show_usage        unknown 401     200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
quote_job         own     401     404     200     200     200     200     200     404     404     200
quote_job         foreign 401     404     404     404     404     200     200     404     404     404
quote_job         unknown 401     404     404     404     404     404     404     404     404     404
list_tokens       own     401     200     200     200     200     200     200     200     200     200
list_tokens       foreign 401     403     403     403     403     403     200     403     403     403
list_tokens       unknown 401     403     403     403     403     403     200:0   403     403     403
make_token        own     401     201     201     201     201     201     201     201     201     403
make_token        foreign 401     403     403     403     403     403     201     403     403     403
make_token        unknown 401     403     403     403     403     403     201     403     403     403
revoke_token      own     401     200     200     200     200     200     200     200     200     403
revoke_token      foreign 401     404     404     404     404     404     200     404     404     403
revoke_token      unknown 401     404     404     404     404     404     404     404     404     403
show_heads        any     401     403     403     403     403     200     200     403     403     403
show_document     any     200     200     200     200     200     200     200     200     200     200
show_docs         any     200     200     200     200     200     200     200     200     200     200
show_asset        any     200     200     200     200     200     200     200     200     200     200
"""

ROLES = "nobody strangr member coord pi admin super agent other token".split()
UIDS = dict(zip(ROLES, (None, STRANGER, MEMBER, COORDINATOR, PI, ADMIN, SUPERUSER, AGENT, OTHER_AGENT, PI), strict=True))


class Cell(NamedTuple):
    operation: str
    whose: str
    role: str
    expected: str


def cells() -> Iterator[Cell]:
    """The table, cell by cell; a line about "any" thing stands for three."""
    for line in TABLE.strip().splitlines()[1:]:
        operation, on_what, *expected = line.split()
        for whose in (OWN, FOREIGN, NOBODYS) if on_what == "any" else (on_what,):
            for role, each in zip(ROLES, expected, strict=True):
                yield Cell(operation, whose, role, each)


EXPECTED = {(each.operation, each.whose, each.role): each.expected for each in cells()}


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    with a_world() as world:
        yield Asking(world)


class Asking:
    """Asks for operations in somebody's role."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._token = world.token(PI, "read")

    def response(self, operation: str, whose: str, role: str, **more: Any) -> httpx.Response:
        uid = UIDS[role]
        made = call(self.world, operation, whose, SUPERUSER if uid is None else uid)
        if made.body is not None:
            more["json"] = made.body
        if role == "token":
            return self.world.ask(made.method, made.path, token=self._token, **more)
        return self.world.ask(made.method, made.path, uid, **more)

    def outcome(self, operation: str, whose: str, role: str) -> str:
        return told(operation, self.response(operation, whose, role))


def told(operation: str, response: httpx.Response) -> str:
    """The response as a cell of the table."""
    said = str(response.status_code)
    data = response.json().get("data") if "json" in response.headers["content-type"] else None
    if isinstance(data, list) and operation == "report_runs":
        return f"{said}:{data[0]['status']}"
    return f"{said}:0" if data == [] else said


def test_the_table_is_about_every_operation_and_every_role() -> None:
    wanted = {(operation, whose, role) for operation in operations() for whose in (OWN, FOREIGN, NOBODYS) for role in ROLES}
    assert EXPECTED.keys() == wanted


@pytest.mark.parametrize("operation", operations())
def test_everybody_gets_what_the_table_says(asking: Asking, operation: str) -> None:
    wrong = [
        f"{cell.whose} {cell.role}: {cell.expected} expected, was {outcome}"
        for cell in cells()
        if cell.operation == operation and (outcome := asking.outcome(operation, cell.whose, cell.role)) != cell.expected
    ]
    assert wrong == []


HIDDEN = [
    (operation, role)
    for operation in operations()
    for role in ROLES
    if role not in ("admin", "super")
    if EXPECTED[operation, FOREIGN, role] in ("404", "200:0") and EXPECTED[operation, NOBODYS, role] == EXPECTED[operation, FOREIGN, role]
]


def test_what_belongs_to_others_looks_like_what_is_not_there(asking: Asking) -> None:
    """Byte for byte, but for the number or name that was asked for."""
    assert len(HIDDEN) > 100
    for operation, role in HIDDEN:
        foreign, unknown = (asking.response(operation, whose, role) for whose in (FOREIGN, NOBODYS))
        assert neutral(foreign) == neutral(unknown), (operation, role)


def neutral(response: httpx.Response) -> tuple[int, list[tuple[str, str]], str]:
    """All that the asker sees, with what was asked for left out."""
    asked = [part for part in response.request.url.path.split("/") if part.isdigit()][:1] or ["bio", "nosuch"]
    text = response.text
    for each in asked:
        text = text.replace(each, "X")
    return response.status_code, [each for each in response.headers.items() if each[0] != "content-length"], text


@given(
    operation=st.sampled_from(sorted(set(operations()) - {"show_myself", "make_token", "revoke_token", "list_tokens"})),
    whose=st.sampled_from([OWN, FOREIGN, NOBODYS]),
    actor=st.sampled_from(["admin", "super"]),
    other=st.sampled_from([role for role in ROLES if role not in ("nobody", "token")]),
)
def test_acting_as_another_user_gives_just_that_users_rights(asking: Asking, operation: str, whose: str, actor: str, other: str) -> None:
    expected = EXPECTED[operation, whose, other]
    if other == "super" and actor == "admin" and not expected.startswith("401") and EXPECTED[operation, whose, "nobody"] == "401":
        expected = "403"  # an admin may not become a superuser
    assert told(operation, asking.response(operation, whose, actor, as_=UIDS[other])) == expected


@given(
    operation=st.sampled_from(sorted(operations())),
    whose=st.sampled_from([OWN, FOREIGN, NOBODYS]),
    actor=st.sampled_from([role for role in ROLES if role not in ("nobody", "admin", "super")]),
    other=st.sampled_from([MEMBER, PI, OTHER_PI, ADMIN, SUPERUSER, UNKNOWN]),
)
def test_nobody_else_may_act_as_another_user(asking: Asking, operation: str, whose: str, actor: str, other: int) -> None:
    if EXPECTED[operation, whose, "nobody"] != "401":
        return  # open to all: nobody is asked who asks
    assert asking.response(operation, whose, actor, as_=other).status_code == 403


def test_acting_as_another_user_is_journalled_once_for_each_request(world: World) -> None:
    before = world.entries()
    world.ask("GET", "/alloc", ADMIN, as_=MEMBER)
    world.ask("GET", "/alloc/999999", SUPERUSER, as_=PI)
    assert world.entries() == before + 2
    world.ask("GET", "/alloc", ADMIN)
    world.ask("GET", "/alloc", ADMIN, as_=ADMIN)  # oneself
    world.ask("GET", "/alloc", MEMBER, as_=PI)  # refused
    assert world.entries() == before + 2


def test_the_journal_names_who_acted_as_whom_and_for_what(world: World) -> None:
    world.ask("GET", f"/alloc/{world.own['allocation']}", ADMIN, as_=MEMBER)
    with world.house.store.reading() as reader:
        notes = [each for each in reader.scan_entries() if each.kind is Kind.NOTE]
    assert [(each.actor, each.acting_as) for each in notes] == [(ADMIN, MEMBER)]
    assert f"acted as user {MEMBER}: GET /alloc/{world.own['allocation']}" in (notes[0].details or "")


def test_what_is_written_while_acting_carries_both_names(world: World) -> None:
    made = world.ask("PUT", f"/alloc/{world.own['allocation']}/cap/{MEMBER}", SUPERUSER, as_=PI, json={"cap": 5})
    rows = world.ask("GET", f"/alloc/{world.own['allocation']}/statement", SUPERUSER).json()["data"]["entries"]
    entry = next(each for each in rows if each["id"] == made.json()["data"]["entry"])
    assert (entry["actor"], entry["acting_as"]) == (SUPERUSER, PI)


@pytest.mark.parametrize(
    ("named", "status"), [("nosuchuser", 404), ("4294967295", 400), ("-1", 400), ("root;x", 400), ("", 400), ("1e3", 400)]
)
def test_acting_as_nobody_we_know(old_world: World, named: str, status: int) -> None:
    answer = old_world.ask("GET", "/alloc", SUPERUSER, as_=named)
    assert (answer.status_code, answer.json()["field"]) == (status, "as")


def test_acting_as_a_user_by_name(old_world: World) -> None:
    assert old_world.ask("GET", "/whoami", ADMIN, as_="nobody").json()["data"]["user"] == "nobody"


def test_a_pi_cannot_move_credit_out_of_the_own_projects(old_world: World) -> None:
    there = {"to": old_world.foreign["allocation"], "amount": 1, "comment": "x"}
    assert old_world.ask("POST", f"/alloc/{old_world.own['allocation']}/transfer", PI, json=there).status_code == 404


@pytest.mark.parametrize(("role", "status"), [("pi", 403), ("coordinator", 403), ("member", 200)])
def test_a_coordinator_gives_only_the_role_of_a_member(old_world: World, role: str, status: int) -> None:
    path = f"/project/{old_world.own['project']}/member/8888"
    assert old_world.ask("PUT", path, COORDINATOR, json={"role": role}).status_code == status


def test_a_coordinator_takes_no_role_from_the_pi(old_world: World) -> None:
    path = f"/project/{old_world.own['project']}/member/{PI}"
    for said in (old_world.ask("DELETE", path, COORDINATOR), old_world.ask("PUT", path, COORDINATOR, json={"role": "member"})):
        no = said.json()
        assert (said.status_code, no["detail"]) == (403, "nobody gives or takes a role at or above their own, or caps who has one.")
        assert (no["refusal"]["reason"], no["remedy"]) == ("ROLE_ABOVE", "ask a superuser")


@pytest.mark.parametrize(
    ("by", "capped", "status"),
    [
        (COORDINATOR, PI, 403),
        (COORDINATOR, COORDINATOR, 403),
        (COORDINATOR, MEMBER, 200),
        (COORDINATOR, STRANGER, 200),
        (PI, PI, 403),
        (PI, COORDINATOR, 200),
        (PI, MEMBER, 200),
        (SUPERUSER, PI, 200),
        (SUPERUSER, COORDINATOR, 200),
    ],
)
@pytest.mark.parametrize("cap", [0, None])
def test_one_caps_whose_role_is_below_the_own(old_world: World, by: int, capped: int, status: int, cap: int | None) -> None:
    said = old_world.ask("PUT", f"/alloc/{old_world.own['allocation']}/cap/{capped}", by, json={"cap": cap})
    assert said.status_code == status
    if status == 403:
        assert (said.json()["refusal"]["reason"], said.json()["remedy"]) == ("ROLE_ABOVE", "ask a superuser")


def test_an_owner_sees_a_run_whose_project_was_left(world: World) -> None:
    world.ask("DELETE", f"/project/{world.own['project']}/member/{MEMBER}", SUPERUSER)
    assert world.ask("GET", f"/job/{world.own['job']}", MEMBER).status_code == 200
    assert world.ask("GET", f"/alloc/{world.own['allocation']}", MEMBER).status_code == 404


def test_a_child_sees_what_its_parent_shares_but_not_who_drew_it(world: World) -> None:
    world.ask("POST", "/project", SUPERUSER, json={"gname": "kid", "gid": 4_000, "account": "kid", "parent": world.own["project"]})
    kid = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    world.ask("PUT", f"/project/{kid}/member/{STRANGER}", SUPERUSER, json={"role": "pi"})
    shared = f"/alloc/{world.own['allocation']}"
    assert world.ask("GET", "/balance", STRANGER).json()["data"] == []
    world.ask("PATCH", shared, SUPERUSER, json={"shared": True, "comment": "for the kid"})
    for path in ("/balance", "/balance?account=kid", "/alloc", "/alloc?account=kid"):
        for uid in (STRANGER, SUPERUSER) if "=" in path else (STRANGER,):
            assert [row["id"] for row in world.ask("GET", path, uid).json()["data"]] == [world.own["allocation"]], (path, uid)
    assert world.ask("GET", shared, STRANGER).status_code == 200
    for path in (f"/alloc/{world.own['later']}", f"/alloc/{world.own['later']}/statement", f"/job/{world.own['job']}"):
        assert world.ask("GET", path, STRANGER).status_code == 404, path
    instead = f"see what yours used of it: fairbank usage --alloc {world.own['allocation']}"
    for path in (f"{shared}/statement", f"{shared}/user"):
        no = world.ask("GET", path, STRANGER)
        assert (no.status_code, no.json()["remedy"]) == (403, instead)
        assert world.ask("GET", path, OTHER_PI).status_code == 404, path
    deposit = {"amount": 60, "comment": "mine"}
    assert [world.ask("POST", f"{shared}/deposit", uid, json=deposit).status_code for uid in (STRANGER, OTHER_PI)] == [403, 404]
    assert world.ask("GET", "/balance?account=chem", STRANGER).json()["data"] == []


def test_a_run_is_found_under_its_project_and_seen_by_both_it_and_who_paid(world: World) -> None:
    """A child's run on its parent's credit: its project is the child, and the parent's people see it for it is theirs that is spent."""
    _lend(world)
    held = report(77, account="kid", owner_uid=UNKNOWN, time_limit=7_200)
    ended = {**report(77, account="kid", owner_uid=UNKNOWN, do="complete", state="COMPLETED", elapsed=3_600), "end": NOW + 3_600}
    number = world.ask("POST", "/job", AGENT, json=held).json()["data"]["run"]
    for path in ("/job?account=kid", f"/job?allocation={world.own['allocation']}&job_id=77", "/predebit?account=kid"):
        for uid in (STRANGER, SUPERUSER):
            assert [row["job_id"] for row in world.ask("GET", path, uid).json()["data"]] == [77], (path, uid)
    assert world.ask("POST", "/job", AGENT, json=ended).status_code == 201
    row = world.ask("GET", f"/job/{number}", STRANGER).json()["data"]
    assert (row["account"], row["allocation"]) == ("kid", world.own["allocation"])
    assert world.ask("GET", f"/job/{number}", PI).json()["data"] == row
    assert world.ask("GET", f"/job/{number}", OTHER_PI).status_code == 404
    for uid, account, used in ((STRANGER, "kid", [60]), (SUPERUSER, "kid", [60]), (SUPERUSER, "chem", [30_000]), (PI, "chem", [30_000])):
        assert [each["charged"] for each in world.ask("GET", f"/usage?account={account}", uid).json()["data"]] == used, (uid, account)
        told = world.ask("GET", f"/activity?account={account}", uid).json()["data"]
        assert {each["job_id"] == 77 for each in told} == {account == "kid"}, (uid, account)
    of_the_allocation = f"/usage?allocation={world.own['allocation']}&by=allocation"
    for uid, paid in ((PI, 30_060), (STRANGER, 60)):
        assert [each["charged"] for each in world.ask("GET", of_the_allocation, uid).json()["data"]] == [paid]


def test_a_hold_that_may_not_grow_is_refused_in_the_name_of_the_project_it_ran_for(world: World) -> None:
    _lend(world)
    asked = report(77, account="kid", owner_uid=UNKNOWN)
    assert world.ask("POST", "/job", AGENT, json=asked).status_code == 201
    no = world.ask("POST", "/job", AGENT, json={**asked, "do": "adjust", "billing": 1_000_000}).json()["refusal"]
    row = world.ask("GET", f"/failure/{no['entry']}", STRANGER).json()["data"]
    assert (row["account"], row["allocation"]) == ("kid", world.own["allocation"])
    assert [each["id"] for each in world.ask("GET", "/failure?account=kid", STRANGER).json()["data"]] == [no["entry"]]


def test_a_childs_name_finds_what_the_parents_people_see_of_it_and_no_more(world: World) -> None:
    """What the parent's credit paid; not what the child ran on its own. To others the name is as one that nobody has."""
    _lend(world)
    kid = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    terms = {"category": "research", "start": str(NOW), "end": str(NOW + 86_400), "amount": 60_000, "comment": "its own"}
    assert world.ask("POST", "/alloc", SUPERUSER, json={"project": kid, "resource": "own", **terms}).status_code == 201
    for job, resource in ((77, {}), (78, {"resource": "own", "amount": 60})):
        held = report(job, account="kid", owner_uid=UNKNOWN, **resource)
        assert world.ask("POST", "/job", AGENT, json=held).status_code == 201
    assert world.ask("POST", "/job", AGENT, json=report(79, account="kid", owner_uid=UNKNOWN, amount=10**9)).status_code == 402
    paths = {path: f"{path}?account=" for path in ("/job", "/predebit", "/activity", "/entry", "/failure")}

    def jobs(path: str, name: str, uid: int) -> set[int]:
        return {row["job_id"] for row in world.ask("GET", paths[path] + name, uid).json()["data"]}

    for path in paths:
        paid, own = ({79}, set[int]()) if path == "/failure" else ({77}, {78})
        assert jobs(path, "kid", PI) == paid, path
        assert jobs(path, "kid", SUPERUSER) - {None} == paid | own, path
        assert jobs(path, "kid", OTHER_PI) == jobs(path, "nosuch", OTHER_PI) == set(), path
    for job, resource in ((77, {}), (78, {"resource": "own", "amount": 60})):
        ended = {**report(job, account="kid", owner_uid=UNKNOWN, do="complete", state="COMPLETED", elapsed=3_600), **resource}
        assert world.ask("POST", "/job", AGENT, json={**ended, "end": NOW + 3_600}).status_code == 201
    used = {uid: [row["runs"] for row in world.ask("GET", "/usage?account=kid", uid).json()["data"]] for uid in (PI, SUPERUSER, OTHER_PI)}
    assert used == {PI: [1], SUPERUSER: [2], OTHER_PI: []}
    for path in ("/project", "/alloc", "/balance", "/debit"):
        assert world.ask("GET", f"{path}?account=kid", PI).json()["data"] == [], path
        assert world.ask("GET", f"{path}?account=kid", OTHER_PI).json()["data"] == [], path


def _lend(world: World) -> None:
    """Project kid, whose PI is the stranger, draws on what chem shares."""
    world.ask("POST", "/project", SUPERUSER, json={"gname": "kid", "gid": 4_000, "account": "kid", "parent": world.own["project"]})
    kid = world.ask("GET", "/project?account=kid", SUPERUSER).json()["data"][0]["id"]
    world.ask("PUT", f"/project/{kid}/member/{STRANGER}", SUPERUSER, json={"role": "pi"})
    world.ask("PATCH", f"/alloc/{world.own['allocation']}", SUPERUSER, json={"shared": True, "comment": "for the kid"})


def test_only_the_owner_of_a_refused_job_is_told_of_other_projects(world: World) -> None:
    """What another project has left is nothing for the PI of this one."""
    world.ask("PUT", f"/project/{world.foreign['project']}/member/{MEMBER}", SUPERUSER, json={"role": "member"})
    refused = world.ask("POST", "/job", AGENT, json={"do": "hold", **_too_dear(world)})
    assert "another project: -A bio" in " ".join(refused.json()["refusal"]["remedies"])
    failure = f"/failure/{refused.json()['refusal']['entry']}"
    told_to = {uid: " ".join(world.ask("GET", failure, uid).json()["data"]["remedies"]) for uid in (MEMBER, PI, ADMIN)}
    assert {uid: "bio" in remedies for uid, remedies in told_to.items()} == {MEMBER: True, PI: False, ADMIN: True}


def _too_dear(world: World) -> dict[str, Any]:
    world.ask("POST", f"/alloc/{world.own['allocation']}/withdraw", SUPERUSER, json={"amount": 560_000, "comment": "x"})
    return {
        "cluster": "alpha", "job_id": 77, "submitted": 1, "owner_uid": MEMBER, "account": "chem", "partition": "std",
        "start": world.clock.now(), "time_limit": 3600, "amount": 100_000,
    }  # fmt: skip
