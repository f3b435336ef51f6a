"""Authentication by the socket and by tokens, scopes, revocation, and Unix groups."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from fairbank.bank.entry import Entry, Kind
from fairbank.bank.token import Token
from fairbank.core.time import Instant, iso
from fairbank.rest.auth.credentials import CHALLENGE
from fairbank.rest.auth.peers import groups_of
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.rest.counting_store import CountingStore
from tests.rest.world import (
    ADMIN,
    AGENT,
    DAY,
    MEMBER,
    NOW,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
    grant,
    report,
)


def test_unauthenticated_request_is_refused_with_the_ways_to_authenticate(
    shared_world: World,
) -> None:
    answer = shared_world.ask("GET", "/alloc")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, CHALLENGE)
    assert (
        answer.json()["remedy"]
        == "use the bank's Unix socket, sign with MUNGE, or send Authorization: Bearer fbk_..."
    )


_TOKEN = "fbk_" + "A" * 43
_NONE = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer x",
    "Bearer fbk_short",
    "Basic cm9vdDpyb290",
    _TOKEN,
    f"Bearer {_TOKEN}",
    "\xff",
    "Bearer\tx",
]


@pytest.mark.parametrize("header", _NONE)
def test_invalid_credential_is_refused(shared_world: World, header: str) -> None:
    answer = shared_world.ask("GET", "/alloc", headers={"Authorization": header.encode("latin-1")})
    assert (answer.status_code, answer.json()["title"]) == (401, "unauthenticated")
    assert "A" * 43 not in answer.text


def test_invalid_token_is_refused_on_the_unix_socket(shared_world: World) -> None:
    """The server does not replace an expired credential by the user of the socket."""
    assert shared_world.ask("GET", "/alloc", SUPERUSER, token=_TOKEN).status_code == 401


def test_two_credentials_are_refused(shared_world: World) -> None:
    token = shared_world.token(PI, "read")
    headers = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    assert shared_world.client.get("/alloc", headers=headers).status_code == 401


def test_without_munge_a_munge_credential_is_refused(shared_world: World) -> None:
    answer = shared_world.ask("GET", "/alloc", headers={"Authorization": "Munge MUNGE:AAAA:"})
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        "this server does not accept MUNGE credentials",
    )


# --- tokens ---


def make(world: World, identity: int, **more: object) -> str:
    answer = world.ask(
        "POST",
        "/token",
        identity,
        json={"label": "a script", "scopes": ["read"], "days": 3, **more},
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["secret"])


def test_token_gives_its_owner_and_scopes(world: World) -> None:
    user = world.ask("GET", "/whoami", token=make(world, PI)).json()["data"]
    assert (user["uid"], user["scopes"]) == (PI, ["read"])


def test_token_secret_is_shown_once_and_not_stored(world: World) -> None:
    secret = make(world, PI)
    assert secret not in world.ask("GET", "/token", PI).text
    with world.context.services.store.reading() as reader:
        assert secret.encode() not in repr([*reader.scan(Token), *reader.scan(Entry)]).encode()


def test_read_only_token_cannot_write(world: World) -> None:
    secret = make(world, SUPERUSER)
    assert world.ask("GET", "/alloc", token=secret).status_code == 200
    for method, path, body in (
        ("POST", "/alloc", grant()),
        ("POST", f"/alloc/{world.own['allocation']}/deposit", {"amount": 1, "comment": "x"}),
        ("POST", "/job", report(1)),
        ("POST", "/token", {"label": "x", "scopes": ["read"]}),
        ("DELETE", "/token/1", None),
    ):
        answer = world.ask(method, path, token=secret, json=body)
        assert (answer.status_code, answer.json()["field"]) == (403, "scopes"), path


def test_read_only_token_of_an_agent_cannot_report(world: World) -> None:
    assert (
        world.ask("POST", "/job", token=world.token(AGENT, "read"), json=report(1)).status_code
        == 403
    )
    assert (
        world.ask(
            "POST", "/job/bulk", token=world.token(AGENT, "read"), json={"reports": [report(1)]}
        ).status_code
        == 403
    )


def test_agent_token_only_reports_for_its_cluster(world: World) -> None:
    secret = world.token(STRANGER, "agent:alpha")
    assert world.ask("POST", "/job", token=secret, json=report(1)).status_code == 201
    assert (
        world.ask("POST", "/job", token=secret, json=report(2, cluster="beta")).status_code == 403
    )
    assert world.ask("GET", "/job", token=secret).status_code == 403
    assert world.ask("GET", "/whoami", token=secret).json()["data"]["clusters"] == ["alpha"]


def test_agent_scope_does_not_apply_when_acting_as(world: World) -> None:
    secret = world.token(ADMIN, "read", "write", "agent:alpha")
    assert world.ask("POST", "/job", token=secret, json=report(1)).status_code == 201
    assert world.ask("POST", "/job", token=secret, as_=MEMBER, json=report(2)).status_code == 403


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [
        ({"scopes": ["admin"]}, 400, "scopes"),
        ({"scopes": []}, 400, "scopes"),
        ({"scopes": ["agent:"]}, 400, "scopes"),
        ({"scopes": ["agent:al pha"]}, 400, "scopes"),
        ({"scopes": ["agent:alpha"]}, 403, "scopes"),
        ({"uid": MEMBER}, 403, None),
        ({"label": ""}, 400, "label"),
        ({"label": "a\nb"}, 400, "label"),
        ({"days": 0}, 400, "days"),
        ({"days": 732}, 400, "days"),
    ],
)
def test_token_that_a_user_may_not_create_is_refused(
    shared_world: World, more: dict[str, object], status: int, field: str | None
) -> None:
    answer = shared_world.ask(
        "POST", "/token", PI, json={"label": "x", "scopes": ["read"], "days": 3, **more}
    )
    assert (answer.status_code, answer.json().get("field")) == (status, field)


def test_superuser_creates_tokens_for_other_users(world: World) -> None:
    secret = make(world, SUPERUSER, uid=MEMBER, scopes=["read", "agent:alpha"])
    assert world.ask("GET", "/whoami", token=secret).json()["data"]["uid"] == MEMBER


def test_token_creates_no_token_that_outlives_it(world: World) -> None:
    made = world.ask(
        "POST",
        "/token",
        token=make(world, PI, scopes=["write"], days=1),
        json={"label": "x", "scopes": ["write"], "days": 731},
    )
    first, second = (row["expires"] for row in world.ask("GET", "/token", PI).json()["data"])
    assert (second, made.json()["data"]["expires"]) == (first, first)


def test_token_creates_no_token_with_more_scopes(world: World) -> None:
    writer = world.token(PI, "write")
    assert (
        world.ask(
            "POST", "/token", token=writer, json={"label": "x", "scopes": ["write"]}
        ).status_code
        == 201
    )
    assert (
        world.ask(
            "POST", "/token", token=writer, json={"label": "x", "scopes": ["read"]}
        ).status_code
        == 403
    )


@pytest.mark.parametrize("actor", [ADMIN, SUPERUSER])
def test_token_cannot_be_created_while_acting_as(shared_world: World, actor: int) -> None:
    """Such a token would act as the other user without a record in the journal."""
    answer = shared_world.ask(
        "POST", "/token", actor, as_=PI, json={"label": "x", "scopes": ["read"]}
    )
    assert (answer.status_code, answer.json()["field"]) == (403, "X-Fairbank-As")


def test_token_expires_to_the_second(world: World) -> None:
    secret = make(world, PI, days=1)
    world.clock.at = Instant(NOW + DAY - 1)
    assert world.ask("GET", "/alloc", token=secret).status_code == 200
    world.clock.at = Instant(NOW + DAY)
    answer = world.ask("GET", "/alloc", token=secret)
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        f"the token expired at {iso(NOW + DAY)}",
    )


def test_revoked_token_is_refused(world: World) -> None:
    secret = make(world, PI)
    number = world.ask("GET", "/token", PI).json()["data"][0]["id"]
    assert world.ask("DELETE", f"/token/{number}", PI).json()["data"]["revoked"] == iso(NOW)
    answer = world.ask("GET", "/alloc", token=secret)
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        f"the token was revoked at {iso(NOW)}",
    )
    assert world.ask("DELETE", f"/token/{number}", PI).status_code == 404
    assert world.ask("GET", "/token", PI).json()["data"][0]["revoked"] == iso(NOW)


def test_creation_and_revocation_of_tokens_are_recorded(world: World) -> None:
    secret = make(world, PI)
    world.ask("DELETE", "/token/1", SUPERUSER)
    with world.context.services.store.reading() as reader:
        entries = [entry for entry in reader.scan(Entry) if entry.kind is Kind.TOKEN]
    assert [(entry.actor, entry.owner) for entry in entries] == [(PI, PI), (SUPERUSER, PI)]
    made, taken_back = (json.loads(entry.details or "") for entry in entries)
    assert (made["token"], made["label"], made["scopes"], made["revoked"]) == (
        1,
        "a script",
        ["read"],
        None,
    )
    assert taken_back == made | {"revoked": NOW}
    assert not [entry for entry in entries if secret in str(entry)]
    assert world.context.services.audit.verify().findings == ()


def test_token_is_revoked_on_all_servers_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/fairbank.sqlite"
    migrate(url)
    with (
        create_world(open_store(url)) as first,
        create_world(open_store(url), empty=False) as second,
    ):
        secret = make(first, SUPERUSER, uid=PI)
        assert second.ask("GET", "/alloc", token=secret).status_code == 200
        first.ask("DELETE", "/token/1", SUPERUSER)
        assert second.ask("GET", "/alloc", token=secret).status_code == 401


# --- Unix groups ---


@pytest.fixture
def create_own_project() -> Callable[[World], int]:
    """Return a function that creates a project of this process's Unix group and returns its
    number.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        pytest.skip(
            "the user who runs the tests has no name, so the system knows no groups of theirs"
        )
    return lambda world: int(
        world.ask("POST", "/project", SUPERUSER, json={"gname": "ours", "gid": os.getgid()}).json()[
            "data"
        ]["id"]
    )


def test_user_in_the_unix_group_is_a_member(create_own_project: Callable[[World], int]) -> None:
    with create_world(groups_of=groups_of) as world:
        number = create_own_project(world)
        assert world.ask("GET", "/whoami", os.getuid()).json()["data"]["roles"] == [
            {"project": number, "role": "member"}
        ]
        assert world.ask("GET", f"/project/{number}", os.getuid()).status_code == 200


def test_role_in_the_bank_overrides_the_unix_group(
    create_own_project: Callable[[World], int],
) -> None:
    with create_world(groups_of=groups_of) as world:
        number = create_own_project(world)
        world.ask("PUT", f"/project/{number}/member/{os.getuid()}", SUPERUSER, json={"role": "pi"})
        assert world.ask("GET", "/whoami", os.getuid()).json()["data"]["roles"] == [
            {"project": number, "role": "pi"}
        ]


def test_unix_groups_count_only_if_set(
    create_own_project: Callable[[World], int], world: World
) -> None:
    number = create_own_project(world)
    assert world.ask("GET", f"/project/{number}", os.getuid()).status_code == 404


def test_agents_and_superusers_need_no_lookup_of_members() -> None:
    store = CountingStore()
    with create_world(store) as world:
        reads = []
        for method, path, uid, body in (
            ("POST", "/job", AGENT, report(1)),
            ("GET", "/alloc", SUPERUSER, None),
            ("GET", "/alloc", MEMBER, None),
        ):
            before = store.reads
            world.ask(method, path, uid, json=body)
            reads.append(store.reads - before)
        assert reads == [0, 1, 2]
