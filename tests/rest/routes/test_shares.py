"""Daily fair-share values: stored once a day by the agent of a cluster, read by its users, deleted
when old.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.share import ShareRecord, share_key
from fairbank.core.time import Instant
from fairbank.rest.schemas.share import parse_share_cursor, share_cursor
from tests.rest.responses import data
from tests.rest.world import (
    ADMIN,
    AGENT,
    COORDINATOR,
    DAY,
    MEMBER,
    NOW,
    OTHER_AGENT,
    PI,
    STRANGER,
    SUPERUSER,
    World,
    create_world,
)
from tests.support.names import NAMES

CHEM = {
    "account": "chem",
    "shares": 40,
    "norm_shares": 0.4,
    "usage": 52.5,
    "effective": 0.52,
    "level": 0.77,
}
ROWS = [
    {"account": "root", "norm_shares": 0, "usage": 100, "effective": 1},
    CHEM,
    {
        "account": "chem",
        "user": "ayla",
        "shares": 1,
        "norm_shares": 0.5,
        "usage": 52.5,
        "effective": 1,
        "level": 0.5,
        "factor": 0.25,
    },
    {
        "account": "chem",
        "user": "minh",
        "partition": "gpu",
        "shares": "parent",
        "norm_shares": 0.4,
        "usage": 0,
        "effective": 0,
        "factor": 1,
    },
    {
        "account": "bio",
        "shares": 60,
        "norm_shares": 0.6,
        "usage": 47.5,
        "effective": 0.48,
        "level": 1.25,
    },
    {
        "account": "bio",
        "user": "Zoë@x.org",
        "shares": 1,
        "norm_shares": 1,
        "usage": 47.5,
        "effective": 1,
        "level": 1,
        "factor": 1,
    },
]


def upload(**changed: Any) -> dict[str, Any]:
    return {"cluster": "alpha", "at": NOW, "rows": ROWS, **changed}


def store_values(world: World, uid: int = AGENT, dry: str = "", **changed: Any) -> tuple[int, int]:
    answer = world.ask("POST", f"/share{dry}", uid, json=upload(**changed))
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["kept"], answer.json()["data"]["present"]


def names_of(rows: list[dict[str, Any]]) -> list[str]:
    return [row["user"] or row["account"] for row in rows]


def test_values_are_stored_once_a_day(world: World) -> None:
    assert store_values(world) == (6, 0)
    assert store_values(world, rows=[*ROWS, {**CHEM, "account": "new"}]) == (1, 6)
    assert store_values(world, SUPERUSER, at="2026-11-19T00:00:00Z") == (6, 0)
    assert store_values(world, OTHER_AGENT, cluster="beta") == (6, 0)


def test_token_of_an_agent_may_store_values(world: World) -> None:
    secret = world.token(STRANGER, "agent:alpha")
    assert world.ask("POST", "/share", token=secret, json=upload()).status_code == 200
    answer = world.ask("POST", "/share", token=secret, json=upload(cluster="beta"))
    assert (answer.status_code, answer.json()["field"]) == (403, "cluster")


def test_dry_run_changes_nothing(world: World) -> None:
    assert store_values(world, dry="?dry-run=true") == (6, 0)
    assert store_values(world, rows=ROWS[:2]) == (2, 0)
    assert store_values(world, dry="?dry-run=true") == (4, 2)
    assert len(data(world, "/share?users=true", SUPERUSER)) == 2


def test_values_are_read_as_stored(world: World) -> None:
    store_values(world)
    rows = data(world, "/share?users=true", SUPERUSER)
    assert names_of(rows) == ["bio", "Zoë@x.org", "chem", "ayla", "minh", "root"]
    defaults = {
        "cluster": "alpha",
        "day": "2026-11-18",
        "at": "2026-11-18T11:06:40Z",
        "user": None,
        "partition": None,
        "factor": None,
    }
    assert rows[2] == {**defaults, **CHEM}
    assert (rows[4]["shares"], rows[4]["partition"], rows[4]["level"]) == ("parent", "gpu", None)
    assert (rows[5]["shares"], rows[5]["usage"]) == (None, 100.0)


@pytest.mark.parametrize(
    ("uid", "seen"),
    [
        (SUPERUSER, ["bio", "Zoë@x.org", "chem", "ayla", "minh", "root"]),
        (ADMIN, ["bio", "Zoë@x.org", "chem", "ayla", "minh", "root"]),
        (PI, ["chem", "ayla", "minh"]),
        (COORDINATOR, ["chem", "ayla", "minh"]),
        (MEMBER, ["chem"]),
        (STRANGER, []),
        (AGENT, []),
    ],
)
def test_users_see_values_of_their_projects(world: World, uid: int, seen: list[str]) -> None:
    store_values(world)
    assert names_of(data(world, "/share?users=true", uid)) == seen
    assert names_of(data(world, "/share", uid)) == [
        name for name in seen if name in ("bio", "chem", "root")
    ]
    assert names_of(data(world, "/share?users=true&account=bio", uid)) == [
        name for name in seen if name in ("bio", "Zoë@x.org")
    ]


def test_agent_sees_its_own_cluster(world: World) -> None:
    store_values(world)
    assert len(data(world, "/share?users=true&cluster=alpha", AGENT)) == 6
    assert data(world, "/share?users=true&cluster=alpha", OTHER_AGENT) == []


def test_values_are_listed_by_day_and_page(world: World) -> None:
    for day in range(4):
        store_values(world, at=NOW - day * DAY)
    assert {
        row["day"] for row in data(world, "/share?since=2026-11-16&until=2026-11-18", SUPERUSER)
    } == {"2026-11-16", "2026-11-17"}
    rows, after = list[dict[str, Any]](), ""
    while True:
        page = world.ask("GET", f"/share?users=true&limit=7{after}", SUPERUSER).json()
        rows += page["data"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert len(rows) == 24
    assert rows == data(world, "/share?users=true&limit=1000", SUPERUSER)


@pytest.mark.parametrize("uid", [ADMIN, PI, MEMBER, STRANGER, OTHER_AGENT])
@pytest.mark.parametrize("dry", ["", "?dry-run=true"])
def test_only_the_agent_of_a_cluster_may_store_values(
    shared_world: World, uid: int, dry: str
) -> None:
    answer = shared_world.ask("POST", f"/share{dry}", uid, json=upload())
    assert (answer.status_code, answer.json()["field"]) == (403, "cluster")
    assert data(shared_world, "/share", SUPERUSER) == []


@pytest.mark.parametrize(
    ("changed", "field", "remedy"),
    [
        ({"rows": []}, "rows", "at least 1 element"),
        (
            {"rows": [CHEM, CHEM]},
            "rows",
            "send each account, and each user and partition in it, once",
        ),
        ({"rows": [{**CHEM, "account": "no,name"}]}, "rows[0].account", "1 to 255 bytes"),
        ({"rows": [ROWS[0], {**CHEM, "user": "a,b"}]}, "rows[1].user", "1 to 255 bytes"),
        ({"rows": [{**CHEM, "user": "a\u0000b"}]}, "rows[0].user", "1 to 255 bytes"),
        ({"rows": [{**CHEM, "partition": "a,b"}]}, "rows[0].partition", "1 to 255 bytes"),
        ({"rows": [{**CHEM, "usage": -1}]}, "rows[0].usage", "/docs describes"),
        ({"rows": [{**CHEM, "norm_shares": 1.5}]}, "rows[0].norm_shares", "/docs describes"),
        ({"rows": [{**CHEM, "shares": 2**31 - 1}]}, "rows[0].shares", "at most 2147483646"),
        ({"rows": [{**CHEM, "rank": 1}]}, "rows[0]", "leave it out"),
        ({"at": NOW + 3 * DAY}, "at", "synchronise the clocks (NTP)"),
        ({"at": "noon"}, "at", "write 2026-11-21, 2026-11-21T07:30Z, or seconds since 1970"),
    ],
)
def test_invalid_value_names_its_row(
    shared_world: World, changed: dict[str, Any], field: str, remedy: str
) -> None:
    answer = shared_world.ask("POST", "/share", AGENT, json=upload(**changed))
    assert (answer.status_code, answer.json()["field"].startswith(field)) == (400, True), (
        answer.text
    )
    assert answer.json()["remedy"].startswith(remedy)


@given(names=st.tuples(NAMES, NAMES, NAMES))
def test_cursor_of_any_names_is_read_back(names: tuple[str, str, str]) -> None:
    account, user, partition = names
    record = ShareRecord(
        account, user, partition, cluster="lab", day=20_000, at=Instant(20_000 * 86_400)
    )
    assert parse_share_cursor(share_cursor(record)) == share_key(record)


@pytest.mark.parametrize("after", ["x", "alpha/many/a/b/c", "a/1/b/c/d/e"])
def test_invalid_cursor_is_refused(shared_world: World, after: str) -> None:
    answer = shared_world.ask("GET", f"/share?after={after}", SUPERUSER)
    assert (answer.status_code, answer.json()["field"]) == (400, "after")


def test_old_values_are_deleted_once_a_day() -> None:
    with create_world(shares_days=2) as world:
        for day in range(3):
            store_values(world, at=NOW - day * DAY)
        assert world.context.services.upkeep.delete_old_shares() == 6
        store_values(world, at=NOW - 5 * DAY)
        assert world.context.services.upkeep.delete_old_shares() == 0, "already done today"
        world.clock.at = type(world.clock.at)(NOW + DAY)
        assert world.context.services.upkeep.delete_old_shares() == 12
        assert {row["day"] for row in data(world, "/share", SUPERUSER)} == {"2026-11-18"}
    with create_world() as world:
        store_values(world, at=DAY)
        assert world.context.services.upkeep.delete_old_shares() == 0, "kept forever by default"
