"""Input that only a real database can refuse."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from fairbank.rest.app import document
from fairbank.service.settings import LogFormat, StoreSettings, WriteQueuePlace
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.setup.write_queue_process import start_write_queue
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.rest.responses import refused
from tests.rest.world import AGENT, SUPERUSER, World, create_world, grant, report
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="module", params=WriteQueuePlace, ids=lambda place: place.value)
def world(request: pytest.FixtureRequest, postgres18: PostgresServer) -> Iterator[World]:
    """Provide the small site on PostgreSQL, with each kind of write queue."""
    with postgres18.fresh_database() as name:
        url = postgres18.url(name)
        migrate(url)
        make_queue = (
            partial(start_write_queue, StoreSettings(url), LogFormat.SHORT)
            if request.param is WriteQueuePlace.PROCESS
            else WriterThreads
        )
        with create_world(open_store(url), make_queue=make_queue) as made:
            yield made


def filters() -> list[tuple[str, str]]:
    return [
        (path.replace("{allocation}", "1").replace("{entry}", "1"), parameter["name"])
        for path, item in document()["paths"].items()
        for parameter in item.get("get", {}).get("parameters", ())
        if parameter["in"] == "query" and parameter["schema"]["type"] == "string"
    ]


def test_nul_in_a_filter_is_refused_before_the_database(world: World) -> None:
    for path, name in filters():
        refused(world, SUPERUSER, "GET", f"{path}?{name}=a%00b", 400, name)


@pytest.mark.parametrize(
    "text", ["%ff", "%ed%a0%80", "%f4%8f%bf%bf", "%25", "_", "'", "%5c", "%27%3bDROP TABLE project"]
)
def test_unusual_text_in_a_filter_finds_nothing(world: World, text: str) -> None:
    for path, name in filters():
        answer = world.ask("GET", f"{path}?{name}={text}", SUPERUSER)
        is_expected = (
            answer.status_code in (400, 409)
            if name == "comment"
            else answer.status_code == 400 or answer.json()["data"] == []
        )
        assert is_expected or name == "after", (path, name)


def test_nul_in_a_body_is_refused(world: World) -> None:
    bodies = {
        ("/project", "gname"): {"gname": "fine", "gid": 5},
        ("/project", "account"): {"gname": "fine", "gid": 5},
        **{
            ("/alloc", field): grant()
            for field in ("resource", "category", "comment", "start", "end")
        },
        ("/alloc/1/deposit", "comment"): {"amount": 1},
        ("/token", "label"): {"scopes": ["read"]},
        **{
            ("/job", field): report(1)
            for field in (
                "cluster",
                "partition",
                "resource",
                "qos",
                "key",
                "comment",
                "tres",
                "account",
            )
        },
    }
    for (path, field), body in bodies.items():
        refused(
            world,
            AGENT if path == "/job" else SUPERUSER,
            "POST",
            path,
            400,
            field,
            json={**body, field: "a\x00b"},
        )
    ended = report(1, do="complete", end=2_000_000_000, elapsed=1, state="COMP\x00LETED")
    refused(world, AGENT, "POST", "/job", 400, "state", json=ended)
    quote = {
        "account": "chem",
        "cluster": "alpha",
        "partition": "std",
        "tres": "cpu=1",
        "time_limit": 60,
    }
    for field in ("account", "cluster", "partition", "tres", "time_limit", "qos"):
        answer = world.ask("POST", "/quote", SUPERUSER, json={**quote, field: "a\x00b"})
        assert (answer.status_code, answer.json()["field"]) in ((400, field), (404, field)), field


def test_every_filter_of_runs_and_refusals_works(world: World) -> None:
    everything = (
        "account=chem&gname=chem&project=1&resource=cpu&category=research&active-at=now"
        "&cluster=alpha&owner_uid=5004&allocation=1"
    )
    for path in ("/job", "/failure"):
        rows = world.ask("GET", f"{path}?{everything}", SUPERUSER).json()["data"]
        payers = {(row["cluster"], row["owner_uid"], row["allocation"]) for row in rows}
        assert payers == {("alpha", 5004, 1)}, path
