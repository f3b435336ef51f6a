"""Pages of long lists, which join without a gap."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.core.usage_groups import UsageBy
from tests.rest.responses import all_pages, data, ids_of, without_texts
from tests.rest.world import AGENT, DAY, NOW, PI, SUPERUSER, World, report

LISTS = (
    "/project", "/alloc", "/balance?all=true", "/job", "/failure", "/activity", "/credit",
    "/debit", "/entry", "/usage?by=day", "/audit",
    "/project/{project}/member", "/alloc/{allocation}/user",
    "/alloc/{allocation}/statement?all=true&order=oldest",
)  # fmt: skip


def test_pages_join_without_gap(world: World) -> None:
    assert ids_of(all_pages(world, "/alloc", SUPERUSER, size=1)) == sorted(
        [
            world.own["allocation"],
            world.own["later"],
            world.foreign["allocation"],
            world.foreign["later"],
        ]
    )


def test_pages_of_a_statement_join(world: World) -> None:
    """The first page has the newest entries, or the oldest if they are asked for first."""
    path = f"/alloc/{world.own['allocation']}/statement?all=true"
    complete = world.ask("GET", path, PI).json()["data"]["entries"]
    for order in ("newest", "oldest"):
        one = world.ask("GET", f"{path}&order={order}&limit=3", PI).json()
        two = world.ask("GET", f"{path}&order={order}&limit=3&after={one['next']}", PI).json()
        earlier, later = (two, one) if order == "newest" else (one, two)
        assert later["data"]["opening"] == earlier["data"]["closing"]
        assert earlier["data"]["entries"] + later["data"]["entries"] == complete


def test_long_lists_have_pages(world: World) -> None:
    project, allocation = world.own["project"], world.own["allocation"]
    for uid in range(7):
        world.ask("PUT", f"/project/{project}/member/{uid}", PI, json={"role": "member"})
        world.ask("PUT", f"/alloc/{allocation}/cap/{uid}", PI, json={"cap": 5})
        world.token_number(PI)
        run = report(
            200 + uid,
            owner_uid=10_000 + uid,
            do="complete",
            end=NOW + uid * 40 * DAY,
            elapsed=600,
            state="COMPLETED",
        )
        assert world.ask("POST", "/job", AGENT, json=run).status_code == 201
    for path, least in (
        (f"/project/{project}/member", 10),
        (f"/alloc/{allocation}/user", 15),
        ("/token", 7),
    ):
        complete = data(world, path)
        assert len(complete) >= least
        assert all_pages(world, path) == complete
    every = f"until={NOW + 10**9}"  # the runs end after the time of the bank
    for by in (dimension.value for dimension in UsageBy):
        assert all_pages(world, f"/usage?by={by}&{every}") == data(world, f"/usage?by={by}&{every}")
    assert len(data(world, f"/usage?by=day&{every}")) == 7


@pytest.mark.parametrize("path", LISTS)
def test_full_last_page_has_no_next(shared_world: World, path: str) -> None:
    address = path.format(**shared_world.own)
    path = f"{address}{'&' if '?' in address else '?'}limit="
    complete = rows_of(shared_world.ask("GET", f"{path}1000", SUPERUSER).json())
    assert complete, "the list must not be empty"
    full = shared_world.ask("GET", f"{path}{len(complete)}", SUPERUSER).json()
    assert (rows_of(full), full["next"]) == (complete, None)
    if len(complete) > 1:
        less = shared_world.ask("GET", f"{path}{len(complete) - 1}", SUPERUSER).json()
        rest = shared_world.ask("GET", f"{path}1&after={less['next']}", SUPERUSER).json()
        assert (rows_of(less) + rows_of(rest), rest["next"]) == (complete, None)


def test_closing_sums_are_those_of_the_last_entry_shown(shared_world: World) -> None:
    page = shared_world.ask(
        "GET", f"/alloc/{shared_world.own['allocation']}/statement?limit=1", PI
    ).json()
    (entry,) = page["data"]["entries"]
    assert page["next"] == str(entry["seq"])
    closing = without_texts(page["data"]["closing"])
    assert closing == {name: entry[name] for name in closing}


def rows_of(answer: Any) -> list[Any]:
    """Return the rows of a list, or of the part of a response that is a list."""
    content = answer["data"]
    rows: list[Any] = (
        content
        if isinstance(content, list)
        else content.get("entries")
        if "closing" in content
        else content["heads"]
    )
    return rows
